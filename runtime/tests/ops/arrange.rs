//! Elements at other places, and triangles.

use graphable::{Element, Error, bf16, f16, ops};
use rand::Rng;

use crate::{
    harness::{
        assert_same, cases, for_types, in_step, indices, input, is_argument, is_axis, is_shape, shape,
    },
    reference::Array,
};

fn moved<T: Element>() {
    cases(40, |step, rng| {
        let dims = shape(rng, 1, 4);
        let axis = rng.random_range(0..dims.len());
        let (x, host) = input::<T>(step, rng, &dims, (-4.0, 4.0));
        let reversed = host.map_lines(axis, |line| line.iter().rev().copied().collect());
        assert_same(step, &ops::flip(&x, axis).unwrap(), &reversed);
        let shift = rng.random_range(-20i32..20) as isize;
        let rolled = host.map_lines(axis, |line| {
            let n = line.len() as isize;
            (0..n).map(|i| line[(i - shift).rem_euclid(n) as usize]).collect()
        });
        assert_same(step, &ops::roll(&x, shift, axis).unwrap(), &rolled);
        let times: Vec<usize> = dims.iter().map(|_| rng.random_range(0..4)).collect();
        let wide: Vec<usize> = dims.iter().zip(&times).map(|(n, t)| n * t).collect();
        let repeated = Array::from_fn(&wide, |index| {
            let own: Vec<usize> = index.iter().zip(&dims).map(|(i, n)| i % n).collect();
            host.at(&own)
        });
        assert_same(step, &ops::repeat(&x, &times).unwrap(), &repeated);
    });
}

#[test]
fn flip_roll_repeat() {
    for_types!(moved: f32, f16, bf16, i32, i64, u32, u8, bool);
}

fn stacked<T: Element>() {
    cases(30, |step, rng| {
        let dims = shape(rng, 0, 4);
        let axis = rng.random_range(0..=dims.len());
        let all: Vec<_> = (0..3).map(|_| input::<T>(step, rng, &dims, (-4.0, 4.0))).collect();
        let mut wide = dims.clone();
        wide.insert(axis, 3);
        let want = Array::from_fn(&wide, |index| {
            let mut rest = index.to_vec();
            all[rest.remove(axis)].1.at(&rest)
        });
        let tensors: Vec<_> = all.iter().map(|(x, _)| x).collect();
        assert_same(step, &ops::stack(&tensors, axis).unwrap(), &want);
    });
}

#[test]
fn stack_along_every_axis() {
    for_types!(stacked: f32, bf16, u8, bool);
}

fn triangle<T: Element>() {
    cases(40, |step, rng| {
        let dims = shape(rng, 2, 4);
        let (x, host) = input::<T>(step, rng, &dims, (1.0, 4.0));
        let diagonal = rng.random_range(-7..7);
        let at = |index: &[usize]| (index[dims.len() - 1] as i32) - (index[dims.len() - 2] as i32);
        let lower = Array::from_fn(&dims, |i| if at(i) <= diagonal { host.at(i) } else { 0.0 });
        let upper = Array::from_fn(&dims, |i| if at(i) >= diagonal { host.at(i) } else { 0.0 });
        assert_same(step, &ops::tril(&x, diagonal).unwrap(), &lower);
        assert_same(step, &ops::triu(&x, diagonal).unwrap(), &upper);
    });
}

#[test]
fn triangles() {
    for_types!(triangle: f32, f16, i32, u8, bool);
    in_step(|step| {
        let x = ops::ones_like(&ops::zeros::<i32>(step.scope(), &[2, 2]).unwrap()).unwrap();
        for (diagonal, lower, upper) in [(i32::MIN, [0; 4], [1; 4]), (i32::MAX, [1; 4], [0; 4])] {
            assert_eq!(step.read(&ops::tril(&x, diagonal).unwrap()).unwrap(), lower);
            assert_eq!(step.read(&ops::triu(&x, diagonal).unwrap()).unwrap(), upper);
        }
    });
}

fn hot<T: Element>() {
    cases(30, |step, rng| {
        let dims = shape(rng, 0, 3);
        let (ids, host) = indices(step, rng, &dims, 6);
        let mut wide = dims.clone();
        wide.push(5);
        let want = Array::from_fn(&wide, |index| {
            let (class, rest) = index.split_last().unwrap();
            f64::from(u8::from(host.at(rest) == *class as f64))
        });
        assert_same(step, &ops::one_hot::<T>(&ids, 5).unwrap(), &want);
    });
}

#[test]
fn one_hot_rows() {
    for_types!(hot: f32, bf16, u32, bool);
}

#[test]
fn misuse_is_refused() {
    in_step(|step| {
        let x = ops::zeros::<f32>(step.scope(), &[2, 3]).unwrap();
        let row = ops::zeros::<f32>(step.scope(), &[3]).unwrap();
        let ids = ops::zeros::<u32>(step.scope(), &[1; 6]).unwrap();
        assert!(is_axis(ops::flip(&x, 2)) && is_axis(ops::roll(&x, 1, 2)) && is_axis(ops::stack(&[&x], 3)));
        assert!(is_axis(ops::index_select(&x, 2, &ops::zeros::<u32>(step.scope(), [1]).unwrap())));
        assert!(is_shape(ops::stack(&[&x, &row], 0)) && is_argument(ops::stack::<f32>(&[], 0)));
        assert!(is_argument(ops::repeat(&x, &[2])) && is_argument(ops::repeat(&x, &[1, 1, 1])));
        // It is the result that is too large.
        let error = ops::repeat(&x, &[usize::MAX, 1]).unwrap_err();
        assert!(matches!(&error, Error::TooLarge { shape } if shape[..] == [usize::MAX, 3]), "{error}");
        assert!(is_shape(ops::tril(&row, 0)) && is_shape(ops::triu(&row, 0)));
        assert!(is_shape(ops::tri(step.scope(), [2], 0)) && is_shape(ops::tri(step.scope(), [2, 2, 2], 0)));
        assert!(matches!(ops::one_hot::<f32>(&ids, 3), Err(Error::Rank { .. })));
    });
}

#[test]
fn tensors_of_the_highest_rank_are_repeated() {
    in_step(|step| {
        let x = step.tensor(&[1, 2, 1, 1, 2, 1], &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
        let y = ops::repeat(&x, &[1, 2, 1, 1, 1, 2]).unwrap();
        assert_eq!(y.shape(), [1, 4, 1, 1, 2, 2]);
        let once = [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0];
        assert_eq!(step.read(&y).unwrap(), [once, once].concat());
    });
}
