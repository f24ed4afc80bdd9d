use proptest::prelude::*;

use super::super::testing::{Recorder, kinds, locate, offset, shapes, strides, view, whole};
use super::*;
use crate::DType;
use crate::backend::operations::{Embedding, Gather, SCATTER_ROWS};

fn word_of(name: &str) -> u64 {
    name.rsplit('_').next().unwrap().parse().unwrap()
}

const TYPES: [DType; 3] = [DType::I32, DType::Bf16, DType::U8];

/// The row that the `k`-th index names, here and in the kernels.
fn row(k: u64, rows: u64) -> u64 {
    (k * 7 + 3) % rows
}

/// For each byte of the output, the address that a kernel reads it from.
fn picked(run: &Recorder) -> Vec<u64> {
    let (p, word): (PickParams, _) = (run.params(0), word_of(run.calls[0].0.name));
    let mut bytes = Vec::new();
    for i in 0..p.count {
        let (slice, e) = (i / p.len, i % p.len);
        let (o, k) = (slice / p.n, slice % p.n);
        let id = (locate(p.ids, &p.ids_strides[0], k), k).1;
        let at = locate(p.outer, &p.outer_strides[0], o)
            + row(id, p.rows) * p.stride
            + locate(p.inner, &p.inner_strides[0], e);
        assert_eq!((p.x + at * word) % word + (p.y + i * word) % word, 0, "a word that is not aligned");
        bytes.extend((0..word).map(|b| p.x + at * word + b));
    }
    bytes
}

proptest! {
    #[test]
    fn gathers_pick_every_byte(
        shape in shapes(),
        axis in 0usize..4,
        n in 1usize..5,
        kinds in kinds(),
        t in 0usize..3,
        shift in 0u64..3,
    ) {
        prop_assume!(axis < shape.len());
        let (t, size) = (TYPES[t], TYPES[t].size() as u64);
        let x = view(0x1000 + shift.saturating_sub(1) * size, t, &shape, &strides(&shape, &kinds));
        let mut out = shape.clone();
        out[axis] = n;
        let (index, y) = (whole(0x100, DType::U32, &[n]), whole(0x8000, t, &out));
        let run = Recorder::of(Gather { axis, counts: Counts::NONE }, &[x, index], &[y]);
        let mut want = Vec::new();
        for i in 0..y.layout.count() {
            let (mut rest, mut at) = (i, 0);
            for d in (0..out.len()).rev() {
                let here = rest % out[d];
                rest /= out[d];
                let here = if d == axis { row(here as u64, shape[axis] as u64) as usize } else { here };
                at += here * x.layout.strides()[d];
            }
            want.extend((0..size).map(|b| x.addr + at as u64 * size + b));
        }
        prop_assert_eq!(picked(&run), want);
    }

    #[test]
    fn scatters_place_every_byte_of_a_row(
        row_shape in shapes(),
        n in 1usize..5,
        kinds in kinds(),
        t in 0usize..3,
    ) {
        let (t, size) = (TYPES[t], TYPES[t].size() as u64);
        let given: Vec<usize> = std::iter::once(n).chain(row_shape.iter().copied()).collect();
        let all: Vec<usize> = std::iter::once(9).chain(row_shape.iter().copied()).collect();
        let x = view(0x1000, t, &given, &strides(&given, &kinds));
        let (y, index) = (whole(0x8000, t, &all), whole(0x100, DType::U32, &[n]));
        let run = Recorder::of(SCATTER_ROWS, &[index, x], &[y]);
        let (p, word): (ScatterParams, _) = (run.params(0), word_of(run.calls[0].0.name));
        prop_assert_eq!(p.to.shown(), (n as u64, 9, 0));
        let width = row_shape.iter().product::<usize>() as u64;
        for i in 0..n as u64 {
            let to_row = row(i, 9);
            let mut got = Vec::new();
            for e in 0..p.len {
                let from = p.x + word * (i * p.strides[0] + locate(p.inner, &p.inner_strides[0], e));
                let to = p.y + word * (to_row * p.strides[1] + locate(p.inner, &p.inner_strides[1], e));
                prop_assert_eq!((from | to) % word, 0);
                got.extend((0..word).map(|b| (from + b, to + b)));
            }
            let want: Vec<_> = (0..width * size)
                .map(|b| {
                    let (e, b) = (b / size, b % size);
                    let from = x.addr + offset(&x, i * width + e) * size + b;
                    (from, y.addr + (to_row * width + e) * size + b)
                })
                .collect();
            prop_assert_eq!(got, want);
        }
    }
}

#[test]
fn embeddings_read_rows_by_the_widest_words() {
    let table = whole(0x1000, DType::Bf16, &[100, 64]);
    let ids = view(0x100, DType::U32, &[2, 3], &[1, 2]);
    let run = Recorder::of(
        Embedding { counts: Counts::NONE },
        &[ids, table],
        &[whole(0x8000, DType::Bf16, &[2, 3, 64])],
    );
    let p: PickParams = run.params(0);
    assert_eq!(run.calls[0].0.name, "pick_16");
    assert_eq!((p.count, p.len, p.n, p.rows, p.stride, p.op), (48, 8, 6, 100, 8, 9));
    let places: Vec<u64> = (0..6).map(|k| locate(p.ids, &p.ids_strides[0], k)).collect();
    assert_eq!(places, [0, 2, 4, 1, 3, 5]);
    assert_eq!((p.sink.fault, p.sink.claim), (64, 128));
}

#[test]
fn scatters_take_the_count_and_share_long_rows() {
    let (index, x) = (whole(0x100, DType::U32, &[2]), whole(0x1000, DType::F32, &[2, 1 << 16]));
    let (y, count) = (whole(0x8000, DType::F32, &[4, 1 << 16]), whole(0x200, DType::U32, &[]));
    let run = Recorder::of(SCATTER_ROWS, &[index, x, count], &[y]);
    let p: ScatterParams = run.params(0);
    assert_eq!((p.to.shown().2, p.len, p.strides), (0x200, 1 << 14, [1 << 14; 2]));
    assert_eq!(run.calls[0].1.blocks, [2, 12, 1], "24 blocks run at once");
}
