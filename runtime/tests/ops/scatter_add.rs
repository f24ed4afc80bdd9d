//! Additions at indices, against loops on the host.

use graphable::{Element, Error, Number, Runtime, bf16, f16, ops};
use rand::{Rng, rngs::StdRng};

use crate::{
    harness::{
        self, assert_close, assert_same, cases, device, for_types, in_step, input, is_axis, is_shape, shape,
        size,
    },
    reference::Array,
};

/// Random indices below `bound`, if there are any; some are skipped.
fn targets(rng: &mut StdRng, n: usize, bound: usize) -> Vec<u32> {
    (0..n)
        .map(|_| match rng.random_bool(0.2) || bound == 0 {
            true => u32::MAX,
            false => rng.random_range(0..bound as u32),
        })
        .collect()
}

/// As elements of `T`, which wrap.
fn wrapped<T: Element>(sums: Array) -> Array {
    if T::DTYPE.is_float() { sums } else { sums.map(harness::wrapped::<T>) }
}

fn position(index: &[usize], shape: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |at, (i, n)| at * n + i)
}

fn additions<T: Number>() {
    cases(40, |step, rng| {
        let dims = shape(rng, 1, 4);
        let axis = rng.random_range(0..dims.len());
        let (x, hx) = input::<T>(step, rng, &dims, (-9.0, 9.0));

        // An index that may be smaller than both.
        let mut small = dims.clone();
        small[axis] = size(rng);
        for (at, n) in small.iter_mut().enumerate() {
            *n -= usize::from(at != axis && *n > 1 && rng.random_bool(0.2));
        }
        let large: Vec<usize> = small.iter().map(|n| n + usize::from(rng.random_bool(0.2))).collect();
        let (src, hs) = input::<T>(step, rng, &large, (-9.0, 9.0));
        let index = targets(rng, small.iter().product(), dims[axis]);
        let mut want = hx.clone();
        for (place, &target) in index.iter().enumerate().filter(|(_, target)| **target != u32::MAX) {
            let from = at(place, &small);
            let mut to = from.clone();
            to[axis] = target as usize;
            want.data[position(&to, &dims)] += hs.data[position(&from, &large)];
        }
        let y = ops::scatter_add(&x, axis, &step.tensor(&small[..], &index).unwrap(), &src).unwrap();
        assert_close(step, &y, &wrapped::<T>(want), 10.0);

        let mut long = dims.clone();
        long[axis] = size(rng);
        let (src, hs) = input::<T>(step, rng, &long, (-9.0, 9.0));
        let index = targets(rng, long[axis], dims[axis]);
        let mut want = hx;
        for place in 0..hs.data.len() {
            let from = at(place, &long);
            let mut to = from.clone();
            to[axis] = index[from[axis]] as usize;
            if index[from[axis]] != u32::MAX {
                want.data[position(&to, &dims)] += hs.data[place];
            }
        }
        let y = ops::index_add(&x, axis, &step.tensor(&[long[axis]], &index).unwrap(), &src).unwrap();
        assert_close(step, &y, &wrapped::<T>(want), 10.0);
    });
}

/// The index of the element at a place.
fn at(mut place: usize, shape: &[usize]) -> Vec<usize> {
    let mut index: Vec<usize> = shape
        .iter()
        .rev()
        .map(|n| {
            let i = place % n;
            place /= n;
            i
        })
        .collect();
    index.reverse();
    index
}

#[test]
fn additions_along_every_axis() {
    for_types!(additions: f32, f16, bf16, f64, i32, i64, i8, u32, u8);
}

/// Bit by bit the sums of a loop: first the element, then its entries in their order.
#[test]
fn the_order_of_additions_is_that_of_the_entries() {
    cases(1, |step, rng| {
        for (n, targets) in [(5000usize, 7usize), (3000, 2900), (1000, 1)] {
            let x: Vec<f32> = (0..targets).map(|_| rng.random_range(-1e3..1e3)).collect();
            let src: Vec<f32> = (0..n).map(|_| rng.random_range(-1e3..1e3)).collect();
            let index: Vec<u32> = (0..n).map(|_| rng.random_range(0..targets as u32)).collect();
            let mut want = x.clone();
            index.iter().zip(&src).for_each(|(&to, v)| want[to as usize] += v);
            let given = step.tensor(&[n], &index).unwrap();
            let (x, src) = (step.tensor(&[targets], &x).unwrap(), step.tensor(&[n], &src).unwrap());
            for y in [ops::scatter_add(&x, 0, &given, &src), ops::index_add(&x, 0, &given, &src)] {
                assert_eq!(step.read(&y.unwrap()).unwrap(), want, "{n} into {targets}");
            }
        }
        // Rounded once, not after each addition: 1 + 300 * 2^-8.
        let x = ops::full(step.scope(), [1], bf16::ONE).unwrap();
        let index = ops::zeros::<u32>(step.scope(), [300]).unwrap();
        let src = ops::full(step.scope(), [300], bf16::from_f32(0.00390625)).unwrap();
        let y = ops::scatter_add(&x, 0, &index, &src).unwrap();
        assert_same(step, &y, &Array { shape: vec![1], data: vec![2.171875] });
        // What nothing is added to stays what it is.
        let x = step.tensor(&[1], &[-0.0f32]).unwrap();
        let none = step.tensor(&[2], &[u32::MAX; 2]).unwrap();
        let y = ops::scatter_add(&x, 0, &none, &step.tensor(&[2], &[0.0f32; 2]).unwrap()).unwrap();
        assert_eq!(step.read(&y).unwrap()[0].to_bits(), 1 << 31);
    });
}

#[test]
fn a_target_out_of_range_is_reported_and_nothing_is_added() {
    for (bad, name) in [(3u32, "scatter_add"), (1 << 31, "index_add"), (u32::MAX - 1, "scatter_add")] {
        let mut rt = Runtime::new(device()).unwrap();
        let step = rt.step().unwrap();
        let x = step.tensor(&[3], &[1.0f32, 2.0, 3.0]).unwrap();
        let index = step.tensor(&[3], &[2, bad, 2]).unwrap();
        let src = step.tensor(&[3], &[10.0f32, 20.0, 40.0]).unwrap();
        let add = if name == "index_add" { ops::index_add } else { ops::scatter_add };
        let y = add(&x, 0, &index, &src).unwrap();
        match step.read(&y) {
            Err(Error::IndexOutOfRange { op, index, bound: 3 }) => {
                assert_eq!((op, index), (name, u64::from(bad)));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(step.read(&y).unwrap(), [1.0, 2.0, 53.0]);
    }
}

#[test]
fn misuse_is_refused() {
    in_step(|step| {
        let zeros = |dims: &[usize]| ops::zeros::<f32>(step.scope(), dims).unwrap();
        let index = |dims: &[usize]| ops::zeros::<u32>(step.scope(), dims).unwrap();
        let x = zeros(&[2, 3]);
        assert!(is_axis(ops::scatter_add(&x, 2, &index(&[2, 3]), &x)));
        assert!(is_axis(ops::index_add(&x, 2, &index(&[3]), &x)));
        assert!(is_axis(ops::scatter_add(&zeros(&[]), 0, &index(&[]), &zeros(&[]))));
        for (of_index, of_src) in [
            (&[2, 3][..], &[2, 2][..]), // an entry without a source
            (&[2, 4], &[2, 4]),         // another column than the target has
            (&[3], &[3]),
            (&[2, 3], &[1, 2, 3]),
        ] {
            assert!(is_shape(ops::scatter_add(&x, 0, &index(of_index), &zeros(of_src))), "{of_index:?}");
        }
        for (of_index, of_src) in [(&[2][..], &[3, 3][..]), (&[2], &[2, 2]), (&[2, 1], &[2, 3]), (&[2], &[2])]
        {
            assert!(is_shape(ops::index_add(&x, 0, &index(of_index), &zeros(of_src))), "{of_src:?}");
        }
    });
}
