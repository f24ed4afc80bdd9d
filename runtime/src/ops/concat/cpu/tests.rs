use rand::{Rng, SeedableRng, rngs::StdRng};

use super::super::operation::Concat;
use crate::{DType, backend::cpu::kernels::testing::*};

#[test]
fn concatenation_keeps_order() {
    let mut rng = StdRng::seed_from_u64(14);
    for dtype in ALL {
        for case in 0..40 {
            let rank = 1 + case % 4;
            let axis = rng.random_range(0..rank);
            let mut shape = random_shape(&mut rng, rank);
            let parts: Vec<Array> = (0..rng.random_range(1..5))
                .map(|_| {
                    shape[axis] = rng.random_range(0..5);
                    Array::random(&mut rng, dtype, &shape)
                })
                .collect();
            shape[axis] = parts.iter().map(|p| p.shape()[axis]).sum();
            let mut y = Array::output(dtype, &shape);
            run(Concat { axis }, &parts.iter().collect::<Vec<_>>(), &mut y).unwrap();
            let values: Vec<Vec<f64>> = parts.iter().map(Array::values).collect();
            let expected: Vec<f64> = (0..shape.iter().product())
                .map(|i| {
                    let mut index = unravel(i, &shape);
                    let part = parts
                        .iter()
                        .position(|part| {
                            let n = part.shape()[axis];
                            let here = index[axis] < n;
                            if !here {
                                index[axis] -= n;
                            }
                            here
                        })
                        .unwrap();
                    values[part][ravel(&index, parts[part].shape())]
                })
                .collect();
            assert_exact(&y.values(), &expected, &format!("concat {dtype} along {axis}"));
        }
    }
}

#[test]
fn large_concatenations_split_anywhere() {
    let mut rng = StdRng::seed_from_u64(15);
    for axis in 0..2 {
        let mut shapes = [[333, 250], [333, 250]];
        shapes[1][axis] = 77;
        let parts = shapes.map(|shape| Array::random(&mut rng, DType::U8, &shape));
        let mut shape = shapes[0];
        shape[axis] += 77;
        let mut y = Array::output(DType::U8, &shape);
        run(Concat { axis }, &[&parts[0], &parts[1]], &mut y).unwrap();
        let values = [parts[0].values(), parts[1].values()];
        let expected: Vec<f64> = (0..shape[0] * shape[1])
            .map(|i| {
                let mut index = unravel(i, &shape);
                let second = index[axis] >= shapes[0][axis];
                if second {
                    index[axis] -= shapes[0][axis];
                }
                values[usize::from(second)][ravel(&index, &shapes[usize::from(second)])]
            })
            .collect();
        assert_exact(&y.values(), &expected, "large concat");
    }
}
