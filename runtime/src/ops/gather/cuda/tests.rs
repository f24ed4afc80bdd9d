use proptest::prelude::*;

use super::{
    super::operation::{Embedding, Gather},
    *,
};
use crate::{
    DType,
    backend::cuda::kernels::testing::{Recorder, kinds, locate, shapes, strides, view, whole, word_of},
};

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
        let id = (locate(p.picks.ids, &p.picks.strides[0], k), k).1;
        let at = locate(p.outer, &p.outer_strides[0], o)
            + row(id, p.picks.rows) * p.stride
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
        let run = Recorder::of(Gather { name: "gather", axis, counts: Counts::NONE }, &[x, index], &[y]);
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
    assert_eq!((p.count, p.len, p.n, p.picks.rows, p.stride, p.picks.op), (48, 8, 6, 100, 8, 9));
    let places: Vec<u64> = (0..6).map(|k| locate(p.picks.ids, &p.picks.strides[0], k)).collect();
    assert_eq!(places, [0, 2, 4, 1, 3, 5]);
    assert_eq!((p.picks.sink.fault, p.picks.sink.claim), (64, 128));
}
