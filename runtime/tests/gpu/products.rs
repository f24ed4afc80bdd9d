//! Products in recordings: their algorithm stays, whatever is measured meanwhile.

use graphable::{Element, Float, Runtime, graphable, prelude::*};

use crate::support::{runtime, skipped};

#[graphable]
fn product<T: Float>(x: &Tensor<T>, w: &Param<T>) -> Result<Tensor<T>> {
    ops::matmul(x, w)
}

fn values<T: Float>(n: usize) -> Vec<T> {
    (0..n).map(|i| T::from_f64(((i * 7919) % 1013) as f64 / 507.0 - 1.0)).collect()
}

/// A warm-up with aligned operands measures their product; the recording has others, of another alignment, planned by
/// the heuristics. Each replay is audited, which runs the body with those.
fn audited<T: Float + Element>(rt: &mut Runtime) {
    for (m, k, n) in [(16, 8192, 64), (1, 4096, 512), (64, 2048, 96), (200, 1024, 200), (8, 16_384, 8)] {
        let graph = ProductGraph::<T>::builder().audit_every(1).build(rt).unwrap();
        let w = Param::<T>::new(rt, &[k, n], &values::<T>(k * n)).unwrap();
        let data = values::<T>(m * k + 16);
        for offset in [0usize, 1, 1, 1, 8, 8, 8, 1] {
            let step = rt.step().unwrap();
            let all = step.tensor(&[m * k + 16], &data).unwrap();
            let part = ops::narrow(&all, 0, offset, m * k).unwrap();
            let x = ops::reshape(&part, &[m, k]).unwrap();
            let y = graph.call(&step, &x, &w).unwrap_or_else(|e| panic!("{m}x{k}x{n} from {offset}: {e}"));
            assert_eq!(step.read(&y).unwrap().len(), m * n);
        }
    }
}

#[test]
fn a_recording_keeps_the_plans_that_it_was_made_with() {
    if skipped("a_recording_keeps_the_plans_that_it_was_made_with") {
        return;
    }
    let mut rt = runtime();
    audited::<f32>(&mut rt);
    audited::<bf16>(&mut rt);
    let stats = rt.stats();
    assert!(stats.audits >= 20 && stats.recordings >= 20, "{stats:?}");
}

/// Far more shapes of eager products than are remembered: all right, and those that come again too.
#[test]
fn any_number_of_eager_shapes() {
    if skipped("any_number_of_eager_shapes") {
        return;
    }
    let mut rt = runtime();
    let w = Param::<f32>::new(&rt, &[8, 8], &[0.5; 64]).unwrap();
    for round in 0..2 {
        for m in (1..3000usize).step_by(2) {
            let step = rt.step().unwrap();
            let x = step.tensor(&[m, 8], &vec![1.0f32; m * 8]).unwrap();
            let y = ops::matmul(&x, &w).unwrap();
            if m % 97 == 0 || m > 2990 {
                assert_eq!(step.read(&y).unwrap(), vec![4.0; m * 8], "{m} rows, round {round}");
            }
        }
    }
}
