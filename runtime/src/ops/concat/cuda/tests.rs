use proptest::prelude::*;

use super::{super::operation::Concat, *};
use crate::{
    DType,
    backend::cuda::kernels::testing::{Recorder, kinds, moved, pairs, shapes, strides, view, whole, word_of},
};

const TYPES: [DType; 3] = [DType::I32, DType::Bf16, DType::U8];

proptest! {
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
}
