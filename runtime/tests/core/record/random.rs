//! Generators where captures are invalidated: what is made again, given up or restored draws one stream.

use graphable::{
    Device, Mode, Random, Result, Rng, RngState, Runtime, Schedule, backend::faulty::FaultPlan, kernel, ops,
};

use crate::support::*;

fn program<'s>(cx: Piecewise<'s>, x: &T<'s>, rng: &Rng) -> Result<T<'s>> {
    let (h,) = seg!("a", cx, (x, rng), |k| {
        let u = ops::uniform(k.1, k.0.scope(), k.0.shape(), 0.0..1.0)?;
        Ok((ops::add(k.0, &u)?,))
    })?;
    seg!("b", cx, (&h, rng), |k| ops::add(k.0, &ops::uniform(k.1, k.0.scope(), k.0.shape(), 0.0..1.0)?))
}

/// Calls, each of which draws two tensors.
struct Case {
    rt: Checked,
    plan: std::sync::Arc<FaultPlan>,
    graph: Graph,
    rng: Rng,
    calls: u64,
}

impl Case {
    fn new(mode: Mode, audit_every: u32) -> Self {
        let (mut rt, plan) = faulty();
        let spec = Spec::inputs(vec![host("x", &[Dim::Const(2)])]).mode(mode);
        let graph = spec.with(|o| o.audit_every(audit_every)).build(&mut rt);
        let rng = Rng::new(&rt, 3).unwrap();
        Self { rt, plan, graph, rng, calls: 0 }
    }

    fn check(&mut self, what: &str) {
        let step = self.rt.step().unwrap();
        let rng = &self.rng;
        let y = self.graph.call(&step, &[x()], rng, |cx, a| program(cx, &a.t[0], rng)).unwrap();
        let number = |call, i| Random::at(RngState { seed: 3, counter: 2 * self.calls + call }, i).uniform();
        let expected = [0, 1].map(|i| X[i as usize] + number(0, i) + number(1, i));
        assert_eq!(step.read(&y).unwrap(), expected, "{what}, call {}", self.calls);
        self.calls += 1;
        assert_eq!(rng.save(&step).unwrap().counter, 2 * self.calls, "{what}");
    }
}

#[test]
fn captures_that_are_made_again_draw_once() {
    for (mode, audits) in [(Mode::Piecewise, 0), (Mode::Full, 0), (Mode::Piecewise, 2), (Mode::Full, 2)] {
        for (after, times) in (0..10).flat_map(|after| [1, 3, 9].map(|times| (after, times))) {
            let mut case = Case::new(mode, audits);
            let what = format!("{mode}, audits {audits}, after {after}, {times} times");
            case.check(&what);
            case.plan.invalidate_captures([Some(after)].repeat(times));
            for _ in 0..6 {
                case.check(&what);
            }
            let stats = case.rt.stats();
            assert!(stats.replays > 0 && (audits == 0 || stats.audits > 0), "{what}: {stats:?}");
            assert!(after > 2 || stats.captures_invalidated > 0, "{what}: {stats:?}");
        }
    }
}

/// Two numbers for each element, from two generators or from one.
#[kernel]
fn between(x: f32, r: Random, s: Random) -> f32 {
    x + r.uniform() - s.uniform()
}

/// What [`between`] returns: each parameter draws after those before it that share its generator.
fn drawn(x: [f32; 2], counters: &mut [u64; 3], of: [usize; 2]) -> [f32; 2] {
    let before = *counters;
    let states = of.map(|at| {
        counters[at] += 1;
        RngState { seed: at as u64, counter: before[at] }
    });
    let second = RngState { counter: counters[of[1]] - 1, ..states[1] };
    [0, 1].map(|i| x[i] + Random::at(states[0], i as u64).uniform() - Random::at(second, i as u64).uniform())
}

/// Whether two parameters have one generator differs from call to call.
#[test]
fn generators_that_are_one_now_and_then() {
    for (mode, audits) in [(Mode::None, 0), (Mode::Piecewise, 0), (Mode::Full, 0), (Mode::Piecewise, 2)] {
        let mut rt = Checked::new(Runtime::new(Device::cpu()).unwrap());
        let spec = Spec::inputs(vec![host("x", &[Dim::Const(2)])]).mode(mode);
        let graph = spec.with(|o| o.audit_every(audits)).build(&mut rt);
        let rngs = [0, 1, 2].map(|seed| Rng::new(&rt, seed).unwrap());
        let mut counters = [0; 3];
        for call in 0..36 {
            let [i, j] = [[0, 1], [1, 1], [0, 2], [2, 2], [1, 0], [0, 0]][call * 5 % 6];
            let what = format!("{mode}, audits {audits}, call {call} with {i} and {j}");
            let step = rt.step().unwrap();
            let (r, s) = (&rngs[i], &rngs[j]);
            let y = graph.call(&step, &[x()], (r, s), |cx, a| {
                let (h,) = seg!("a", cx, (&a.t[0], r, s), |k| Ok((between(k.0, k.1, k.2)?,)))?;
                seg!("b", cx, (&h, s, r), |k| between(k.0, k.1, k.2))
            });
            let y = step.read(&y.unwrap_or_else(|e| panic!("{what}: {e}"))).unwrap();
            let h = drawn(X, &mut counters, [i, j]);
            assert_eq!(y, drawn(h, &mut counters, [j, i]), "{what}");
        }
        assert_eq!(rt.stats().replays > 0, mode != Mode::None);
    }
}

/// What kernels of two generators compare does not tell apart the real sizes of a bucket, also where inputs overlap.
#[test]
fn two_generators_leave_buckets_alone() {
    let mut rt = Checked::new(Runtime::new(Device::cpu()).unwrap());
    let spec = Spec { symbols: &["B"], ..Spec::inputs(vec![host("x", &[Dim::Symbol(0)])]) };
    let spec = spec.mode(Mode::Piecewise).with(|o| {
        o.bucket("B", Schedule::new([4]));
    });
    let graph = spec.build(&mut rt);
    let (r, s) = (Rng::new(&rt, 1).unwrap(), Rng::new(&rt, 2).unwrap());
    let call = |rt: &mut Runtime, rows: usize| {
        let step = rt.step().unwrap();
        let values = vec![1.0; rows];
        let given = [In::Host((&values[..]).into())];
        let y = graph.call(&step, &given, (&r, &s), |cx, a| {
            let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
            seg!("b", cx, (&h, &h, &r, &s), |k| between(&ops::add(k.0, k.1)?, k.2, k.3))
        });
        assert_eq!(step.read(&y.unwrap()).unwrap().len(), rows);
    };
    (0..3).for_each(|_| call(&mut rt, 4));
    let recorded = rt.stats().recordings;
    [1, 2, 3, 4, 2, 1].into_iter().for_each(|rows| call(&mut rt, rows));
    assert_eq!(rt.stats().recordings, recorded);
    assert!(rt.stats().replays >= 12, "{:?}", rt.stats());
}
