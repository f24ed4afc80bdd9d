use proptest::prelude::*;

use super::{super::operation::SCATTER_ROWS, *};
use crate::{
    DType,
    backend::cuda::kernels::testing::{
        Recorder, kinds, locate, offset, shapes, strides, view, whole, word_of,
    },
};

const TYPES: [DType; 3] = [DType::I32, DType::Bf16, DType::U8];

/// The row that the `k`-th index names, here and in the kernels.
fn row(k: u64, rows: u64) -> u64 {
    (k * 7 + 3) % rows
}

proptest! {
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
fn scatters_take_the_count_and_share_long_rows() {
    let (index, x) = (whole(0x100, DType::U32, &[2]), whole(0x1000, DType::F32, &[2, 1 << 16]));
    let (y, count) = (whole(0x8000, DType::F32, &[4, 1 << 16]), whole(0x200, DType::U32, &[]));
    let run = Recorder::of(SCATTER_ROWS, &[index, x, count], &[y]);
    let p: ScatterParams = run.params(0);
    assert_eq!((p.to.shown().2, p.len, p.strides), (0x200, 1 << 14, [1 << 14; 2]));
    assert_eq!(run.calls[0].1.blocks, [2, 12, 1], "24 blocks run at once");
}
