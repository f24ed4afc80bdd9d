//! Results: tuples, arrays, vectors, structs; host inputs; the plan.

use graphable::{Plan, graphable, prelude::*};

use crate::support::{attention, runtime};

#[derive(GraphOutput)]
struct Out<'s> {
    sum: Tensor<'s, f32>,
    parts: Vec<Tensor<'s, f32>>,
    count: usize,
}

#[graphable]
fn many(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
    #[host] by: &Scalar<f32>,
) -> Result<(Out<'_>, [Tensor<f32>; 2])> {
    let y = ops::mul(x, by)?;
    let a = #[eager]
    attention(&y)?;
    let parts = ops::split(&a, 1, 2)?;
    let sum = ops::add(&parts[0], &parts[1])?;
    let neg = ops::neg(&y)?;
    let count = parts.len();
    Ok((Out { sum, parts, count }, [neg, y]))
}

#[test]
fn structures_of_results() {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = runtime();
        let g = ManyGraph::builder().mode(mode).bucket("B", Schedule::new([1, 2, 4])).build(&mut rt).unwrap();
        for n in 0..8u16 {
            let step = rt.step().unwrap();
            let rows = usize::from(n % 4) + 1;
            let data: Vec<f32> = (0..rows * 2).map(|i| i as f32 + f32::from(n)).collect();
            let by = f32::from(n) + 0.5;
            let (out, [neg, y]) = g.call(&step, &data, by).unwrap();
            let scaled: Vec<f32> = data.iter().map(|v| v * by).collect();
            assert_eq!(out.sum.shape(), [rows, 1]);
            assert_eq!(out.count, 2);
            assert_eq!(step.read(&y).unwrap(), scaled);
            assert_eq!(step.read(&neg).unwrap(), scaled.iter().map(|v| -v).collect::<Vec<_>>());
            let sums: Vec<f32> = scaled.chunks(2).map(|c| c[0] + c[1]).collect();
            assert_eq!(step.read(&out.sum).unwrap(), sums);
            let lefts: Vec<f32> = scaled.chunks(2).map(|c| c[0]).collect();
            assert_eq!(step.read(&out.parts[0]).unwrap(), lefts);
        }
    }
}

#[test]
fn the_plan_names_its_parts() {
    let plan: &Plan = &ManyGraph::PLAN;
    let text = plan.to_string();
    assert_eq!((plan.segments(), plan.boundaries()), (2, 1), "{text}");
    assert!(text.contains("many"), "{text}");
    assert!(text.contains("values.rs"), "{text}");
    assert!(text.contains("attention(&y)?"), "{text}");
    assert!(text.contains("x, by"), "{text}");
}

#[test]
fn capture_all_then_only_replays() {
    let mut rt = runtime();
    let g = ManyGraph::builder().bucket("B", Schedule::new([1, 2, 4])).build(&mut rt).unwrap();
    let mut seen = Vec::new();
    g.capture_all_with(&mut rt, |p| seen.push((p.done, p.total, p.sizes.to_vec()))).unwrap();
    assert_eq!(seen, [(0, 3, vec![4]), (1, 3, vec![2]), (2, 3, vec![1]), (3, 3, vec![])]);
    let before = rt.stats();
    rt.close_capture();
    for rows in [1, 2, 3, 4, 3] {
        let step = rt.step().unwrap();
        let data: Vec<f32> = (0..rows * 2).map(|i| i as f32).collect();
        let (out, _) = g.call(&step, &data, 2.0).unwrap();
        assert_eq!(out.sum.shape(), [rows, 1]);
    }
    assert_eq!(rt.stats().recordings, before.recordings);
}

#[test]
fn inputs_that_do_not_fit() {
    let mut rt = runtime();
    assert!(matches!(
        ManyGraph::builder().bucket("B", Schedule::new([0, 4])).build(&mut rt),
        Err(Error::Config { .. })
    ));
    assert!(matches!(
        ManyGraph::builder().bucket("Q", Schedule::default()).build(&mut rt),
        Err(Error::Config { .. })
    ));
    let g = ManyGraph::builder().build(&mut rt).unwrap();
    let step = rt.step().unwrap();
    let error = g.call(&step, &[1.0, 2.0, 3.0], 1.0).map(drop).unwrap_err();
    assert!(matches!(error, Error::Input { input: "x", .. }), "{error}");
    let two_inputs = step.tensor(&[1], &[1.0f32]).unwrap();
    drop(two_inputs);
}
