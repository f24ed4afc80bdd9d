use graphable::{Element, Number, bf16, f16, ops};
use rand::{Rng, rngs::StdRng, seq::SliceRandom};

use crate::{
    harness::{assert_same, cases, for_types, in_step, input, shape, size},
    reference::Array,
};

/// Another shape with as many elements.
fn regrouped(rng: &mut StdRng, shape: &[usize]) -> Vec<usize> {
    let mut out: Vec<usize> = Vec::new();
    for &n in shape {
        match rng.random_range(0..4) {
            0 if !out.is_empty() => *out.last_mut().unwrap() *= n,
            1 if n > 1 && n.is_multiple_of(2) && out.len() + 2 <= 5 => out.extend([2, n / 2]),
            _ => out.push(n),
        }
    }
    while out.len() > 6 {
        let last = out.pop().unwrap();
        *out.last_mut().unwrap() *= last;
    }
    if out.len() < 6 && rng.random_bool(0.3) {
        out.insert(rng.random_range(0..=out.len()), 1);
    }
    out
}

fn rearrangements<T: Element>() {
    cases(80, |step, rng| {
        let dims = shape(rng, 0, 4);
        let (x, host) = input::<T>(step, rng, &dims, (-9.0, 9.0));
        let rank = dims.len();

        let other = regrouped(rng, &dims);
        assert_same(step, &ops::reshape(&x, &other).unwrap(), &host.reshaped(&other));
        let flat = [host.data.len()];
        assert_same(step, &ops::reshape(&x, &flat).unwrap(), &host.reshaped(&flat));
        assert_same(step, &ops::contiguous(&x).unwrap(), &host);

        let mut axes: Vec<usize> = (0..rank).collect();
        axes.shuffle(rng);
        let permuted: Vec<usize> = axes.iter().map(|&a| dims[a]).collect();
        let want = Array::from_fn(&permuted, |i| {
            let mut source = vec![0; rank];
            axes.iter().zip(i).for_each(|(&from, &v)| source[from] = v);
            host.at(&source)
        });
        let moved = ops::permute(&x, &axes).unwrap();
        assert_same(step, &moved, &want);
        assert_same(step, &ops::reshape(&moved, &flat).unwrap(), &want.reshaped(&flat));

        let at = rng.random_range(0..=rank);
        let mut wider = dims.clone();
        wider.insert(at, 1);
        let unsqueezed = ops::unsqueeze(&x, at).unwrap();
        assert_same(step, &unsqueezed, &host.reshaped(&wider));
        assert_same(step, &ops::squeeze(&unsqueezed, at).unwrap(), &host);

        let repeated = [&[2][..], &dims].concat();
        assert_same(
            step,
            &ops::broadcast_to(&x, &repeated).unwrap(),
            &Array::from_fn(&repeated, |i| host.at(i)),
        );
    });
}

#[test]
fn reshape_permute_squeeze_broadcast() {
    for_types!(rearrangements: f32, f16, bf16, i32, u32, u8, bool);
}

fn parts_and_wholes<T: Element>() {
    cases(80, |step, rng| {
        let mut dims = shape(rng, 1, 4);
        let axis = rng.random_range(0..dims.len());
        let sizes: Vec<usize> = (0..rng.random_range(1..4)).map(|_| size(rng)).collect();
        dims[axis] = sizes.iter().sum();
        let (x, host) = input::<T>(step, rng, &dims, (-9.0, 9.0));

        let mut start = 0;
        let parts = ops::split_at(&x, axis, &sizes).unwrap();
        assert_eq!(parts.len(), sizes.len());
        for (part, &len) in parts.iter().zip(&sizes) {
            let mut shape = dims.clone();
            shape[axis] = len;
            let want = Array::from_fn(&shape, |i| {
                let mut source = i.to_vec();
                source[axis] += start;
                host.at(&source)
            });
            assert_same(step, part, &want);
            assert_same(step, &ops::narrow(&x, axis, start, len).unwrap(), &want);
            start += len;
        }
        assert_same(step, &ops::concat(&parts.iter().collect::<Vec<_>>(), axis).unwrap(), &host);

        let (y, hy) = input::<T>(step, rng, &dims, (-9.0, 9.0));
        let both = ops::concat(&[&x, &y], axis).unwrap();
        let n = dims[axis];
        let mut shape = dims.clone();
        shape[axis] = 2 * n;
        let want = Array::from_fn(&shape, |i| {
            let mut source = i.to_vec();
            source[axis] %= n;
            if i[axis] < n { host.at(&source) } else { hy.at(&source) }
        });
        assert_same(step, &both, &want);
        let halves = ops::split(&both, axis, 2).unwrap();
        assert_same(step, &halves[0], &host);
        assert_same(step, &halves[1], &hy);
    });
}

#[test]
fn narrow_split_concat() {
    for_types!(parts_and_wholes: f32, f16, bf16, i32, u32, u8, bool);
}

/// Planes that a GPU copies by squares of 32 to 128 elements, at any places.
fn transposed<T: Element>() {
    cases(10, |step, rng| {
        let mut dims: Vec<usize> = vec![1, 2, rng.random_range(14..150), rng.random_range(14..150)];
        if rng.random_bool(0.5) {
            // Whole words of 4 bytes.
            dims[2..].iter_mut().for_each(|size| *size = size.next_multiple_of(4));
        }
        dims[rng.random_range(0..2)] += 1;
        dims.shuffle(rng);
        let (x, host) = input::<T>(step, rng, &dims, (-9.0, 9.0));
        let mut axes = [0, 1, 2, 3];
        axes.shuffle(rng);
        let want = Array::from_fn(&axes.map(|axis| dims[axis]), |at| {
            let mut source = [0; 4];
            axes.iter().zip(at).for_each(|(&from, &v)| source[from] = v);
            host.at(&source)
        });
        assert_same(step, &ops::contiguous(&ops::permute(&x, &axes).unwrap()).unwrap(), &want);
    });
}

#[test]
fn views_of_other_orders_are_copied() {
    for_types!(transposed: f32, f64, f16, u8);
}

/// More squares than blocks of a GPU run at once; elements are compared where they lie.
#[test]
fn large_planes_are_transposed() {
    fn large<T: Element + Number>(rows: usize, columns: usize) {
        in_step(|step| {
            let all = ops::arange::<u32>(step.scope(), rows * columns).unwrap();
            let all = ops::cast::<u32, T>(&ops::remainder(&all, 251).unwrap()).unwrap();
            let turned = ops::permute(&ops::reshape(&all, [rows, columns]).unwrap(), &[1, 0]).unwrap();
            let copy = ops::reshape(&ops::contiguous(&turned).unwrap(), [columns, rows]).unwrap();
            let differ = ops::cast::<bool, u32>(&ops::ne(&copy, &turned).unwrap()).unwrap();
            assert_eq!(step.item(&ops::sum(&ops::sum(&differ, 0).unwrap(), 0).unwrap()).unwrap(), 0);
        });
    }
    large::<f32>(1500, 2051);
    large::<f64>(1300, 1100);
    large::<u8>(4100, 4500);
    large::<f16>(2050, 4100);
    large::<f16>(1111, 1333);
}

/// An axis without elements, or of one that is repeated, divides into any number of parts.
#[test]
fn a_split_makes_no_endless_number_of_parts() {
    in_step(|step| {
        let empty = ops::zeros::<f32>(step.scope(), [2, 0]).unwrap();
        assert_eq!(ops::split(&empty, 1, 1000).unwrap().len(), 1000);
        let wide = ops::broadcast_to(&ops::zeros::<f32>(step.scope(), ()).unwrap(), [1 << 40]).unwrap();
        let long = ops::zeros::<u8>(step.scope(), [100_000]).unwrap();
        assert_eq!(ops::split(&long, 0, 100_000).unwrap().len(), 100_000);
        let before = ops::zeros::<f32>(step.scope(), [0, 1 << 17]).unwrap();
        let behind = ops::zeros::<f32>(step.scope(), [1 << 17, 0]).unwrap();
        let empty_ones =
            [(&empty, 1, usize::MAX), (&empty, 1, 1 << 20), (&before, 1, 1 << 17), (&behind, 0, 1 << 17)];
        for (x, axis, n) in empty_ones.into_iter().chain([(&wide, 0, 1 << 40)]) {
            let error = ops::split(x, axis, n).unwrap_err().to_string();
            assert!(error.contains(&format!("{n} parts")) && error.contains("ops::narrow"), "{error}");
        }
    });
}

#[test]
fn a_contiguous_tensor_is_reshaped_without_a_copy() {
    in_step(|step| {
        let x = step.tensor(&[2, 6], &[0u8; 12]).unwrap();
        let there = ops::reshape(&x, &[3, 4]).unwrap();
        let back = ops::reshape(&there, &[2, 6]).unwrap();
        assert!(back.same_memory(&x));
        assert!(ops::contiguous(&x).unwrap().same_memory(&x));
        // Slices of a fused projection split into heads without a copy, too.
        let part = ops::narrow(&x, 1, 2, 4).unwrap();
        let heads = ops::reshape(&part, &[2, 2, 2]).unwrap();
        assert!(ops::reshape(&heads, &[2, 4]).unwrap().same_memory(&part));
        // But not into one line.
        let line = ops::reshape(&part, &[8]).unwrap();
        assert!(!ops::reshape(&line, &[2, 4]).unwrap().same_memory(&part));
    });
}
