//! Inputs that are filled in place: calls with them copy nothing, in every mode.

#![deny(warnings, missing_docs)]

use std::sync::Arc;

use graphable::{
    CopySlot, Event,
    backend::{
        cpu::CpuOptions,
        faulty::{FaultCall, FaultPlan, FaultyBackend},
    },
    prelude::*,
};

use crate::device;

const MODES: [Mode; 3] = [Mode::None, Mode::Piecewise, Mode::Full];

fn runtime() -> Runtime {
    let rt = Runtime::new(device::device(CpuOptions::default().test_mode(1).threads(1))).unwrap();
    rt.keep_events(true);
    rt
}

/// Both dimensions of `x` can be padded.
#[graphable]
pub fn sums(
    #[host]
    #[dims(B, T)]
    x: &Tensor<f32>,
    #[dims(B)] y: &Tensor<f32>,
    #[host] by: &Scalar<f32>,
) -> Result<(Tensor<f32>, Tensor<f32>)> {
    let column = ops::unsqueeze(y, 1)?;
    Ok((ops::add(&ops::mul(x, by)?, &column)?, ops::neg(y)?))
}

fn graph(rt: &mut Runtime, mode: Mode) -> SumsGraph {
    let builder = SumsGraph::builder().mode(mode).bucket("B", Schedule::new([4, 8]));
    builder.bucket("T", Schedule::new([4, 8])).build(rt).unwrap()
}

/// `b` times `t` numbers, `b` numbers, and what `sums` makes of them.
fn data(b: usize, t: usize, seed: f32) -> (Vec<f32>, Vec<f32>, Vec<f32>, Vec<f32>) {
    let x: Vec<f32> = (0..b * t).map(|i| i as f32 + seed).collect();
    let y: Vec<f32> = (0..b).map(|i| i as f32 - seed).collect();
    let sums = x.iter().enumerate().map(|(i, x)| 2.0 * x + y[i / t]).collect();
    let negated = y.iter().map(|y| -y).collect();
    (x, y, sums, negated)
}

#[test]
fn a_call_with_inputs_that_were_filled_copies_nothing() {
    for mode in MODES {
        let mut rt = runtime();
        let graph = graph(&mut rt, mode);
        // Also from large to small: the larger data must not come back.
        for (b, t) in [(8, 8), (3, 5), (4, 4), (1, 2), (7, 3)] {
            for seed in [0.5, 1.5] {
                let (x, y, sums, negative) = data(b, t, seed);
                {
                    let step = rt.step().unwrap();
                    let given = step.tensor(&[b], &y).unwrap();
                    step.take_events();
                    let x = graph.buffers().x.fill(&step, (&x, &[b, t])).unwrap();
                    assert_eq!(copied(&step), [0u64; 0], "host data is uploaded");
                    let y = graph.buffers().y.fill_from(&step, &given).unwrap();
                    assert_eq!(copied(&step).len(), 1, "the one copy");
                    for _ in 0..3 {
                        let (sum, negated) = graph.call(&step, &x, &y, 2.0).unwrap();
                        assert_eq!(step.read(&sum).unwrap(), sums, "{mode} {b} {t}");
                        assert_eq!(step.read(&negated).unwrap(), negative, "{mode} {b} {t}");
                    }
                    assert_eq!(copied(&step), [0u64; 0], "{mode} {b} {t}");
                    assert_eq!(
                        step.read(&y).unwrap(),
                        step.read(&given).unwrap(),
                        "the tensors stay the caller's"
                    );
                    step.check_memory().unwrap();
                }
                // The same call with data that is given is the same recording, and copies `y` where it is padded.
                let nodes = rt.stats().recordings;
                let step = rt.step().unwrap();
                let given = step.tensor(&[b], &y).unwrap();
                let (sum, _) = graph.call(&step, (&x, &[b, t]), &given, 2.0).unwrap();
                assert_eq!(step.read(&sum).unwrap(), sums);
                assert_eq!(copied(&step).len(), usize::from(mode != Mode::None));
                drop((given, sum));
                drop(step);
                if mode != Mode::None {
                    assert_eq!(rt.stats().recordings, nodes, "{mode} {b} {t}");
                }
            }
        }
    }
}

/// Bytes that were copied to inputs since the last look, for each copy.
fn copied(step: &Step<'_>) -> Vec<u64> {
    let input = |event: Event| match event {
        Event::Copied { slot: CopySlot::Input, bytes } => Some(bytes),
        _ => None,
    };
    step.take_events().into_iter().filter_map(input).collect()
}

#[test]
fn data_stays_from_step_to_step() {
    for mode in MODES {
        let mut rt = runtime();
        let graph = graph(&mut rt, mode);
        let (x, y, sums, _) = data(3, 2, 0.0);
        {
            let step = rt.step().unwrap();
            let missing = graph.buffers().x.filled(&step).unwrap_err().to_string();
            assert!(missing.contains("`x`") && missing.contains("fill it again"), "{missing}");
            graph.buffers().x.fill(&step, (&x, &[3, 2])).unwrap();
        }
        for _ in 0..4 {
            let step = rt.step().unwrap();
            let x = graph.buffers().x.filled(&step).unwrap();
            let y = step.tensor(&[3], &y).unwrap();
            let (sum, _) = graph.call(&step, &x, &y, 2.0).unwrap();
            assert_eq!(step.read(&sum).unwrap(), sums);
            assert_eq!(step.read(&graph.buffers().x.filled(&step).unwrap()).unwrap(), step.read(&x).unwrap());
        }
        // Other data needs the memory.
        let step = rt.step().unwrap();
        let y = step.tensor(&[3], &y).unwrap();
        graph.call(&step, (&[1.0f32; 6][..], &[3, 2]), &y, 2.0).unwrap();
        assert!(matches!(graph.buffers().x.filled(&step), Err(Error::Input { input: "x", .. })), "{mode}");
    }
}

#[test]
fn a_tensor_that_is_held_keeps_its_values() {
    for mode in MODES {
        let mut rt = runtime();
        let graph = graph(&mut rt, mode);
        for _ in 0..4 {
            let step = rt.step().unwrap();
            let (x, y, sums, _) = data(3, 2, 0.0);
            let (other_x, other_y, other_sums, _) = data(3, 2, 7.0);
            let first = graph.buffers().x.fill(&step, (&x, &[3, 2])).unwrap();
            let second = graph.buffers().x.fill(&step, (&other_x, &[3, 2])).unwrap();
            let again = graph.buffers().x.fill_from(&step, &first).unwrap();
            let (y, other_y) = (step.tensor(&[3], &y).unwrap(), step.tensor(&[3], &other_y).unwrap());
            // A call with given data, too.
            graph.call(&step, (&[9.0f32; 6][..], &[3, 2]), &y, 2.0).unwrap();
            for (x, y, sums) in [(&first, &y, &sums), (&second, &other_y, &other_sums), (&again, &y, &sums)] {
                let (sum, _) = graph.call(&step, x, y, 2.0).unwrap();
                assert_eq!(step.read(&sum).unwrap(), *sums, "{mode}");
            }
            assert_eq!(step.read(&first).unwrap(), x, "{mode}");
            assert_eq!(step.read(&second).unwrap(), other_x, "{mode}");
        }
        let recordings = rt.stats().recordings;
        let step = rt.step().unwrap();
        let first = graph.buffers().x.fill(&step, (&[1.0f32; 6][..], &[3, 2])).unwrap();
        let y = step.tensor(&[3], &[0.0f32; 3]).unwrap();
        graph.call(&step, &first, &y, 2.0).unwrap();
        assert_eq!(step.stats().recordings, recordings, "each buffer is recorded once");
    }
}

/// A call needed the memory of the last fill; that of an older one, which the caller still has, is not the last.
#[test]
fn an_older_fill_does_not_become_the_last_one() {
    for mode in [Mode::Piecewise, Mode::Full] {
        let mut rt = runtime();
        let graph =
            GivenBackGraph::builder().mode(mode).bucket("B", Schedule::new([4])).build(&mut rt).unwrap();
        let buffer = graph.buffers().x;
        let step = rt.step().unwrap();
        let older = buffer.fill(&step, &[1.0, 2.0]).unwrap();
        drop(buffer.fill(&step, &[4.0, 5.0]).unwrap());
        assert_eq!(step.read(&buffer.filled(&step).unwrap()).unwrap(), [4.0, 5.0], "{mode}");
        graph.call(&step, &step.tensor(&[2], &[0.0; 2]).unwrap()).unwrap();
        let error = buffer.filled(&step).map(|filled| step.read(&filled).unwrap()).unwrap_err();
        assert!(matches!(error, Error::Input { input: "x", .. }), "{mode}: {error}");
        assert_eq!(step.read(&older).unwrap(), [1.0, 2.0], "{mode}");
    }
}

/// A fill that fails says so, and is all that fails.
#[test]
fn a_fill_can_fail() {
    for call in [FaultCall::Alloc, FaultCall::HostWrite, FaultCall::Copy, FaultCall::Launch] {
        let plan = Arc::new(FaultPlan::default());
        let options = CpuOptions::default().test_mode(1).threads(1);
        let backend = FaultyBackend::new(device::backend(options), Arc::clone(&plan));
        let mut rt = Runtime::with_backend(Box::new(backend)).unwrap();
        let graph = graph(&mut rt, Mode::Piecewise);
        let (x, y, sums, _) = data(3, 2, 0.5);
        let mut failed = false;
        for _ in 0..2 {
            let step = rt.step().unwrap();
            let given = step.tensor(&[3], &y).unwrap();
            plan.arm(Some(call), 0, false);
            let buffers = graph.buffers();
            let results = [buffers.x.fill(&step, (&x, &[3, 2])), buffers.y.fill_from(&step, &given)];
            plan.disarm();
            let [x_fails, y_fails] = results.map(|result| result.is_err());
            failed |= x_fails || y_fails;
            assert_eq!(buffers.x.filled(&step).is_err(), x_fails, "{call:?}");
            assert_eq!(buffers.y.filled(&step).is_err(), y_fails, "{call:?}");
            for _ in 0..3 {
                let x = buffers.x.fill(&step, (&x, &[3, 2])).unwrap();
                let y = buffers.y.fill_from(&step, &given).unwrap();
                let (sum, _) = graph.call(&step, &x, &y, 2.0).unwrap();
                assert_eq!(step.read(&sum).unwrap(), sums, "{call:?}");
            }
        }
        assert!(failed || call == FaultCall::Copy, "{call:?} was not made");
    }
}

/// Gives its input back, and a view of it.
#[graphable]
pub fn given_back(#[dims(B)] x: &Tensor<f32>) -> Result<(Tensor<f32>, Tensor<f32>)> {
    Ok((x.clone(), ops::neg(x)?))
}

#[test]
fn what_leaves_a_call_or_is_kept_is_not_the_buffer() {
    for mode in MODES {
        let mut rt = runtime();
        let graph =
            GivenBackGraph::builder().mode(mode).bucket("B", Schedule::new([4])).build(&mut rt).unwrap();
        let mut kept = Vec::new();
        for seed in 0..4 {
            let step = rt.step().unwrap();
            let values = [seed as f32, 1.0, 2.0];
            let x = graph.buffers().x.fill(&step, &values).unwrap();
            kept.push((step.keep(&x).unwrap(), values));
            let (same, _) = graph.call(&step, &x).unwrap();
            drop(x);
            let other = graph.buffers().x.fill(&step, &[9.0, 9.0, 9.0]).unwrap();
            let (_, negated) = graph.call(&step, &other).unwrap();
            assert_eq!(step.read(&same).unwrap(), values, "{mode}");
            assert_eq!(step.read(&negated).unwrap(), [-9.0; 3], "{mode}");
        }
        let step = rt.step().unwrap();
        for (kept, values) in &kept {
            assert_eq!(step.read(&kept.view(step.scope()).unwrap()).unwrap(), *values, "{mode}");
        }
    }
}

/// A view of the buffer, and a tensor of another parameter's buffer, are tensors as any other.
#[test]
fn other_tensors_are_copied_as_ever() {
    for mode in MODES {
        let mut rt = runtime();
        let graph =
            GivenBackGraph::builder().mode(mode).bucket("B", Schedule::new([4])).build(&mut rt).unwrap();
        let step = rt.step().unwrap();
        let x = graph.buffers().x.fill(&step, &[1.0, 2.0, 3.0]).unwrap();
        let tail = ops::narrow(&x, 0, 1, 2).unwrap();
        for _ in 0..3 {
            let (_, negated) = graph.call(&step, &tail).unwrap();
            assert_eq!(step.read(&negated).unwrap(), [-2.0, -3.0], "{mode}");
            let (_, negated) = graph.call(&step, &x).unwrap();
            assert_eq!(step.read(&negated).unwrap(), [-1.0, -2.0, -3.0], "{mode}");
        }
        assert_eq!(step.read(&x).unwrap(), [1.0, 2.0, 3.0], "{mode}");
    }
}

#[test]
fn errors_are_typed() {
    let mut rt = runtime();
    let mut elsewhere = runtime();
    let graph = graph(&mut rt, Mode::Piecewise);
    let buffers = graph.buffers();
    assert_eq!((buffers.x.name(), buffers.y.name()), ("x", "y"));
    let other = elsewhere.step().unwrap();
    assert!(matches!(buffers.y.fill(&other, &[1.0]), Err(Error::DifferentRuntimes { .. })));
    let step = rt.step().unwrap();
    let wrong = |result: Result<Tensor<'_, f32>>, text: &str| {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Input { function: "sums", .. }), "{error}");
        assert!(error.to_string().contains(text), "{error}");
    };
    wrong(buffers.x.fill(&step, &[1.0, 2.0]), "do not follow from its length");
    wrong(buffers.x.fill(&step, (&[1.0f32; 5][..], &[3, 2])), "6 elements, the data 5");
    wrong(buffers.x.fill(&step, (&[1.0f32; 4][..], &[4])), "`#[dims]` has 2 entries");
    wrong(buffers.y.fill(&step, &[]), "B is 0");
    wrong(buffers.y.fill_from(&step, &step.tensor(&[2, 2], &[0.0; 4]).unwrap()), "`#[dims]` has 1 entries");
    // A host parameter takes its own memory alone.
    let y = step.tensor(&[2], &[1.0, 2.0]).unwrap();
    let x = step.tensor(&[2, 2], &[0.0; 4]).unwrap();
    let error = graph.call(&step, &x, &y, 1.0).map(drop).unwrap_err();
    assert!(error.to_string().contains("buffers().x.fill_from(&step, &tensor)"), "{error}");
    // Nothing is filled where something was wrong, and all goes on.
    assert!(buffers.x.filled(&step).is_err());
    let filled = buffers.x.fill_from(&step, &x).unwrap();
    assert!(matches!(
        graph.call(&step, &filled, &step.tensor(&[3], &[0.0; 3]).unwrap(), 1.0),
        Err(Error::DimsDisagree { .. })
    ));
    graph.call(&step, &filled, &y, 1.0).unwrap();
    step.check_memory().unwrap();
}

/// An input that was filled, its values, and its sizes.
type Held<'s> = (Tensor<'s, f32>, Vec<f32>, [usize; 2]);

/// Fills, calls and captures in any order: every tensor that is held keeps its values, and every call sees them.
#[test]
fn any_order_of_fills_and_calls() {
    for (mode, seed) in MODES.into_iter().flat_map(|mode| (0..8u64).map(move |seed| (mode, seed))) {
        let mut random = Random(seed * 2 + 1);
        let mut rt = runtime();
        let graphs = [graph(&mut rt, mode), graph(&mut rt, mode)];
        for _ in 0..6 {
            match random.below(8) {
                0 => graphs[0].capture_all(&mut rt).unwrap(),
                1 => drop(rt.trim().unwrap()),
                _ => {}
            }
            let step = rt.step().unwrap();
            let mut held: [Vec<Held<'_>>; 2] = Default::default();
            for round in 0..12 {
                let which = random.below(2);
                let graph = &graphs[which];
                let (b, t) = (1 + random.below(9), 1 + random.below(9));
                let (x, y, ..) = data(b, t, (seed + round) as f32);
                match random.below(5) {
                    0 => {
                        let filled = graph.buffers().x.fill(&step, (&x, &[b, t])).unwrap();
                        held[which].push((filled, x, [b, t]));
                    }
                    1 if !held[which].is_empty() => {
                        let at = random.below(held[which].len());
                        drop(held[which].swap_remove(at));
                    }
                    2 if !held[1 - which].is_empty() => {
                        // From a tensor, or a view, of another graph's memory, or of this one's.
                        let from = if random.below(2) == 0 { which } else { 1 - which };
                        let Some((tensor, values, [b, t])) = held[from].last() else { continue };
                        let rows = ops::narrow(tensor, 0, b / 2, b - b / 2).unwrap();
                        let values = values[b / 2 * t..].to_vec();
                        let shape = [b - b / 2, *t];
                        let filled = graph.buffers().x.fill_from(&step, &rows).unwrap();
                        held[which].push((filled, values, shape));
                    }
                    3 => {
                        let y = step.tensor(&[b], &y).unwrap();
                        let (sum, negated) = graph.call(&step, (&x, &[b, t]), &y, 2.0).unwrap();
                        assert_eq!(step.read(&sum).unwrap(), data(b, t, (seed + round) as f32).2);
                        let filled = graph.buffers().y.fill_from(&step, &negated).unwrap();
                        assert_eq!(step.read(&filled).unwrap(), step.read(&negated).unwrap());
                    }
                    _ if !held[which].is_empty() => {
                        let at = random.below(held[which].len());
                        let (x, values, [b, t]) = &held[which][at];
                        let y: Vec<f32> = (0..*b).map(|i| i as f32).collect();
                        let given = graph.buffers().y.fill(&step, &y).unwrap();
                        let (sum, _) = graph.call(&step, x, &given, 2.0).unwrap();
                        let sums: Vec<f32> =
                            values.iter().enumerate().map(|(i, x)| 2.0 * x + y[i / t]).collect();
                        assert_eq!(step.read(&sum).unwrap(), sums, "{mode} {seed}");
                    }
                    _ => {}
                }
                for (tensor, values, _) in held.iter().flatten() {
                    assert_eq!(step.read(tensor).unwrap(), *values, "{mode} {seed}");
                }
            }
            step.check_memory().unwrap();
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}
