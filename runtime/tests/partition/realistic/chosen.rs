//! Functions and settings that a program chooses, and logs.

#![allow(clippy::type_complexity, reason = "types that users write out are what is tested")]

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
    num::NonZero,
    ops::{Add, AddAssign, Mul, Neg, RangeInclusive, Sub},
    time::Duration,
};

use graphable::{graphable, prelude::*};

use super::{Layer, Model, gives, mix, same};

fn thrice<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::scale(x, 3.0)
}

/// Functions by name with `#[host]`, chosen by a match on a size, in a table, as closures, and in boxes.
#[graphable]
fn functions(x: &Tensor<f32>, m: &Model) -> Result<Tensor<f32>> {
    #[host]
    let act = ops::neg;
    let by_size = match m.layers.len() {
        3 => thrice,
        _ => mix,
    };
    let table = [ops::neg, mix];
    let closure = if m.deep { |t: &Tensor<f32>| ops::exp(t) } else { |t: &Tensor<f32>| ops::scale(t, 5.0) };
    let eps = m.layers[1].eps;
    let boxed: Box<dyn Fn(&Tensor<f32>) -> Result<Tensor<f32>>> = if m.deep {
        Box::new(|t: &Tensor<f32>| ops::exp(t))
    } else {
        Box::new(move |t: &Tensor<f32>| ops::scale(t, eps))
    };
    let with_layer = |t: &Tensor<f32>, l: &Layer| ops::mul(t, &l.a);
    let h = boxed(&closure(&by_size(&act(x)?)?)?)?;
    let mut h = #[eager]
    mix(&h)?;
    for f in table {
        h = f(&h)?;
        h = #[eager]
        same(&h)?;
    }
    let h = boxed(&closure(&by_size(&act(&h)?)?)?)?;
    let h = #[eager]
    closure(&h)?;
    with_layer(&table[0](&h)?, &m.layers[2])
}

#[test]
fn functions_that_are_chosen() {
    // -7.5, doubled -15; 15, 30; -225; -1125; 1125 * 3.
    gives!(FunctionsGraph, 3375.0, |g, step, x, m| g.call(&step, &x, &m));
}

/// A setting of the user, which its derive compares by value.
#[derive(Clone, Copy, ConfigValue)]
enum Kind {
    Flip,
    Scale(f32),
}

/// A list of settings made from the model's, beside its layers.
#[graphable]
fn kinds(x: &Tensor<f32>, m: &Model) -> Result<Tensor<f32>> {
    let kinds =
        m.layers.iter().map(|l| if l.on { Kind::Flip } else { Kind::Scale(l.eps) }).collect::<Vec<_>>();
    #[host]
    let first = kinds[0];
    let mut h = ops::neg(x)?;
    for (l, kind) in m.layers.iter().zip(&kinds) {
        h = match kind {
            Kind::Flip => ops::neg(&h)?,
            Kind::Scale(by) => ops::scale(&h, *by)?,
        };
        h = #[eager]
        same(&h)?;
        h = ops::mul(&h, &l.a)?;
    }
    match first {
        Kind::Flip => ops::neg(&h),
        Kind::Scale(_) => Ok(h),
    }
}

#[test]
fn settings_made_from_the_model() {
    gives!(KindsGraph, 3.0, |g, step, x, m| g.call(&step, &x, &m));
}

#[derive(Params)]
struct Settings {
    w: Param<f32>,
    #[config]
    rounds: RangeInclusive<usize>,
    #[config]
    groups: NonZero<u32>,
    #[config]
    wait: Duration,
    #[config]
    name: Cow<'static, str>,
    #[config]
    sorted: BTreeMap<String, usize>,
    #[config]
    by_name: HashMap<String, usize>,
    #[config]
    picked: BTreeSet<u8>,
    #[config]
    rope: ops::RopeConfig,
    #[config]
    style: ops::RopeStyle,
}

fn settings(rt: &Runtime) -> Settings {
    Settings {
        w: Param::new(rt, &[1], &[3.0]).unwrap(),
        rounds: 1..=3,
        groups: NonZero::new(2).unwrap(),
        wait: Duration::from_secs(2),
        name: "ab".into(),
        sorted: [("a".to_owned(), 1)].into(),
        by_name: [("b".to_owned(), 2)].into(),
        picked: [1, 2, 3].into(),
        rope: ops::RopeConfig::new(10.0, ops::RopeStyle::HalfSplit),
        style: ops::RopeStyle::Interleaved,
    }
}

/// Every setting of a model, in both segments.
#[graphable]
fn set(x: &Tensor<f32>, at: &Tensor<u32>, m: &Settings) -> Result<Tensor<f32>> {
    let mut h = ops::mul(x, &m.w)?;
    for i in m.rounds.clone() {
        h = ops::scale(&h, i as f32)?;
    }
    let q = ops::rope(&ops::reshape(&h, (1, 1, 1, 2))?, at, m.rope)?;
    let q = #[eager]
    same(&q)?;
    let q = ops::rope(&q, at, ops::RopeConfig::new(m.rope.theta, m.style))?;
    let sum = m.groups.get() as usize + m.name.len() + m.sorted["a"] + m.by_name["b"] + m.picked.len();
    ops::reshape(&ops::scale(&q, sum as f32 * m.wait.as_secs_f32())?, (2,))
}

#[test]
fn settings_of_every_kind() {
    crate::support::check!(
        SetGraph,
        |rt| settings(&rt),
        |g, step, m, n| {
            let _ = n;
            let x = step.tensor(&[2], &[1.0, 2.0]).unwrap();
            let at = step.tensor(&[1, 1], &[0u32]).unwrap();
            g.call(&step, &x, &at, &m)
        },
        vec![360.0, 720.0]
    );
}

/// A mask that holds a tensor, made once and used on both sides of a boundary.
#[graphable]
fn masked(x: &Tensor<f32>, lengths: &Tensor<u32>) -> Result<Tensor<f32>> {
    let mask = ops::AttentionMask::Lengths(lengths);
    let q = ops::reshape(x, (1, 1, 1, 2))?;
    let a = ops::attention(&q, &q, &q, mask, 1.0)?;
    let a = #[eager]
    mix(&a)?;
    let a = ops::attention(&a, &a, &a, mask, 1.0)?;
    ops::reshape(&a, (2,))
}

#[test]
fn masks_that_hold_tensors() {
    crate::support::check!(
        MaskedGraph,
        |rt| (),
        |g, step, m, n| {
            let _ = n;
            let x = step.tensor(&[2], &[1.0, 2.0]).unwrap();
            let lengths = step.tensor(&[1], &[1u32]).unwrap();
            g.call(&step, &x, &lengths)
        },
        vec![2.0, 4.0]
    );
}

#[derive(GraphOutput, Clone)]
struct V<'s>(Tensor<'s, f32>);
impl<'s> Add for V<'s> {
    type Output = V<'s>;
    fn add(self, o: V<'s>) -> V<'s> {
        V(ops::add(&self.0, &o.0).unwrap())
    }
}
impl<'s> Mul<&Param<f32>> for &V<'s> {
    type Output = V<'s>;
    fn mul(self, o: &Param<f32>) -> V<'s> {
        V(ops::mul(&self.0, o).unwrap())
    }
}
impl<'s> AddAssign<&V<'s>> for V<'s> {
    fn add_assign(&mut self, o: &V<'s>) {
        self.0 = ops::add(&self.0, &o.0).unwrap()
    }
}
impl<'s> Neg for &V<'s> {
    type Output = V<'s>;
    fn neg(self) -> V<'s> {
        V(ops::neg(&self.0).unwrap())
    }
}
impl<'s> Sub<f32> for V<'s> {
    type Output = V<'s>;
    fn sub(self, o: f32) -> V<'s> {
        V(ops::sub(&self.0, &ops::full_like(&self.0, o).unwrap()).unwrap())
    }
}

/// Operators of a newtype with weights and numbers, in a loop with a boundary.
#[graphable]
fn operators(x: &Tensor<f32>, m: &Model) -> Result<Tensor<f32>> {
    let mut acc = V(ops::neg(x)?);
    for l in &m.layers {
        let t = &acc * &l.a;
        let t = #[eager]
        V(same(&t.0)?);
        acc += &t;
        let u = -&acc;
        acc = u + t - 1.0;
    }
    ops::add(&acc.0, x)
}

#[test]
fn operators_with_weights_and_numbers() {
    // -1: t -1, acc -2, 2 - 1 - 1 = 0; then -1; then t -3, acc -4, 4 - 3 - 1 = 0; + 1.
    gives!(OperatorsGraph, 1.0, |g, step, x, m| g.call(&step, &x, &m));
}

/// A span with fields around the call, `err` below `#[graphable]`, logs in loops, checks, and a print that is not there.
#[tracing::instrument(name = "block", level = "debug", skip_all, fields(layers = m.layers.len()))]
#[graphable]
fn traced(x: &Tensor<f32>, m: &Model) -> Result<Tensor<f32>> {
    debug_assert!(m.layers.len() > 1, "layers: {}", m.layers.len());
    assert_eq!(x.rank(), 1, "rank {}", x.rank());
    tracing::info!(layers = m.layers.len(), "{:?}", x.shape());
    let mut h = ops::mul(x, &m.embed)?;
    #[cfg(any())]
    println!("h {:?}", h.shape());
    for (i, l) in m.layers.iter().enumerate() {
        h = #[eager]
        mix(&h)?;
        tracing::debug!(layer = i, "done");
        h = ops::mul(&h, &l.a)?;
    }
    Ok(h)
}

#[graphable]
#[tracing::instrument(skip_all, err)]
fn errors_traced(x: &Tensor<f32>, m: &Model) -> Result<Tensor<f32>> {
    let h = ops::mul(x, &m.embed)?;
    let h = #[eager]
    mix(&h)?;
    ops::mul(&h, &m.embed)
}

#[test]
fn spans_logs_and_checks() {
    gives!(TracedGraph, 144.0, |g, step, x, m| g.call(&step, &x, &m));
    gives!(ErrorsTracedGraph, 18.0, |g, step, x, m| g.call(&step, &x, &m));
}
