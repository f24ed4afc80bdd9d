//! Convolutions by cuDNN in recordings.

use graphable::{Float, bf16, f16, graphable, prelude::*};

use crate::support::{runtime, skipped};

#[graphable]
fn block<T: Float>(x: &Tensor<T>, wide: &Param<T>, bias: &Param<T>, grouped: &Param<T>) -> Result<Tensor<T>> {
    let y = ops::conv2d_bias(x, wide, bias, ops::ConvConfig::new().padding(1))?;
    ops::conv2d(&y, grouped, ops::ConvConfig::new().stride(2).groups(2))
}

fn values<T: Float>(count: usize) -> Vec<T> {
    (0..count).map(|i| T::from_f64(((i * 37 % 101) as f64 - 50.0) / 64.0)).collect()
}

fn replays_are_as_eager<T: Float>() {
    let mut rt = runtime();
    rt.keep_topology(true);
    let param = |shape: &[usize]| Param::new(&rt, shape, &values::<T>(shape.iter().product())).unwrap();
    let (wide, bias, grouped) = (param(&[32, 16, 3, 3]), param(&[32]), param(&[32, 16, 3, 3]));
    let graph = BlockGraph::<T>::builder().build(&mut rt).unwrap();
    let mut want = Vec::new();
    for round in 0..100 {
        let step = rt.step().unwrap();
        let x = step.tensor(&[2, 16, 12, 10], &values::<T>(2 * 16 * 12 * 10)).unwrap();
        let y = if round == 0 {
            block(&x, &wide, &bias, &grouped).unwrap()
        } else {
            graph.call(&step, &x, &wide, &bias, &grouped).unwrap()
        };
        let y = step.read(&y).unwrap();
        if round == 0 {
            assert!(
                y.iter().all(|y| *y == *y) && y.iter().any(|y| *y != T::from_f64(0.0)),
                "numbers, and not all 0"
            );
            want = y;
        } else {
            assert_eq!(y, want, "{} round {round}", T::DTYPE);
        }
    }
    assert_eq!(rt.stats().fallback_reasons, []);
    assert!(rt.stats().replays > 90, "{:?}", rt.stats());
    let node = rt.tree().nodes[0].id;
    let topology = rt.topology(node).unwrap().unwrap();
    let ours = topology.nodes.iter().filter(|node| node.name.contains("unfold")).count();
    let without = std::env::var_os("GRAPHABLE_TEST_WITHOUT_CUDNN").is_some();
    assert!(
        (ours > 0) == without,
        "install cuDNN 9, or set GRAPHABLE_TEST_WITHOUT_CUDNN=1 where there is none: {topology}"
    );
}

#[test]
fn convolutions_by_the_library_replay_as_they_run() {
    if skipped("convolutions_by_the_library_replay_as_they_run") {
        return;
    }
    replays_are_as_eager::<f32>();
    replays_are_as_eager::<f16>();
    replays_are_as_eager::<bf16>();
}
