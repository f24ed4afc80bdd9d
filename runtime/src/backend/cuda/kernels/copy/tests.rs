use proptest::prelude::*;

use super::super::testing::{Recorder, kinds, locate, offset, shapes, strides, view, whole};
use super::*;
use crate::backend::operations::{Arange, COPY, Concat, Fill, PAD};

fn word_of(name: &str) -> u64 {
    name.rsplit('_').next().unwrap().parse().unwrap()
}

/// Bytes that a move copies, as pairs of addresses, sorted by destination.
fn moved(m: &Move, word: u64) -> Vec<(u64, u64)> {
    let mut pairs = Vec::new();
    for n in 0..m.count {
        let [from, to] =
            [(m.from, 0), (m.to, 1)].map(|(addr, k)| addr + word * locate(m.dims, &m.strides[k], n));
        assert_eq!((from | to) % word, 0, "a word that is not aligned");
        pairs.extend((0..word).map(|b| (to + b, from + b)));
    }
    pairs.sort_unstable();
    pairs
}

/// The same by definition.
fn pairs(x: &View, y: &View) -> Vec<(u64, u64)> {
    let size = x.dtype.size() as u64;
    let mut pairs = Vec::new();
    for i in 0..x.layout.count() as u64 {
        let (from, to) = (x.addr + offset(x, i) * size, y.addr + offset(y, i) * size);
        pairs.extend((0..size).map(|b| (to + b, from + b)));
    }
    pairs.sort_unstable();
    pairs
}

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
    fn concats_move_every_byte(
        shape in shapes(),
        axis in 0usize..4,
        sizes in proptest::collection::vec(0usize..5, 1..12),
        kinds in kinds(),
        t in 0usize..3,
    ) {
        prop_assume!(axis < shape.len() && sizes.iter().sum::<usize>() > 0);
        let t = TYPES[t];
        let with = |n: usize| {
            let mut shape = shape.clone();
            shape[axis] = n;
            shape
        };
        let y = whole(0x10_0000, t, &with(sizes.iter().sum()));
        let (mut at, mut inputs, mut want) = (0, Vec::new(), Vec::new());
        for (i, &n) in sizes.iter().enumerate() {
            let x = view(0x1_0000 * (i as u64 + 32), t, &with(n), &strides(&with(n), &kinds));
            let start = (at * y.layout.strides()[axis] * t.size()) as u64;
            want.extend(pairs(&x, &View { addr: y.addr + start, layout: y.layout.with_dim(axis, n), ..y }));
            inputs.push(x);
            at += n;
        }
        let run = Recorder::of(Concat { axis }, &inputs, &[y]);
        let mut got = Vec::new();
        for (i, (kernel, grid, _)) in run.calls.iter().enumerate() {
            let p: JoinParams = run.params(i);
            for part in &p.parts[..grid.blocks[1] as usize] {
                got.extend(moved(part, word_of(kernel.name)));
            }
        }
        got.sort_unstable();
        want.sort_unstable();
        prop_assert_eq!(want.len(), y.layout.count() * t.size());
        prop_assert_eq!(got, want);
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
fn fills_carry_the_bits_of_the_element() {
    let bits =
        |dtype, value| Recorder::of(Fill(value), &[], &[whole(0x1000, dtype, &[7])]).params::<FillParams>(0);
    assert_eq!(bits(DType::F32, 1.0).pattern, 0x3f80_0000);
    assert_eq!(bits(DType::F16, 1.0).pattern, 0x3c00_3c00);
    assert_eq!(bits(DType::Bf16, f64::NEG_INFINITY).pattern, 0xff80_ff80);
    // Just above the tie between 1 and the next bf16.
    assert_eq!(bits(DType::Bf16, 1.0 + f64::powi(2.0, -8) + 1e-12).pattern, 0x3f81_3f81);
    assert_eq!(bits(DType::I32, -1e300).pattern, 0x8000_0000);
    assert_eq!(bits(DType::U32, f64::NAN).pattern, 0);
    assert_eq!(bits(DType::U8, 3.9).pattern, 0x0303_0303);
    assert_eq!((bits(DType::Bool, 2.0).pattern, bits(DType::Bool, 2.0).bytes), (0x0101_0101, 7));
}

#[test]
fn padding_of_nothing_is_zeros() {
    let (x, y) = (whole(0x1000, DType::F32, &[0, 3]), whole(0x2000, DType::F32, &[2, 3]));
    let run = Recorder::of(PAD, &[x], &[y]);
    let p: FillParams = run.params(0);
    assert_eq!((run.calls[0].0.name, p.to, p.bytes, p.pattern), ("fill", 0x2000, 24, 0));
}

#[test]
fn aranges_pass_their_values_on() {
    let run = Recorder::of(Arange { start: 100.0, step: -0.75 }, &[], &[whole(0x1000, DType::Bf16, &[9])]);
    let p: ArangeParams = run.params(0);
    assert_eq!((run.calls[0].0.name, p.to, p.count), ("arange_bf16", 0x1000, 9));
    assert_eq!((p.start, p.step), (100.0, -0.75));
}
