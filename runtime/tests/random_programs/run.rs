//! The real thing: a program through functions, frames, segments and regions, as generated code would
//! drive them.

#![allow(clippy::needless_borrow, reason = "as generated code writes it")]

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
    time::Duration,
};

use graphable::{
    __private::{EagerTensors as _, Inputs, Piecewise, RegionResult, Site, Support, Synthetic, capture_all},
    Error, Kept, Mode, Result, Runtime, Scalar, Stats, Step,
    backend::{
        cpu::CpuOptions,
        faulty::{FaultPlan, FaultyBackend},
    },
};

use crate::{
    build::{self, Built},
    disturb::{estimate, invalidate, invalidate_for_good, make_temporaries, temporaries, varies},
    drawn_passes::{Chosen, Counts},
    fills::{Filled, Given, check_held},
    folded::Folded,
    program::{Block, Call, Count, Elem, Func, Input, Kind, Program, Source, Stmt},
    value::{ASKED, End, Flat, Live, Tensors, Val, arm, disarmed, each, nonsense, pending, tripped},
    world::{Data, StepOut, World, data_of, derive, grow, seed_of, shape_of, upload},
    written,
};

/// How a program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setup {
    pub(crate) mode: Mode,
    pub(crate) audit_every: u32,
    /// How often a live-in moves before it is copied.
    pub(crate) moves: usize,
    /// Whether recordings share executables.
    pub(crate) shares: bool,
    /// The passes over recordings, in their order.
    pub(crate) passes: Chosen,
}

/// What a run gave, and what the runtime counted.
pub(crate) struct Run {
    pub(crate) steps: Vec<StepOut>,
    pub(crate) stats: Stats,
    /// What passes did.
    pub(crate) passes: Counts,
}

/// How often a step must have been seen before it must not record any more: one warm-up, one recording,
/// and one more for each round of better placement.
const SETTLED: usize = 5;

/// How often a step that holds results, or whose regions vary, is repeated before it must have recorded nothing so many times in
/// a row.
const CONVERGED: (usize, usize) = (300, 60);

/// Repeats a step, and returns whether it comes to record nothing any more.
fn converges(mut again: impl FnMut() -> Result<Stats>) -> Result<bool> {
    let (mut recordings, mut in_a_row) = (0, 0);
    for _ in 0..CONVERGED.0 {
        let now = again()?.recordings;
        in_a_row = if now == recordings { in_a_row + 1 } else { 0 };
        if in_a_row == CONVERGED.1 {
            return Ok(true);
        }
        recordings = now;
    }
    Ok(false)
}

/// Results that were moved out of their step, and what they were.
type Held = (Kept<Vec<Vec<Val<'static>>>>, Vec<Vec<Flat>>);

/// How often each call of a step is made once more, its results held to the end of the step.
fn repeats(program: &Program) -> usize {
    let alike = program.is_pure() && program.trip.is_none() && program.funcs.iter().all(|f| !f.fails);
    if alike && program.seed % 5 == 2 { 6 } else { 0 }
}

/// Runs the last step once more with capture closed, behind blocks that were not there: what was recorded does.
fn run_closed(
    rt: &mut Runtime,
    world: &World,
    program: &Program,
    built: &[Built],
    expected: &StepOut,
) -> Result<()> {
    rt.close_capture();
    let before = rt.stats();
    {
        let step = rt.step()?;
        let below: Vec<_> = (0..3).map(|_| step.tensor(&[70], &[7u32; 70])).collect::<Result<_>>()?;
        let out = one_step(&step, world, program, built, program.steps.len() - 1, &mut Vec::new())?;
        if out != *expected {
            return Err(nonsense(format!("closed, the last step gave {out:?}, and before {expected:?}")));
        }
        drop(below);
    }
    let after = rt.stats();
    if (after.recordings, after.warmups, after.fallbacks)
        != (before.recordings, before.warmups, before.fallbacks)
    {
        return Err(nonsense(format!("closed, {before:?} became {after:?}")));
    }
    Ok(())
}

/// Whether `capture_all` can capture the function.
pub(crate) fn is_captured(func: &Func) -> bool {
    func.buckets.is_some() && !func.fails
}

/// Captures a function for all of its buckets.
pub(crate) fn capture(rt: &mut Runtime, world: &World, func: &Func, built: &Built) -> Result<()> {
    let call = Call { func: 0, b: 1, key: 0, sources: Vec::new(), hold: false, fills: Vec::new() };
    let mut synthetic = |step: &Step<'_>, s: &Synthetic<'_>| {
        one_call(step, world, built, func, &call, Feed::Synthetic(s), &mut Vec::new()).map(drop)
    };
    capture_all(&built.function, rt, &mut synthetic, &mut |_| {})
}

/// Runs a program on a device in test mode, and checks what must hold after each step.
pub(crate) fn run(program: &Program, setup: Setup) -> Result<Run> {
    // What the run before on this thread did not use up.
    arm(None);
    let options = CpuOptions::default().test_mode(program.seed).threads(1);
    let faults = Arc::new(FaultPlan::default());
    if program.seed.is_multiple_of(3) {
        invalidate(&faults, program.seed);
    }
    let gives_up = program.seed % 3 == 1;
    if gives_up {
        invalidate_for_good(&faults, program.seed);
    }
    let backend = FaultyBackend::new(crate::device::backend(options), Arc::clone(&faults));
    let mut rt = Runtime::with_backend(Box::new(backend))?;
    rt.share_executables(setup.shares.then_some(Duration::MAX));
    rt.set_passes(setup.passes.passes()?);
    // Of some: names in events take time.
    let folds = program.seed.is_multiple_of(4);
    rt.keep_events(folds);
    let mut folded = Folded::default();
    let mut world = World::new(&rt, program)?;
    let mut built: Vec<Built> = program
        .funcs
        .iter()
        .map(|f| build::build(&mut rt, f, setup, gives_up, &faults))
        .collect::<Result<_>>()?;
    let mut twins: Vec<Built> = Vec::new();
    if program.steps.iter().any(|step| step.twin) {
        for (func, built) in program.funcs.iter().zip(&built) {
            twins.push(build::another(&mut rt, built, func, setup, gives_up)?);
        }
    }
    let mut twin = false;
    let captures = |func| program.capture && setup.mode != Mode::None && is_captured(func);
    for (func, built) in program.funcs.iter().zip(&built).filter(|(func, _)| captures(func)) {
        capture(&mut rt, &world, func, built)?;
    }
    arm(program.trip);
    make_temporaries(program.seed);
    let mut settled = false;
    let mut steps = Vec::new();
    let mut held: Vec<Held> = Vec::new();
    let mut seen: HashMap<String, usize> = HashMap::new();
    for at in 0..program.steps.len() {
        if !program.steps[at].replace.is_empty() {
            world.replace(&rt, program, at)?;
            seen.clear();
        }
        if program.steps[at].twin != twin {
            twin = !twin;
            std::mem::swap(&mut built, &mut twins);
            seen.clear();
        }
        for &f in &program.steps[at].rebuild {
            let func = &program.funcs[f];
            build::rebuild(&mut rt, &mut built[f], func, setup, gives_up)?;
            if captures(func) {
                disarmed(|| capture(&mut rt, &world, func, &built[f]))?;
            }
            seen.clear();
        }
        if program.steps[at].estimate {
            estimate(&mut rt, &world, program, &built, setup)?;
        }
        let before = rt.stats();
        let out = {
            let step = rt.step()?;
            let out = one_step(&step, &world, program, &built, at, &mut held)?;
            // What earlier steps left is what it was, whatever ran since.
            for (kept, values) in &held {
                let now = kept.view(step.scope())?;
                if read_all(&step, &now)? != *values {
                    return Err(nonsense(format!("a kept value is another after step {at}")));
                }
            }
            out
        };
        if held.len() > 2 {
            held.remove(0);
        }
        if (program.seed + at as u64).is_multiple_of(5) {
            // Recordings must not notice.
            rt.trim()?;
        }
        let after = rt.stats();
        // The same calls on the same path, from the same memory, again and again.
        let size = if program.apart { 0 } else { program.steps[at].v };
        let path = format!("{:?} {size} {:?}", program.steps[at].calls, out.decisions);
        let times = seen.entry(path).or_default();
        *times += 1;
        // What fails is recorded later, or never.
        let failed = out.calls.iter().any(Vec::is_empty);
        if *times > SETTLED
            && !gives_up
            && !failed
            && (after.recordings, after.warmups) != (before.recordings, before.warmups)
        {
            // Each key may have a few recordings for results that are held, and a few for live-ins that alternate. Where
            // regions make temporaries, other ones may be taken for their results in a few calls, whenever these come.
            let varies = program.steps[at].calls.iter().any(|call| call.hold) || varies(program.seed);
            let again = || {
                one_step(&rt.step()?, &world, program, &built, at, &mut held)?;
                held.drain(..held.len().saturating_sub(2));
                Ok(rt.stats())
            };
            if !varies || !converges(again)? {
                return Err(nonsense(format!(
                    "step {at} was seen {times} times and still records: {before:?} became {after:?}"
                )));
            }
            // Steps that are made again write and draw on: what follows is no longer what the oracle expects.
            if !program.is_pure() {
                steps.push(out);
                break;
            }
        }
        let fails = program.trip.is_some() || program.funcs.iter().any(|f| f.fails);
        if after.fallbacks != 0 && !gives_up || after.aborted != after.captures_invalidated && !fails {
            return Err(nonsense(format!("step {at} fell back or aborted: {after:?}")));
        }
        let recorded = (after.recordings, after.warmups) != (before.recordings, before.warmups);
        settled = *times > 2 && !recorded && !gives_up && !fails;
        steps.push(out);
        folded.add(&rt.take_events());
    }
    // A step that is made again finds what it has written before its later calls.
    let is_same = program.steps.last().is_some_and(|step| step.writes.iter().all(|write| write.before == 0));
    if let (true, true, Some(last)) = (settled, program.is_pure() && is_same, steps.last()) {
        run_closed(&mut rt, &world, program, &built, last)?;
    }
    folded.add(&rt.take_events());
    let stats = rt.stats();
    match folded.differs_from(&stats).filter(|_| folds) {
        Some(difference) => Err(nonsense(difference)),
        None => {
            let passes = if setup.mode == Mode::None { Counts::default() } else { Counts::of(&rt) };
            Ok(Run { steps, stats, passes })
        }
    }
}

fn one_step<'s>(
    step: &Step<'s>,
    world: &World,
    program: &Program,
    built: &[Built],
    at: usize,
    held: &mut Vec<Held>,
) -> Result<StepOut> {
    let plan = &program.steps[at];
    grow(plan.v);
    let picks = program.picks();
    let readers = world.readers(step)?;
    let mut out = StepOut::default();
    let mut results: Vec<Vec<Val<'s>>> = Vec::new();
    let mut flats = Vec::new();
    let mut again: Vec<(usize, Vec<Val<'s>>)> = Vec::new();
    let filled = Filled::default();
    for (index, call) in plan.calls.iter().enumerate() {
        written::write(step, world, program, at, index)?;
        let func = &program.funcs[call.func];
        let feed = Feed::Seeded { data: plan.data, index, results: &results, filled: &filled };
        let before = out.decisions.len();
        let attempt = |decisions: &mut Vec<u64>| {
            let call = || one_call(step, world, &built[call.func], func, call, feed, decisions);
            match catch_unwind(AssertUnwindSafe(call)) {
                Ok(Err(error)) => End::of(&error).map_or(Err(error), |end| Ok(Err(end))),
                Ok(result) => result.map(Ok),
                Err(panic) if panic.downcast_ref::<&str>() == Some(&ASKED) => Ok(Err(End::Asked)),
                Err(panic) if panic.downcast_ref::<String>().is_some_and(|s| s == ASKED) => {
                    Ok(Err(End::Asked))
                }
                Err(panic) => resume_unwind(panic),
            }
        };
        let mut result = attempt(&mut out.decisions)?;
        if result.is_err() && tripped() {
            out.decisions.truncate(before);
            result = attempt(&mut out.decisions)?;
        }
        if picks {
            let later = pending(step)?;
            result = match (result, later) {
                (Ok(_), Some(end)) => Err(end),
                (result, _) => result,
            };
        }
        let end = result.as_ref().err().cloned();
        let result = result.unwrap_or_default();
        out.ends.push(end);
        step.check_memory()?;
        built[call.func].fills.check(step, &built[call.func].function, func)?;
        for _ in 0..repeats(program) {
            let call = one_call(step, world, &built[call.func], func, call, feed, &mut Vec::new())?;
            again.push((index, call));
        }
        // A result that no later call uses may go as soon as it is read.
        let used = plan.calls.iter().any(|c| {
            c.sources.iter().any(|s| match s {
                Source::Result { call, .. } | Source::Derived { call, .. } => *call == index,
                Source::Upload { .. } => false,
            })
        });
        if call.hold || used {
            flats.push(None);
            results.push(result);
        } else {
            flats.push(Some(result.iter().map(|v| v.read(step)).collect::<Result<Vec<_>>>()?));
            results.push(Vec::new());
        }
    }
    for (result, flat) in results.iter().zip(flats) {
        let read = match flat {
            Some(read) => read,
            None => result.iter().map(|v| v.read(step)).collect::<Result<_>>()?,
        };
        out.calls.push(read);
    }
    for (index, result) in again {
        let read: Vec<Flat> = result.iter().map(|v| v.read(step)).collect::<Result<_>>()?;
        if read != out.calls[index] {
            return Err(nonsense(format!(
                "call {index}, made again, gave {read:?}, not {:?}",
                out.calls[index]
            )));
        }
    }
    check_held(step, &filled)?;
    if results.iter().any(|r| !r.is_empty()) {
        held.push((step.keep(&results)?, read_all(step, &results)?));
    }
    out.states = world.states(step, readers)?;
    Ok(out)
}

fn read_all<'s>(step: &Step<'s>, values: &[Vec<Val<'s>>]) -> Result<Vec<Vec<Flat>>> {
    values.iter().map(|call| call.iter().map(|v| v.read(step)).collect()).collect()
}

/// What the inputs of a call hold.
#[derive(Clone, Copy)]
enum Feed<'a, 's> {
    /// Data of a step, and results of its calls so far.
    Seeded { data: u64, index: usize, results: &'a [Vec<Val<'s>>], filled: &'a Filled<'s> },
    /// What `capture_all` makes.
    Synthetic(&'a Synthetic<'a>),
}

fn one_call<'s>(
    step: &Step<'s>,
    world: &World,
    built: &Built,
    func: &Func,
    call: &Call,
    feed: Feed<'_, 's>,
    decisions: &mut Vec<u64>,
) -> Result<Vec<Val<'s>>> {
    let given = |i: usize| match feed {
        Feed::Seeded { data, index, .. } => data_of(&func.inputs[i], call.b, seed_of(data, index, i)),
        Feed::Synthetic(_) if func.inputs[i].ty.elem == Elem::U32 => Data::U(vec![0]),
        Feed::Synthetic(_) => Data::F(vec![0.0]),
    };
    let fill = |given: &Given<'_, 's>| match feed {
        Feed::Seeded { filled, .. } => built.fills.fill(step, &built.function, (func, call), given, filled),
        Feed::Synthetic(_) => Ok(None),
    };
    let mut inputs = Inputs::new(step, &built.function);
    let mut sources = call.sources.iter();
    // What the caller's own tensors do: blocks that shift the next upload, and the uploads themselves.
    let mut held: Vec<Val<'s>> = Vec::new();
    for (i, input) in func.inputs.iter().enumerate() {
        let shape = shape_of(&input.ty, call.b);
        match input.kind {
            Kind::Host => match (feed, input.ty.elem) {
                (Feed::Synthetic(s), Elem::U32) => inputs.host::<u32>(i, (&s.host(i)?).into()),
                (Feed::Synthetic(s), _) => inputs.host::<f32>(i, (&s.host(i)?).into()),
                (Feed::Seeded { .. }, _) => {
                    let fills = call.fills.iter().any(|fill| fill.input == i);
                    let val = fills.then(|| upload(step, &shape, &given(i))).transpose()?;
                    let tensor = match &val {
                        Some(tensor) => fill(&Given { input: i, tensor, data: Some((given(i), &shape)) })?,
                        None => None,
                    };
                    match &tensor {
                        Some(Val::U(t)) => inputs.host::<u32>(i, t.into()),
                        Some(Val::F(t)) => inputs.host::<f32>(i, t.into()),
                        _ => host(&mut inputs, i, &given(i), &shape),
                    }
                    held.extend(tensor);
                }
            },
            Kind::Scalar => match given(i) {
                Data::F(d) => inputs.scalar(i, d[0]),
                Data::U(d) => inputs.scalar(i, d[0]),
            },
            Kind::Device => {
                let val = match (feed, input.ty.elem) {
                    (Feed::Synthetic(s), Elem::U32) => Val::U(s.device(step, i)?),
                    (Feed::Synthetic(s), _) => Val::F(s.device(step, i)?),
                    (Feed::Seeded { results, .. }, _) => {
                        let val = source(step, sources.next(), &shape, || given(i), results, &mut held)?;
                        let filled = fill(&Given { input: i, tensor: &val, data: None })?;
                        filled.unwrap_or(val)
                    }
                };
                each!(&val, t => inputs.device(i, t));
                held.push(val);
            }
        }
    }
    let frame = inputs.enter((&call.key, &world.all()))?;
    let mut vars: Vec<Option<Val<'s>>> = vec![None; func.vars];
    for (i, Input { kind, ty }) in func.inputs.iter().enumerate() {
        vars[i] = Some(match (kind, ty.elem) {
            (Kind::Scalar, Elem::U32) => {
                let s: Scalar<'s, u32> = frame.host_scalar(i);
                Val::U(s.tensor().clone())
            }
            (Kind::Scalar, _) => {
                let s: Scalar<'s, f32> = frame.host_scalar(i);
                Val::F(s.tensor().clone())
            }
            (_, Elem::F32) => Val::F(frame.tensor(i)),
            (_, Elem::Bf16) => Val::H(frame.tensor(i)),
            (_, Elem::U32) => Val::U(frame.tensor(i)),
            (_, Elem::Bool) => Val::B(frame.tensor(i)),
            (_, Elem::F64) => Val::D(frame.tensor(i)),
            (_, Elem::I64) => Val::L(frame.tensor(i)),
            (_, Elem::I8) => Val::S(frame.tensor(i)),
        });
    }
    let mut hosts = vec![0; func.hosts.max(1)];
    hosts[0] = call.key;
    frame.run::<_, Error, _>(|cx| {
        let mut scene = Scene { cx, world, sites: &built.sites, vars, hosts, decisions };
        scene.body(&func.body)?;
        func.outputs.iter().map(|&v| scene.var(v)).collect()
    })
}

fn host(inputs: &mut Inputs<'_, '_>, i: usize, data: &Data, shape: &[usize]) {
    // A vector's shape follows from its length.
    match (data, shape.len()) {
        (Data::F(d), 1) => inputs.host::<f32>(i, d.into()),
        (Data::U(d), 1) => inputs.host::<u32>(i, d.into()),
        (Data::F(d), _) => inputs.host::<f32>(i, (&d[..], shape).into()),
        (Data::U(d), _) => inputs.host::<u32>(i, (&d[..], shape).into()),
    }
}

fn source<'s>(
    step: &Step<'s>,
    source: Option<&Source>,
    shape: &[usize],
    given: impl Fn() -> Data,
    results: &[Vec<Val<'s>>],
    held: &mut Vec<Val<'s>>,
) -> Result<Val<'s>> {
    match source {
        Some(Source::Result { call, out }) => Ok(results[*call][*out].clone()),
        Some(Source::Derived { call, out }) => derive(&results[*call][*out]),
        Some(Source::Upload { behind }) => {
            for &n in behind {
                held.push(upload(step, &[n], &Data::U(vec![7; n]))?);
            }
            upload(step, shape, &given())
        }
        None => upload(step, shape, &given()),
    }
}

struct Scene<'a, 's> {
    cx: Piecewise<'s>,
    world: &'a World,
    sites: &'a [&'static Site],
    vars: Vec<Option<Val<'s>>>,
    hosts: Vec<u64>,
    decisions: &'a mut Vec<u64>,
}

impl<'s> Scene<'_, 's> {
    fn var(&self, v: usize) -> Result<Val<'s>> {
        self.vars.get(v).cloned().flatten().ok_or_else(|| nonsense(format!("v{v} is not there")))
    }

    fn segment(&mut self, block: &Block) -> Result<()> {
        let vals = block.ins.iter().map(|&v| self.var(v)).collect::<Result<_>>()?;
        let keys = block.keys.iter().map(|&h| self.hosts[h]).collect();
        let live = Live::of(block, vals, keys, self.world.owned(block)?, false);
        // The host value tells whether words come back right.
        let (outs, words): (Vec<Val<'s>>, u64) =
            self.cx
                .segment::<_, _, Error, _>(self.sites[block.site], live, |k| Ok((k.body()?, words_of(k))))?;
        if words != block.code.len() as u64 {
            return Err(nonsense(format!("segment {} gave back {words} as its host value", block.site)));
        }
        for (&(_, v), val) in block.outs.iter().zip(outs) {
            self.vars[v] = Some(val);
        }
        Ok(())
    }

    fn eager(&mut self, block: &Block, capturable: bool) -> Result<()> {
        let vals = block.ins.iter().map(|&v| self.var(v)).collect::<Result<_>>()?;
        let keys = block.keys.iter().map(|&h| self.hosts[h]).collect();
        let live = Live::of(block, vals, keys, self.world.owned(block)?, false);
        let support = if capturable { Support::Always } else { Support::Never };
        let outs: Vec<Val<'s>> = {
            let region = self.cx.eager(self.sites[block.site], support)?;
            let held = if capturable { Vec::new() } else { temporaries(&region)? };
            let value = live.run()?;
            drop(held);
            let outs: Tensors<'s> = (&&RegionResult::new(Tensors(value))).finish(region)?;
            outs.0
        };
        for (&(_, v), val) in block.outs.iter().zip(outs) {
            self.vars[v] = Some(val);
        }
        Ok(())
    }

    fn read(&mut self, site: usize, var: usize, host: usize) -> Result<()> {
        let digest: u64 = {
            let region = self.cx.eager(self.sites[site], Support::Never)?;
            let value = self.var(var)?.read(&region)?.digest();
            (&&RegionResult::new(value)).finish(region)?
        };
        self.decisions.push(digest);
        self.hosts[host] = digest;
        Ok(())
    }

    fn body(&mut self, body: &[Stmt]) -> Result<()> {
        for stmt in body {
            match stmt {
                Stmt::Segment(block) => self.segment(block)?,
                Stmt::Eager { block, capturable } => self.eager(block, *capturable)?,
                Stmt::Read { site, var, host } => self.read(*site, *var, *host)?,
                Stmt::Loop { count, body } => {
                    let times = match count {
                        Count::Times(n) => *n as u64,
                        Count::Host(h) => self.hosts[*h],
                    };
                    for _ in 0..times {
                        self.body(body)?;
                    }
                }
                Stmt::If { cond, then, other } => {
                    let odd = self.hosts[*cond] % 2 == 1;
                    self.body(if odd { then } else { other })?;
                }
                Stmt::Drop(v) => self.vars[*v] = None,
                Stmt::Copy { from, to } => self.vars[*to] = Some(self.var(*from)?),
            }
        }
        Ok(())
    }
}

fn words_of(live: &Live<'_, '_>) -> u64 {
    live.block.code.len() as u64
}
