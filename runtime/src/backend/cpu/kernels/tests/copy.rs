use super::*;
use crate::backend::operations::{Arange, COPY, Concat, Fill, PAD};

#[test]
fn copies_reach_contiguous_and_strided_outputs() {
    let mut rng = StdRng::seed_from_u64(11);
    for dtype in ALL {
        for case in 0..60 {
            let shape = random_shape(&mut rng, case % 6);
            let x = Array::random(&mut rng, dtype, &shape);
            let layout = match case % 3 {
                0 => Layout::contiguous(&shape).unwrap(),
                _ => random_layout(&mut rng, &shape, false),
            };
            let mut y = Array::strided(dtype, layout, 2, &vec![1.0; layout.count()]);
            run(COPY, &[&x], &mut y).unwrap();
            assert_exact(&y.values(), &x.values(), &format!("copy {x:?} to {y:?}"));
        }
    }
}

#[test]
fn large_copies_transpose() {
    let mut rng = StdRng::seed_from_u64(12);
    let shape = [40, 60, 33];
    for _ in 0..12 {
        let x = Array::random(&mut rng, DType::F16, &shape);
        let layout = random_layout(&mut rng, &shape, false);
        let mut y = Array::strided(DType::F16, layout, 0, &vec![1.0; layout.count()]);
        run(COPY, &[&x], &mut y).unwrap();
        assert_exact(&y.values(), &x.values(), &format!("copy {x:?} to {y:?}"));
    }
}

#[test]
fn padding_is_zero() {
    let mut rng = StdRng::seed_from_u64(13);
    for dtype in ALL {
        for case in 0..40 {
            let from = random_shape(&mut rng, case % 5);
            let to: Vec<usize> = from
                .iter()
                .map(|n| n + if rng.random_bool(0.5) { rng.random_range(0..4) } else { 0 })
                .collect();
            let x = Array::random(&mut rng, dtype, &from);
            let mut y = Array::output(dtype, &to);
            run(PAD, &[&x], &mut y).unwrap();
            let values = x.values();
            let expected: Vec<f64> = (0..to.iter().product())
                .map(|i| {
                    let index = unravel(i, &to);
                    let inside = index.iter().zip(&from).all(|(i, n)| i < n);
                    if inside { values[ravel(&index, &from)] } else { 0.0 }
                })
                .collect();
            assert_exact(&y.values(), &expected, &format!("pad {dtype} {from:?} to {to:?}"));
        }
    }
}

#[test]
fn fill_and_arange_round_once() {
    for dtype in ALL {
        for n in [0, 1, 700, 40_000] {
            for (start, step) in [(0.0, 1.0), (-3.0, 0.37), (5.5, 0.0), (250.0, 1.0), (1.0039062500001, 0.0)]
            {
                let expected = |v: f64| match dtype {
                    DType::Bool => f64::from(u8::from(v != 0.0)),
                    _ if dtype.is_float() => nearest(dtype, v),
                    DType::I32 => f64::from(v as i32),
                    DType::U32 => f64::from(v as u32),
                    _ => f64::from(v as u8),
                };
                let mut y = Array::output(dtype, &[n]);
                run(Arange { start, step }, &[], &mut y).unwrap();
                let values: Vec<f64> = (0..n).map(|i| expected(start + i as f64 * step)).collect();
                assert_exact(&y.values(), &values, &format!("arange {dtype}"));
                run(Fill(start), &[], &mut y).unwrap();
                assert_exact(&y.values(), &vec![expected(start); n], &format!("fill {dtype}"));
            }
        }
    }
}

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
