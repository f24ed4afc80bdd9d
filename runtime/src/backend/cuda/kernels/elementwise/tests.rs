use proptest::prelude::*;

use super::super::testing::{Recorder, kinds, locate, offset, shapes, strides, view, whole};
use super::*;
use crate::backend::operations::{CAST, SELECT};

/// Plays the passes of a kernel over `N` inputs: every output element is written once, from the
/// elements at the same place, in loads that are aligned.
#[allow(clippy::too_many_arguments)] // What the parameters of both kernels share.
fn check<const N: usize>(
    x: [&View; N],
    y: &View,
    (count, packs, vec, dims): (u64, u64, u32, Dims),
    strides: &[[u64; MAX_RANK]],
    lanes: u64,
) {
    let lanes = if vec == 1 { lanes } else { 1 };
    assert_eq!(count, y.layout.count() as u64);
    let mut written = 0;
    for n in 0..packs {
        let left = count - n * lanes;
        for (k, x) in x.into_iter().enumerate() {
            let at = locate(dims, &strides[k], n);
            let splat = vec == 1 && strides[k][0] == 0;
            let size = x.dtype.size() as u64;
            if !splat && left >= lanes {
                assert_eq!((x.addr + at * size) % (size * lanes), 0, "a load that is not aligned");
            }
            for i in 0..lanes.min(left) {
                let from = if splat { at } else { at + i };
                assert_eq!(from, offset(x, n * lanes + i), "operand {k} of element {}", n * lanes + i);
            }
        }
        let size = y.dtype.size() as u64;
        assert!(left < lanes || (y.addr + n * lanes * size).is_multiple_of(size * lanes));
        written += lanes.min(left);
    }
    assert_eq!(written, count);
}

const TYPES: [DType; 3] = [DType::F32, DType::F16, DType::U8];

proptest! {
    #[test]
    fn every_element_comes_from_its_place(
        shape in shapes(),
        kinds in [kinds(), kinds(), kinds()],
        t in 0usize..3,
        u in 0usize..3,
        shift in [0u64..4, 0u64..4],
    ) {
        let (t, u) = (TYPES[t], TYPES[u]);
        let size = t.size() as u64;
        let strides = kinds.each_ref().map(|k| strides(&shape, k));
        // Half of them aligned.
        let [near, far] = shift.map(|s| s.saturating_sub(2));
        let c = view(0x1000 + near, DType::Bool, &shape, &strides[0]);
        let a = view(0x2000 + far * size, t, &shape, &strides[1]);
        let b = view(0x3000, t, &shape, &strides[2]);
        let y = whole(0x4000 + near * size, t, &shape);
        let lanes = 16 / size;

        let run = Recorder::of(SELECT, &[c, a, b], &[y]);
        let p: ElementParams = run.params(0);
        prop_assert_eq!((p.x, p.y, run.calls.len()), ([c.addr, a.addr, b.addr], y.addr, 1));
        check([&c, &a, &b], &y, (p.count, p.packs, p.vec, p.dims), &p.strides, lanes);

        let truth = whole(0x4000, DType::Bool, &shape);
        let p: ElementParams = Recorder::of(Compare::Lt, &[a, b], &[truth]).params(0);
        check([&a, &b], &truth, (p.count, p.packs, p.vec, p.dims), &p.strides, lanes);

        let y = whole(0x4000, u, &shape);
        let p: CastParams = Recorder::of(CAST, &[a], &[y]).params(0);
        let lanes = 16 / t.size().max(u.size()) as u64;
        check([&a], &y, (p.count, p.packs, p.vec, p.dims), &p.strides, lanes);
    }
}

#[test]
fn rows_and_whole_tensors_go_by_packs() {
    let t = DType::F32;
    let (x, y) = (whole(0x1000, t, &[3, 5]), whole(0x2000, t, &[3, 5]));
    let run = Recorder::of(Unary::Scale(0.5), &[x], &[y]);
    let p: ElementParams = run.params(0);
    assert_eq!(
        (p.vec, p.packs, p.dims.rank, p.factor),
        (1, 4, 1, 0.5),
        "15 elements, the last pack not full"
    );
    assert_eq!(run.calls[0].0, Kernel::of(&ELEMENTWISE, t, "unary_scale"));

    // A bias: the same row for all.
    let (x, y) = (whole(0x1000, t, &[3, 8]), whole(0x2000, t, &[3, 8]));
    let row = view(0x3000, t, &[3, 8], &[0, 1]);
    let p: ElementParams = Recorder::of(Binary::Add, &[x, row], &[y]).params(0);
    assert_eq!((p.vec, p.packs, p.dims.rank, p.dims.wide), (1, 6, 2, 0));

    // Not aligned: one by one.
    let p: ElementParams = Recorder::of(Unary::Neg, &[View { addr: 0x1004, ..x }], &[y]).params(0);
    assert_eq!((p.vec, p.packs), (0, 24));
}

#[test]
fn large_tensors_are_counted_in_64_bits() {
    let n = 1usize << 20;
    let x = view(0x1000, DType::U8, &[n, n], &[1, n]);
    let y = whole(0x2000, DType::U8, &[n, n]);
    let run = Recorder::of(Unary::Neg, &[x], &[y]);
    let p: ElementParams = run.params(0);
    assert_eq!((p.packs, p.dims.wide), (1 << 40, 1));
    assert_eq!(run.calls[0].1.blocks, [24, 1, 1], "as many as run at once");
}

#[test]
fn nothing_is_launched_for_nothing() {
    let (x, y) = (whole(0x1000, DType::F32, &[3, 0]), whole(0x2000, DType::F32, &[3, 0]));
    assert!(Recorder::of(Unary::Neg, &[x], &[y]).calls.is_empty());
}
