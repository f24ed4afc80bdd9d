use proptest::prelude::*;

use super::*;
use crate::{
    DType,
    backend::cuda::kernels::testing::{Recorder, kinds, moved, pairs, shapes, strides, view, whole, word_of},
    memory::{COPY, PAD},
};

const TYPES: [DType; 3] = [DType::I32, DType::Bf16, DType::U8];

proptest! {
    #[test]
    fn copies_move_every_byte(
        shape in shapes(),
        kinds in [kinds(), kinds()],
        t in 0usize..3,
        shift in 0u64..4,
    ) {
        let t = TYPES[t];
        let x = view(0x1000 + shift.saturating_sub(2) * 4, t, &shape, &strides(&shape, &kinds[0]));
        // No element is written twice.
        let to: Vec<u8> = kinds[1].iter().map(|k| k | 1).collect();
        let y = view(0x8000, t, &shape, &strides(&shape, &to));
        let run = Recorder::of(COPY, &[x], &[y]);
        let got = match run.calls[0].0.name {
            "copy_flat" => {
                let p: FlatParams = run.params(0);
                prop_assert_eq!((p.from | p.to) % 16, 0);
                (0..p.bytes).map(|b| (p.to + b, p.from + b)).collect()
            }
            name => moved(&run.params(0), word_of(name)),
        };
        prop_assert_eq!(got, pairs(&x, &y));
    }

    #[test]
    fn pads_reach_as_far_as_the_input(
        shape in shapes(),
        more in proptest::collection::vec(0usize..3, 5),
        factor in prop_oneof![Just(1usize), Just(8)],
        kinds in kinds(),
        t in 0usize..3,
    ) {
        let t = TYPES[t];
        let large: Vec<usize> = shape.iter().zip(&more).map(|(n, m)| n + m * factor).collect();
        let (x, y) = (view(0x1000, t, &shape, &strides(&shape, &kinds)), whole(0x8000, t, &large));
        let run = Recorder::of(PAD, &[x], &[y]);
        let p: PadParams = run.params(0);
        let (word, size) = (word_of(run.calls[0].0.name), t.size() as u64);
        let mut got = Vec::new();
        for n in 0..p.count {
            let (mut rest, mut at, mut inside) = (n, 0, true);
            for axis in 0..p.dims.rank as usize {
                let mut part = rest;
                if axis + 1 < p.dims.rank as usize {
                    rest = part / p.dims.shape[axis];
                    part -= rest * p.dims.shape[axis];
                }
                inside &= part < p.limits[axis];
                at += part * p.strides[axis];
            }
            got.extend((0..word).map(|b| inside.then(|| p.from + at * word + b)));
        }
        let mut want = Vec::new();
        for i in 0..y.layout.count() {
            let (mut rest, mut at) = (i, Some(0));
            for axis in (0..large.len()).rev() {
                let here = rest % large[axis];
                rest /= large[axis];
                at = at.filter(|_| here < shape[axis]).map(|at| at + here * x.layout.strides()[axis]);
            }
            want.extend((0..size).map(|b| at.map(|at| x.addr + at as u64 * size + b)));
        }
        prop_assert_eq!(got, want);
    }
}

#[test]
fn contiguous_copies_use_the_widest_words() {
    let x = whole(0x1000, DType::F16, &[3, 5]);
    let run = Recorder::of(COPY, &[x], &[View { addr: 0x2000, ..x }]);
    assert_eq!((run.calls[0].0.name, run.params::<FlatParams>(0).bytes), ("copy_flat", 30));
    // Rows of a cache.
    let (x, y) = (whole(0x1000, DType::F16, &[3, 8]), view(0x2000, DType::F16, &[3, 8], &[64, 1]));
    assert_eq!(Recorder::of(COPY, &[x], &[y]).calls[0].0.name, "copy_16");
    let y = View { addr: 0x2008, ..y };
    assert_eq!(Recorder::of(COPY, &[x], &[y]).calls[0].0.name, "copy_8");
}

#[test]
fn padding_of_nothing_is_zeros() {
    let (x, y) = (whole(0x1000, DType::F32, &[0, 3]), whole(0x2000, DType::F32, &[2, 3]));
    let run = Recorder::of(PAD, &[x], &[y]);
    let p: PadParams = run.params(0);
    // Words of 8 bytes, none of which is inside.
    assert_eq!((run.calls[0].0.name, p.to, p.count, p.limits[0], p.dims.rank), ("pad_8", 0x2000, 3, 0, 1));
}
