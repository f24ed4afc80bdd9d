use proptest::prelude::*;

use super::{transpose::TransposeParams, *};
use crate::{
    DType,
    backend::cuda::kernels::testing::{
        Recorder, kinds, locate, moved, pairs, shapes, strides, view, whole, word_of,
    },
    memory::{COPY, PAD},
};

const TYPES: [DType; 4] = [DType::I32, DType::Bf16, DType::U8, DType::F64];

/// Bytes that a kernel of `transpose.cu` copies, as pairs of addresses, sorted by destination.
fn transposed(p: &TransposeParams, name: &str) -> Vec<(u64, u64)> {
    let (size, pack) = match name {
        "transpose_1_in_fours" => (1, 4),
        "transpose_2_in_pairs" => (2, 2),
        name => (word_of(name), 1),
    };
    let side = 32 * pack;
    let mut pairs = Vec::new();
    for n in 0..p.squares {
        let (line, plane) = (n / u64::from(p.across), n / u64::from(p.across) / u64::from(p.down));
        let (column, row) = (n % u64::from(p.across) * side, line % u64::from(p.down) * side);
        let [from, to] =
            [(p.from, 0), (p.to, 1)].map(|(addr, k)| addr + size * locate(p.dims, &p.strides[k], plane));
        for (r, c) in (row..row + side).flat_map(|r| (column..column + side).map(move |c| (r, c))) {
            // A thread asks for the first of a word's elements alone.
            let is_inside = |at: u64, count: u64| at / pack * pack < count;
            if is_inside(r, p.rows) && is_inside(c, p.columns) {
                let (from, to) = (from + size * (r * p.from_stride + c), to + size * (c * p.to_stride + r));
                assert!(c % pack > 0 || from % (size * pack) == 0, "a word that is not aligned");
                assert!(r % pack > 0 || to % (size * pack) == 0, "a word that is not aligned");
                pairs.extend((0..size).map(|b| (to + b, from + b)));
            }
        }
    }
    pairs.sort_unstable();
    pairs
}

/// Shapes of which some have two dimensions that are worth a transposition.
fn planes() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(prop_oneof![Just(1), Just(3), Just(16), Just(20), Just(33), Just(66)], 2..=3)
}

proptest! {
    #[test]
    fn copies_move_every_byte(
        shape in prop_oneof![shapes(), planes()],
        kinds in [kinds(), kinds()],
        t in 0usize..4,
        shift in 0u64..4,
    ) {
        let t = TYPES[t];
        let x = view(0x1000 + shift.saturating_sub(2) * t.size() as u64, t, &shape, &strides(&shape, &kinds[0]));
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
            name if name.starts_with("transpose") => transposed(&run.params(0), name),
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
fn views_of_other_orders_are_transposed() {
    let named = |dtype: DType, addr: u64, [n, c, places]: [usize; 3]| {
        let x = view(addr, dtype, &[n, places, c], &[c * places, 1, places]);
        Recorder::of(COPY, &[x], &[whole(0x9000_0000, dtype, &[n, places, c])]).calls[0].0.name
    };
    assert_eq!(named(DType::F32, 0x1000, [2, 64, 49]), "transpose_4");
    assert_eq!(named(DType::I64, 0x1000, [2, 64, 49]), "transpose_8");
    assert_eq!(named(DType::Bf16, 0x1000, [2, 64, 56]), "transpose_2_in_pairs");
    // Lines, or addresses, that are not whole words.
    assert_eq!(named(DType::Bf16, 0x1000, [2, 64, 49]), "transpose_2");
    assert_eq!(named(DType::Bf16, 0x1002, [2, 64, 56]), "transpose_2");
    assert_eq!(named(DType::U8, 0x1000, [1, 64, 64]), "transpose_1_in_fours");
    assert_eq!(named(DType::U8, 0x1000, [1, 64, 66]), "transpose_1");
    // Too few words for a square of them.
    assert_eq!(named(DType::U8, 0x1000, [1, 60, 64]), "transpose_1");
    assert_eq!(named(DType::Bf16, 0x1000, [2, 30, 64]), "transpose_2");
    // Narrow ones.
    assert_eq!(named(DType::F32, 0x1000, [2, 3, 49]), "copy_4");
    assert_eq!(named(DType::F32, 0x1000, [2, 64, 9]), "copy_4");
}

#[test]
fn padding_of_nothing_is_zeros() {
    let (x, y) = (whole(0x1000, DType::F32, &[0, 3]), whole(0x2000, DType::F32, &[2, 3]));
    let run = Recorder::of(PAD, &[x], &[y]);
    let p: PadParams = run.params(0);
    // Words of 8 bytes, none of which is inside.
    assert_eq!((run.calls[0].0.name, p.to, p.count, p.limits[0], p.dims.rank), ("pad_8", 0x2000, 3, 0, 1));
}
