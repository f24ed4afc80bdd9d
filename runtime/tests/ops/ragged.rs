use graphable::{Element, bf16, f16, ops};
use rand::Rng;

use crate::harness::{assert_same, cases, for_types, in_step, input, is_argument, is_shape, part_of, shape};
use crate::reference::Array;

fn finds<T: Element>() {
    cases(40, |step, rng| {
        let dims = shape(rng, 1, 3);
        let (x, host) = input::<T>(step, rng, &dims, (-1.4, 1.4));
        let mut want = Vec::new();
        Array::from_fn(&dims, |i| {
            if host.at(i) != 0.0 {
                want.extend(i.iter().map(|&v| v as u32));
            }
            0.0
        });
        let found = step.nonzero(&x).unwrap();
        assert_eq!(found.shape(), [want.len() / dims.len(), dims.len()]);
        assert_eq!(found.read(step).unwrap(), want);

        let part = part_of(rng, &dims);
        let (mask, hm) = input::<bool>(step, rng, &part, (0.0, 1.0));
        let mut want = Vec::new();
        Array::from_fn(&dims, |i| {
            if hm.at(i) != 0.0 {
                want.push(T::from_f64(host.at(i)));
            }
            0.0
        });
        assert_eq!(step.masked_select(&x, &mask).unwrap().read(step).unwrap(), want);

        let mut want: Vec<f64> = host.data.clone();
        want.sort_by(f64::total_cmp);
        want.dedup();
        let unique: Vec<f64> =
            step.unique(&x).unwrap().read(step).unwrap().iter().map(|v| v.to_f64()).collect();
        assert_eq!(unique, want);

        let repeats: Vec<u32> = (0..dims[0]).map(|_| rng.random_range(0..4)).collect();
        let width: usize = dims[1..].iter().product();
        let mut want = Vec::new();
        for (i, &n) in repeats.iter().enumerate() {
            for _ in 0..n {
                want.extend(host.data[i * width..(i + 1) * width].iter().map(|&v| T::from_f64(v)));
            }
        }
        let repeated = step.repeat_interleave(&x, &step.tensor(&[dims[0]], &repeats).unwrap()).unwrap();
        assert_eq!(repeated.len(), repeats.iter().sum::<u32>() as usize);
        assert_eq!(repeated.read(step).unwrap(), want);
    });
}

#[test]
fn nonzero_select_unique_repeat() {
    for_types!(finds: f32, f16, bf16, f64, i32, i64, i8, u32, u8, bool);
}

#[test]
fn bincount_counts() {
    in_step(|step| {
        let x = step.tensor(&[2, 3], &[4u32, 0, 1, 4, 4, 1]).unwrap();
        assert_eq!(step.bincount(&x).unwrap().read(step).unwrap(), [1, 2, 0, 0, 3]);
        let none = step.tensor(&[0], &[0u32; 0]).unwrap();
        assert!(step.bincount(&none).unwrap().is_empty());
        assert!(is_argument(step.bincount(&step.tensor(&[1], &[u32::MAX]).unwrap())));
    });
}

#[test]
fn nan_is_unique_and_zero_has_no_sign() {
    in_step(|step| {
        let x = step.tensor(&[6], &[f32::NAN, 0.0, -0.0, -f32::NAN, f32::INFINITY, -1.0]).unwrap();
        let got = step.unique(&x).unwrap().read(step).unwrap();
        assert_eq!(got[..3], [-1.0, 0.0, f32::INFINITY]);
        assert!(got.len() == 4 && got[3].is_nan());
    });
}

#[test]
fn pad_to_fixes_the_size_and_keeps_the_count() {
    in_step(|step| {
        let x = step.tensor(&[5], &[0.0f32, 2.0, 0.0, 3.0, 4.0]).unwrap();
        let found = step.nonzero(&x).unwrap();
        let (padded, count) = found.pad_to(4, 9).unwrap();
        assert_same(step, &padded, &Array { shape: vec![4, 1], data: vec![1.0, 3.0, 4.0, 9.0] });
        assert_eq!(step.item(&count).unwrap(), 3);
        let (exact, count) = found.pad_to(3, 9).unwrap();
        assert_eq!(step.read(&exact).unwrap(), [1, 3, 4]);
        assert_eq!(step.item(&count).unwrap(), 3);
        assert!(is_argument(found.pad_to(2, 9)));
        let none = step.nonzero(&ops::zeros_like(&x).unwrap()).unwrap();
        let (padded, count) = none.pad_to(2, 7).unwrap();
        assert_eq!(step.read(&padded).unwrap(), [7, 7]);
        assert_eq!(step.item(&count).unwrap(), 0);
    });
}

#[test]
fn shapes_that_do_not_fit() {
    in_step(|step| {
        let x = step.tensor(&[2], &[1u32, 2]).unwrap();
        let three = step.tensor(&[3], &[1u32, 2, 3]).unwrap();
        assert!(is_shape(step.repeat_interleave(&x, &three)));
        let mask = step.tensor(&[3], &[true; 3]).unwrap();
        assert!(is_shape(step.masked_select(&x, &mask)));
    });
}
