//! A rule for gradients of an operation: against finite differences, in a recorded segment, and its mistakes.

use std::sync::LazyLock;

use graphable::{
    custom::{AnyTensor, CustomOp},
    prelude::*,
};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

const ROWS: usize = 3;
const COLUMNS: usize = 5;

/// `softmax(x) * w`, for `x` of `[R, C]` and `w` of `[C]`.
static WEIGHTED: LazyLock<CustomOp> = LazyLock::new(|| {
    CustomOp::builder("weighted_softmax")
        .cpu(|call| {
            let (x, w, y) = (call.input::<f32>(0)?, call.input::<f32>(1)?, call.output::<f32>(0)?);
            for (x, y) in x.chunks(w.len()).zip(y.chunks_mut(w.len())) {
                let max = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let total: f32 = x.iter().map(|x| (x - max).exp()).sum();
                for ((y, x), w) in y.iter_mut().zip(x).zip(w) {
                    *y = (x - max).exp() / total * w;
                }
            }
            Ok(())
        })
        .gradient(|pass| {
            let (x, w, dy) = (pass.input::<f32>(0)?, pass.input::<f32>(1)?, pass.gradient::<f32>(0)?);
            let p = ops::softmax(&x, 1)?;
            let dp = ops::mul(&dy, &w)?;
            let mean = ops::unsqueeze(&ops::sum(&ops::mul(&dp, &p)?, 1)?, 1)?;
            pass.set_gradient(0, &ops::mul(&p, &ops::sub(&dp, &mean)?)?)?;
            pass.set_gradient(1, &ops::sum(&ops::mul(&dy, &p)?, 0)?)
        })
        .build()
});

fn weighted<'s>(x: &Tensor<'s, f32>, w: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    WEIGHTED.call(x.scope()).input(x).input(w).output(x.shape()).run()
}

/// The gradients of `x` and `w`, through a forward launch.
#[graphable]
fn gradients(x: &Tensor<f32>, w: &Tensor<f32>, dy: &Tensor<f32>) -> Result<(Tensor<f32>, Tensor<f32>)> {
    let y = weighted(x, w)?;
    let found = WEIGHTED.backward(&[x.into(), w.into()], &[(&y).into()], &[dy.into()])?;
    let of = |i: usize| match &found[i] {
        Some(gradient) => gradient.typed::<f32>(),
        None => ops::zeros(x.scope(), ()),
    };
    Ok((of(0)?, of(1)?))
}

fn values(rng: &mut StdRng, n: usize) -> Vec<f32> {
    (0..n).map(|_| rng.random_range(-1.5..1.5)).collect()
}

/// `sum(weighted(x, w) * dy)`, in f64.
fn loss(step: &Step<'_>, x: &[f32], w: &[f32], dy: &[f32]) -> f64 {
    let (x, w) = (step.tensor(&[ROWS, COLUMNS], x).unwrap(), step.tensor(&[COLUMNS], w).unwrap());
    let y = step.read(&weighted(&x, &w).unwrap()).unwrap();
    y.iter().zip(dy).map(|(y, dy)| f64::from(*y) * f64::from(*dy)).sum()
}

/// By central differences: the gradient of `loss` in each element of `at`.
fn differences(at: &[f32], loss: impl Fn(&[f32]) -> f64) -> Vec<f64> {
    const BY: f32 = 1.0 / 128.0;
    let moved = |i: usize, by: f32| {
        let mut moved = at.to_vec();
        moved[i] += by;
        loss(&moved)
    };
    (0..at.len()).map(|i| (moved(i, BY) - moved(i, -BY)) / (2.0 * f64::from(BY))).collect()
}

fn assert_near(got: &[f32], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (i, (&got, &want)) in got.iter().zip(want).enumerate() {
        assert!((f64::from(got) - want).abs() < 1e-3, "[{i}] is {got}, and {want} by differences");
    }
}

#[test]
fn a_rule_agrees_with_finite_differences_eagerly_and_replayed() {
    let mut rng = StdRng::seed_from_u64(31);
    let mut rt = Runtime::new(Device::cpu()).unwrap();
    let graph = GradientsGraph::builder().build(&mut rt).unwrap();
    for _ in 0..5 {
        let (x, w) = (values(&mut rng, ROWS * COLUMNS), values(&mut rng, COLUMNS));
        let dy = values(&mut rng, ROWS * COLUMNS);
        let step = rt.step().unwrap();
        let want_x = differences(&x, |x| loss(&step, x, &w, &dy));
        let want_w = differences(&w, |w| loss(&step, &x, w, &dy));
        assert!(want_x.iter().chain(&want_w).any(|d| d.abs() > 0.05), "nothing to compare");
        let x = step.tensor(&[ROWS, COLUMNS], &x).unwrap();
        let w = step.tensor(&[COLUMNS], &w).unwrap();
        let dy = step.tensor(&[ROWS, COLUMNS], &dy).unwrap();
        let (dx, dw) = graph.call(&step, &x, &w, &dy).unwrap();
        assert_near(&step.read(&dx).unwrap(), &want_x);
        assert_near(&step.read(&dw).unwrap(), &want_w);
    }
    let stats = rt.stats();
    assert!(stats.recordings > 0 && stats.replays > 0, "{stats:?}");
}

#[test]
fn mistakes_of_a_backward_pass_are_typed() {
    let mut rt = Runtime::new(Device::cpu()).unwrap();
    let step = rt.step().unwrap();
    let x = step.tensor(&[2], &[1.0f32, 2.0]).unwrap();
    let (y, wrong) = (ops::neg(&x).unwrap(), step.tensor(&[3], &[0.0f32; 3]).unwrap());
    let numbers = step.tensor(&[2], &[1u32, 2]).unwrap();
    let none = CustomOp::builder("none").cpu(|_| Ok(())).build();
    let said = |result: Result<Vec<Option<AnyTensor<'_>>>>| result.map(|_| ()).unwrap_err();
    let error = said(none.backward(&[(&x).into()], &[(&y).into()], &[(&y).into()]));
    assert!(
        matches!(&error, Error::Argument { op: "none", reason } if reason.contains("`CustomOpBuilder::gradient`")),
        "{error}"
    );
    let twice = CustomOp::builder("twice").cpu(|_| Ok(()));
    let twice = twice.gradient(|pass| {
        let dy = pass.gradient::<f32>(0)?;
        pass.set_gradient(0, &ops::add(&dy, &dy)?)
    });
    let twice = twice.build();
    let fine = twice.backward(&[(&x).into()], &[(&y).into()], &[(&y).into()]).unwrap();
    assert_eq!(step.read(&fine[0].as_ref().unwrap().typed::<f32>().unwrap()).unwrap(), [-2.0, -4.0]);
    assert!(matches!(fine[0].as_ref().unwrap().typed::<u32>(), Err(Error::DTypeMismatch { .. })));
    // A gradient that is missing, of another shape, of another type; an input that is not there, or is not alike.
    assert!(matches!(said(twice.backward(&[(&x).into()], &[(&y).into()], &[])), Error::Argument { .. }));
    assert!(matches!(
        said(twice.backward(&[(&x).into()], &[(&y).into()], &[(&wrong).into()])),
        Error::Shape { .. }
    ));
    assert!(matches!(
        said(twice.backward(&[(&x).into()], &[(&y).into()], &[(&numbers).into()])),
        Error::DTypeMismatch { .. }
    ));
    assert!(matches!(said(twice.backward(&[], &[(&y).into()], &[(&y).into()])), Error::Argument { .. }));
    assert!(matches!(
        said(twice.backward(&[(&wrong).into()], &[(&y).into()], &[(&y).into()])),
        Error::Shape { .. }
    ));
}
