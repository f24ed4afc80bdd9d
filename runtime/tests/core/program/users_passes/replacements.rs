//! What passes see and replace, and how they are part of the key.

use std::sync::{Arc, Mutex};

use graphable::{
    Mode, Passes,
    passes::{Constant, kernel},
    prelude::*,
};

use super::{Closure, TwoGraph, X, both, call, flipped, only, replacing_neg, report, runtime, unary};
use crate::device;

#[test]
fn launches_are_counted_and_replaced() {
    for mode in [Mode::Piecewise, Mode::Full] {
        for passes in [only(replacing_neg(-1.0)), Passes::default().with_at(0, replacing_neg(-1.0))] {
            let mut rt = runtime();
            rt.set_passes(passes);
            let sum = State::new(&rt, &[2], &[0.0f32; 2]).unwrap();
            let graph = TwoGraph::builder().mode(mode).audit_every(2).build(&mut rt).unwrap();
            for _ in 0..6 {
                assert_eq!(call(&mut rt, &graph, &sum).unwrap(), (vec![3.0, 4.0], X.to_vec()), "{mode}");
                let step = rt.step().unwrap();
                assert_eq!(step.read(&ops::load(step.scope(), &sum).unwrap()).unwrap(), [3.0, 4.0]);
                drop(step);
            }
            assert_eq!((rt.stats().recordings, rt.stats().fallbacks), (1, 0));
            assert!(rt.stats().audits >= 2);
            let report = report(&rt);
            assert_eq!(
                (report.made[0].operation, report.made[0].replaces, report.made[0].count),
                ("times", 1, 1)
            );
            assert_eq!(report.to_string(), "mine: 1 x times for 1 operation each");
            let tree = rt.tree();
            assert!(tree.to_string().contains("pass   mine: 1 x times"), "{tree}");
            // The body has not changed.
            assert!(tree.recordings[0].operations.contains(&"neg".to_owned()));
            assert!(
                tree.to_json()
                    .contains(r#""pass":"mine","bound":null,"notes":[],"made":[{"operation":"times""#)
            );
            if device::gpu().is_none() {
                let topology = rt.topology(tree.recordings[0].id).unwrap().unwrap().to_string();
                assert!(topology.contains("times") && !topology.contains("neg"), "{topology}");
            }
        }
    }
}

#[graphable]
fn pair(x: &Tensor<f32>) -> Result<(Tensor<f32>, Tensor<f32>)> {
    let y = ops::neg(x)?;
    let two = ops::scale(x, 2.0)?;
    let z = ops::abs(&y)?;
    Ok((z, ops::sub(&two, x)?))
}

#[test]
fn kernels_replace_one_launch_or_several() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let pass = Closure::new(move |program| {
        let [(neg, x, y)] = unary(program, "neg")[..] else { return Err("one".into()) };
        let [scale] = program.launches().filter(|l| l.operation() == "scale").collect::<Vec<_>>()[..] else {
            return Err("one".into());
        };
        noted.lock().unwrap().push((scale.constants(), program.leaves(&y), program.readers(&y).len()));
        let both = kernel::<both>().input(x).output(y).output(scale.outputs()[0]);
        program.replace(&[neg, scale.id()], both)?;
        for (abs, x, y) in unary(program, "abs") {
            program.note(format_args!("{:?}", program.launch(abs).unwrap()));
            // Of other values it is wrong.
            program.replace(&[abs], kernel::<flipped>().input(x).number(-1.0f32).output(y))?;
        }
        Ok(())
    });
    let mut rt = runtime();
    rt.set_passes(only(pass));
    let graph = PairGraph::builder().build(&mut rt).unwrap();
    for round in 0..3 {
        let step = rt.step().unwrap();
        let (z, other) = graph.call(&step, &step.tensor(&[2], &X).unwrap()).unwrap();
        let expected = if round < 1 { [3.0, 4.0] } else { X };
        assert_eq!((step.read(&z).unwrap(), step.read(&other).unwrap()), (expected.to_vec(), X.to_vec()));
    }
    let report = report(&rt);
    assert_eq!(
        report.to_string(),
        "mine: [f32 [2]] -> abs -> [f32 [2]]; 1 x both for 2 operations each, 1 x flipped for 1 operation each"
    );
    // Only `abs` reads the negated values, which are freed then.
    assert_eq!(*seen.lock().unwrap(), [(vec![Constant::Float(2.0)], false, 1)]);
}

#[test]
fn passes_are_part_of_the_key() {
    let mut rt = runtime();
    let sum = State::new(&rt, &[2], &[0.0f32; 2]).unwrap();
    let with = Passes::default().with(replacing_neg(-1.0));
    // In every order of runtime and graph.
    let plain = TwoGraph::builder().build(&mut rt).unwrap();
    let own = TwoGraph::builder().passes(with.clone()).build(&mut rt).unwrap();
    let same = TwoGraph::builder().passes(with.clone()).build(&mut rt).unwrap();
    let none = TwoGraph::builder().passes(Passes::none()).build(&mut rt).unwrap();
    let made = |rt: &mut Runtime, graph: &TwoGraph| {
        let before = rt.stats().recordings;
        for _ in 0..4 {
            assert_eq!(call(rt, graph, &sum).unwrap().0, [3.0, 4.0]);
        }
        rt.stats().recordings - before
    };
    assert_eq!(made(&mut rt, &plain), 1);
    assert_eq!(made(&mut rt, &own), 1, "it has other passes");
    assert_eq!(made(&mut rt, &same), 0, "these are the same");
    assert_eq!(made(&mut rt, &none), 1);
    // All built-in ones, however one came by them.
    rt.set_passes(Passes::default().without("nothing").with(replacing_neg(-1.0)).without("mine"));
    assert_eq!(made(&mut rt, &plain), 0);
    rt.set_passes(with.clone());
    assert_eq!((made(&mut rt, &plain), made(&mut rt, &none)), (0, 0));
    // Added again, it is another.
    rt.set_passes(Passes::default().with(replacing_neg(-1.0)));
    assert_eq!(made(&mut rt, &plain), 1);
    rt.set_passes(Passes::default().without("fuse_elementwise"));
    assert_eq!((made(&mut rt, &plain), made(&mut rt, &own)), (1, 0));
    rt.set_passes(Passes::default());
    assert_eq!(made(&mut rt, &plain), 0);
}
