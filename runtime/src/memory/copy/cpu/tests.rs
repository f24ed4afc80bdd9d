use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    DType,
    backend::cpu::kernels::testing::*,
    memory::{COPY, PAD},
    value::layout::Layout,
};

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
