// What the generated functions are made of. Compiled in front of them, by `compile.rs`.
#![allow(warnings, clippy::all)]
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex,
        atomic::{AtomicI64, Ordering},
    },
};

use graphable::{Mode, backend::cpu::CpuOptions, graphable, prelude::*};

#[derive(Params)]
pub struct Layer {
    pub a: Param<f32>,
    pub b: Param<f32>,
}

#[derive(Params)]
pub struct Model {
    pub layers: Vec<Layer>,
    pub w: Param<f32>,
    #[config]
    pub gain: f32,
}

#[derive(Params)]
pub struct Kv {
    pub s: State<f32>,
}

#[derive(Clone, Debug, GraphOutput, Carried)]
pub struct Pair<'s> {
    pub l: Tensor<'s, f32>,
    pub r: Tensor<'s, f32>,
}

/// More than the device holds: arms assign its fields.
#[derive(Clone)]
pub struct Net<'s> {
    pub l: Tensor<'s, f32>,
    pub r: Tensor<'s, f32>,
    pub spare: Option<Tensor<'s, f32>>,
    pub all: Vec<Tensor<'s, f32>>,
    pub n: usize,
}
impl<'s> Net<'s> {
    pub fn of(l: Tensor<'s, f32>, r: &Tensor<'s, f32>, n: usize) -> Self {
        Self { l, r: r.clone(), spare: Some(r.clone()), all: vec![r.clone(), r.clone()], n }
    }
    pub fn middle(&self) -> Result<Tensor<'s, f32>> {
        ops::scale(&ops::add(&self.l, &self.r)?, self.n as f32)
    }
    pub fn right(&self) -> &Tensor<'s, f32> {
        &self.r
    }
    pub fn bump(&mut self) -> Result<()> {
        self.r = ops::add(&self.r, 1.0)?;
        self.n += 1;
        Ok(())
    }
    pub fn sum(self) -> Result<Tensor<'s, f32>> {
        let first = self.middle()?;
        self.all.iter().chain(&self.spare).try_fold(first, |sum, part| ops::sub(&ops::scale(&sum, 0.5)?, part))
    }
}
macro_rules! put {
    ($place:expr, $value:expr) => {
        $place = $value
    };
}

/// What stands for attention.
pub fn att<'s>(t: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::scale(t, 0.75)
}
pub fn mix<'s>(a: &Tensor<'s, f32>, b: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::sub(&ops::scale(a, 0.5)?, b)
}
pub fn scaled<'s>(t: &Tensor<'s, f32>, by: f32) -> Result<Tensor<'s, f32>> {
    ops::scale(t, by)
}
/// What the names of closures mean outside the functions: code that lost a closure would call these.
pub fn f<'s>(t: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::scale(t, 100.0)
}
pub fn g<'s>(t: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::add(t, 1000.0)
}
pub fn pair<'s>(a: &Tensor<'s, f32>, b: &Tensor<'s, f32>) -> Result<Pair<'s>> {
    Ok(Pair { l: ops::neg(a)?, r: ops::scale(b, 0.5)? })
}
pub fn pick<'s>(n: usize, a: &Tensor<'s, f32>) -> Option<Tensor<'s, f32>> {
    (n % 2 == 1).then(|| a.clone())
}
pub fn count(n: usize) -> usize {
    n * 3 % 5
}
pub struct Lists {
    pub p: Vec<f32>,
    pub q: Vec<f32>,
}
pub fn lists(n: usize) -> Lists {
    Lists { p: vec![0.5; n + 1], q: vec![-1.5, n as f32] }
}
/// Lists that can be part of a key.
#[derive(Clone, ConfigValue)]
pub struct Settings {
    pub p: Vec<f32>,
    pub q: Vec<f32>,
}
pub fn settings(n: usize) -> Settings {
    let Lists { p, q } = lists(n);
    Settings { p, q }
}
pub fn optional(n: usize) -> Option<Vec<f32>> {
    (n % 2 == 1).then(|| vec![0.5; n])
}
/// What cannot be part of a key, so each segment makes it for itself.
pub struct Held {
    pub p: Vec<f32>,
}
pub struct Whole {
    pub s: Settings,
}
pub fn weighted<'s>(t: &Tensor<'s, f32>, list: &[f32]) -> Result<Tensor<'s, f32>> {
    ops::scale(t, list.iter().sum())
}
/// Neither enters a segment nor leaves one.
pub struct Stays {
    by: usize,
}
impl Stays {
    pub fn of(t: &Tensor<'_, f32>, n: usize) -> Self {
        Self { by: n + t.rank() }
    }
    pub fn scaled<'s>(&self, t: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
        ops::scale(t, self.by as f32)
    }
}
/// Its fields have the names of variables.
pub struct Named {
    pub a: usize,
    pub h: usize,
    pub b: usize,
}
pub fn named(n: usize) -> Named {
    Named { a: n + 1, h: n + 4, b: n * 2 }
}
impl Named {
    pub fn sum(self) -> usize {
        self.a * 3 + self.h + self.b * 2
    }
}
/// Writes to what it refers to; what was there before.
pub fn change<'s>(t: &mut Tensor<'s, f32>, by: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    let sum = ops::add(t, by)?;
    Ok(std::mem::replace(t, sum))
}
/// Its methods take it, change it or read it.
#[derive(Clone, Debug, GraphOutput)]
pub struct Sum<'s> {
    pub parts: Vec<Tensor<'s, f32>>,
}
impl<'s> Sum<'s> {
    pub fn new() -> Self {
        Self { parts: Vec::new() }
    }
    pub fn with(mut self, part: &Tensor<'s, f32>) -> Self {
        self.parts.push(part.clone());
        self
    }
    pub fn push(&mut self, part: &Tensor<'s, f32>) {
        self.parts.push(part.clone());
    }
    pub fn first(&self) -> Result<Tensor<'s, f32>> {
        ops::neg(&self.parts[0])
    }
    pub fn finish(self) -> Result<Tensor<'s, f32>> {
        self.parts[1..].iter().try_fold(self.parts[0].clone(), |sum, part| ops::add(&sum, part))
    }
}
pub fn missing() -> graphable::Error {
    graphable::Error::Argument { op: "layer", reason: "there is none".into() }
}
pub fn refuse(n: usize) -> Result<()> {
    if n == 9 { Err(graphable::Error::Argument { op: "refuse", reason: "n is 9".into() }) } else { Ok(()) }
}

/// Guards that live, and how many of them lived at a boundary at most.
static ALIVE: AtomicI64 = AtomicI64::new(0);
static MOST: AtomicI64 = AtomicI64::new(0);
/// What happened, in order: `+` where a guard is acquired, `-` where one is released, `|` where a boundary is.
static TRACE: Mutex<String> = Mutex::new(String::new());
pub fn made() {
    ALIVE.fetch_add(1, Ordering::Relaxed);
}
pub fn note(event: char) {
    TRACE.lock().unwrap().push(event);
}
/// Ends the trace of a call, which counts if it did not fail.
pub fn called_once(failed: bool) {
    let mut trace = TRACE.lock().unwrap();
    let before = trace.rfind('.').map_or(0, |at| at + 1);
    if failed {
        trace.truncate(before);
    }
    trace.push('.');
}
pub fn noted() -> String {
    std::mem::take(&mut TRACE.lock().unwrap())
}
/// What stands for attention where guards are counted.
pub fn held<'s>(t: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    MOST.fetch_max(ALIVE.load(Ordering::Relaxed), Ordering::Relaxed);
    note('|');
    ops::scale(t, 0.75)
}
macro_rules! ends {
    ($($ty:ident),*) => {$(
        impl<const N: u64> Drop for $ty<N> {
            fn drop(&mut self) {
                ALIVE.fetch_sub(1, Ordering::Relaxed);
                note('-');
            }
        }
    )*};
}
ends!(Guard, Literal, Tuple, Unit);
pub struct Guard<const N: u64>(f32);
pub struct Literal<const N: u64> {
    pub by: f32,
}
pub struct Tuple<const N: u64>(pub f32);
pub struct Unit<const N: u64>;
pub struct Wrap<const N: u64> {
    pub g: Guard<N>,
    pub n: usize,
}
pub struct Holds<T> {
    pub it: T,
}
impl<const N: u64> Guard<N> {
    pub fn new(by: f32) -> Self {
        made();
        note('+');
        Self(by)
    }
    pub fn finish(self) -> f32 {
        self.0
    }
}
impl<const N: u64> Clone for Guard<N> {
    fn clone(&self) -> Self {
        Self::new(self.0)
    }
}
pub fn guard<const N: u64>(n: usize) -> Result<Guard<N>> {
    refuse(n)?;
    Ok(Guard::new(1.5))
}
pub fn wrap<const N: u64>(by: f32) -> Wrap<N> {
    Wrap { g: Guard::new(by), n: 2 }
}
pub fn guarded<const N: u64>(by: f32) -> (Guard<N>, f32) {
    (Guard::new(by), by)
}
/// Always one, whatever the conditions around the call are.
pub fn optional_guard<const N: u64>(n: usize) -> Option<Guard<N>> {
    (n < 100).then(|| Guard::new(2.0))
}
/// No guard: nothing happens when it goes. It cannot be part of a key either.
pub struct Plain<const N: u64> {
    pub n: usize,
}
impl<const N: u64> Plain<N> {
    pub fn build(self) -> usize {
        self.n + 1
    }
}
pub fn plain<const N: u64>(n: usize) -> Plain<N> {
    Plain { n }
}
pub fn end<T>(_: T) {}
pub fn seen<T>(_: &T) {}

pub fn model(rt: &Runtime) -> (Model, Kv) {
    let v = |v: f32| Param::new(rt, &[2], &[v, -v]).unwrap();
    let layers = (0..3).map(|i| Layer { a: v(1.0 + i as f32), b: v(0.5 - i as f32) }).collect();
    (Model { layers, w: v(0.25), gain: 1.5 }, Kv { s: State::zeros(rt, &[2]).unwrap() })
}

/// The `n` of each call; every value comes often enough to be replayed.
const CALLS: [usize; 20] = [1, 1, 1, 1, 2, 2, 2, 1, 3, 3, 3, 0, 0, 2, 0, 3, 1, 9, 9, 1];

/// The `q` of each call: of one `n`, several.
const DECIDED: [i32; 20] = [0, 1, 0, 2, 3, 1, 0, 2, 1, 3, 2, 1, -1, 0, 2, 3, 1, 2, 0, 3];

/// What each call gave, bit by bit, and what the state is in the end; and how many replays there were.
macro_rules! calls {
    ($graph:ty, $mode:expr) => {{
        let mut options = CpuOptions::default();
        (options.test_mode, options.threads) = (Some(5), Some(1));
        let mut rt = Runtime::new(Device::cpu_with(options)).unwrap();
        let (m, kv) = model(&rt);
        let graph = <$graph>::builder().mode($mode).build(&mut rt).unwrap();
        let mut out: Vec<String> = Vec::new();
        for (i, n) in CALLS.into_iter().enumerate() {
            let step = rt.step().unwrap();
            let x = step.tensor(&[2], &[i as f32 + 0.5, 1.0]).unwrap();
            let y = step.tensor(&[2], &[3.0 - i as f32, -2.0]).unwrap();
            let called = catch_unwind(AssertUnwindSafe(|| match graph.call(&step, &x, &y, &m, &kv, n, DECIDED[i]) {
                Ok(t) => format!("{:x?}", step.read(&t).unwrap().iter().map(|v| v.to_bits()).collect::<Vec<_>>()),
                Err(error) => format!("error: {error}"),
            }));
            let failed = called.as_ref().is_ok_and(|out| out.starts_with("error"));
            out.push(called.unwrap_or_else(|_| "panic".to_owned()));
            // What is written out may be made above a failure that stands in front of it.
            called_once(failed);
        }
        out.push(format!("{:?}", rt.step().and_then(|step| { let t = ops::load(step.scope(), &kv.s)?; step.read(&t) }).map(|v| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>()).ok()));
        (out, rt.stats().replays)
    }};
}

/// What the plain form gives, and what it notes about guards.
macro_rules! expected {
    ($seed:literal, $plain:ty) => {{
        (ALIVE.store(0, Ordering::Relaxed), MOST.store(0, Ordering::Relaxed), noted());
        let (expected, _) = calls!($plain, Mode::None);
        println!("HELD {} {}", $seed, MOST.load(Ordering::Relaxed));
        (expected, noted())
    }};
}

macro_rules! compare {
    ($seed:literal, $marked:ty, $plain:ty) => {{
        let (expected, expected_trace) = expected!($seed, $plain);
        for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
            let (got, replays) = calls!($marked, mode);
            println!("RAN {} {replays}", $seed);
            let trace = noted();
            if mode == Mode::None && trace != expected_trace {
                println!("DIFFERS {} guards: {trace}, expected {expected_trace}", $seed);
                break;
            }
            if let Some(at) = (0..expected.len()).find(|&i| got[i] != expected[i]) {
                println!("DIFFERS {} {mode}: call {at} gave {}, expected {}", $seed, got[at], expected[at]);
                break;
            }
        }
    }};
}
