use proptest::prelude::*;

use super::*;
use crate::{
    backend::{
        Op,
        cuda::kernels::{
            Dims,
            testing::{Recorder, kinds, locate, offset, shapes, strides, view, whole},
        },
    },
    kernel,
    kernel::definition::{Constant as _, Kernel as _},
    kernel::{definition::Padded, operation::operation},
};

#[kernel]
fn pick(cond: bool, a: f32, b: f32) -> f32 {
    if cond { a } else { b }
}

#[kernel]
fn pick_bytes(cond: bool, a: u8, b: u8) -> u8 {
    if cond { a } else { b }
}

#[kernel]
fn less(a: f32, b: f32) -> bool {
    a < b
}

#[kernel]
fn same(x: f32) -> f32 {
    x
}

#[kernel]
fn sum(a: f32, b: f32) -> f32 {
    a + b
}

#[kernel]
fn negated(x: u8) -> u8 {
    x.wrapping_neg()
}

#[kernel]
fn scaled(x: f32, factor: f32) -> f32 {
    x * factor
}

/// `MapParams` of a launch with so many inputs, numbers, and one output.
struct Params {
    x: Vec<u64>,
    y: u64,
    count: u64,
    packs: u64,
    packed: bool,
    constants: Vec<u64>,
    dims: Dims,
    strides: Vec<[u64; MAX_RANK]>,
}

impl Params {
    fn of(run: &Recorder, inputs: usize, constants: usize) -> Self {
        assert_eq!(run.calls.len(), 1);
        let words: Vec<u64> =
            run.calls[0].2.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
        let mut words = words.into_iter();
        let mut next = |n: usize| -> Vec<u64> { words.by_ref().take(n).collect() };
        let params = Self {
            x: next(inputs),
            y: next(1)[0],
            count: next(1)[0],
            packs: next(1)[0],
            packed: next(1)[0] == 1,
            constants: next(constants),
            dims: bytemuck::cast::<[u64; 7], _>(next(7).try_into().unwrap()),
            strides: (0..inputs).map(|_| next(MAX_RANK).try_into().unwrap()).collect(),
        };
        assert!(words.next().is_none());
        params
    }
}

/// Plays the passes of a launch: every output element is written once, from the elements at the same place, in loads
/// that are aligned.
pub(in crate::kernel) fn check(op: Op, x: &[View], y: &View) {
    let run = Recorder::of(op, x, &[*y]);
    let p = Params::of(&run, x.len(), 0);
    assert_eq!((p.x.clone(), p.y), (x.iter().map(|x| x.addr).collect(), y.addr));
    let largest = x.iter().chain([y]).map(|view| view.dtype.size() as u64).max().unwrap();
    let lanes = if p.packed { 16 / largest } else { 1 };
    assert_eq!(p.count, y.layout.count() as u64);
    let (_, grid, _) = &run.calls[0];
    assert!(u64::from(grid.blocks[0]) * u64::from(grid.threads) >= p.packs, "a pass without a thread");
    let mut written = 0;
    for n in 0..p.packs {
        let left = p.count - n * lanes;
        for (x, strides) in x.iter().zip(&p.strides) {
            let at = locate(p.dims, strides, n);
            let splat = p.packed && strides[0] == 0;
            let size = x.dtype.size() as u64;
            if !splat && left >= lanes {
                assert_eq!((x.addr + at * size) % (size * lanes), 0, "a load that is not aligned");
            }
            for i in 0..lanes.min(left) {
                let from = if splat { at } else { at + i };
                assert_eq!(from, offset(x, n * lanes + i), "of element {}", n * lanes + i);
            }
        }
        let size = y.dtype.size() as u64;
        assert!(left < lanes || (y.addr + n * lanes * size).is_multiple_of(size * lanes));
        written += lanes.min(left);
    }
    assert_eq!(written, p.count);
}

proptest! {
    #[test]
    fn every_element_comes_from_its_place(
        shape in shapes(),
        kinds in [kinds(), kinds(), kinds()],
        t in 0usize..3,
        u in 0usize..2,
        shift in [0u64..4, 0u64..4],
    ) {
        let t = [DType::F32, DType::F16, DType::U8][t];
        let size = t.size() as u64;
        let strides = kinds.each_ref().map(|k| strides(&shape, k));
        // Half of them aligned.
        let [near, far] = shift.map(|s| s.saturating_sub(2));
        let c = view(0x1000 + near, DType::Bool, &shape, &strides[0]);
        let a = view(0x2000 + far * size, t, &shape, &strides[1]);
        let b = view(0x3000, t, &shape, &strides[2]);
        let y = whole(0x4000 + near * size, t, &shape);
        if t == DType::U8 {
            check(Op::fixed(pick_bytes::DEFINITION), &[c, a, b], &y);
        } else {
            check(Op::fixed(pick::DEFINITION), &[c, a, b], &y);
            check(Op::fixed(less::DEFINITION), &[a, b], &whole(0x4000, DType::Bool, &shape));
            let y = whole(0x4000, [DType::F32, DType::F16][u], &shape);
            check(Op::fixed(same::DEFINITION), &[a], &y);
        }
    }
}

#[test]
fn rows_and_whole_tensors_go_by_packs() {
    let t = DType::F32;
    let (x, y) = (whole(0x1000, t, &[3, 5]), whole(0x2000, t, &[3, 5]));
    let half = operation(scaled::DEFINITION, [None, Some(0.5f32.number())].into_iter(), Padded::default());
    let run = Recorder::of(half, &[x], &[y]);
    let p = Params::of(&run, 1, 1);
    assert_eq!((p.packed, p.packs, p.dims.rank), (true, 4, 1), "15 elements, the last pack not full");
    assert_eq!(p.constants, [u64::from(0.5f32.to_bits())]);

    // A bias: the same row for all.
    let (x, y) = (whole(0x1000, t, &[3, 8]), whole(0x2000, t, &[3, 8]));
    let row = view(0x3000, t, &[3, 8], &[0, 1]);
    let p = Params::of(&Recorder::of(Op::fixed(sum::DEFINITION), &[x, row], &[y]), 2, 0);
    assert_eq!((p.packed, p.packs, p.dims.rank, p.dims.wide), (true, 6, 2, 0));

    // Not aligned: one by one.
    let moved = View { addr: 0x1004, ..x };
    let p = Params::of(&Recorder::of(Op::fixed(same::DEFINITION), &[moved], &[y]), 1, 0);
    assert_eq!((p.packed, p.packs), (false, 24));
}

#[test]
fn large_tensors_are_counted_in_64_bits() {
    let n = 1usize << 20;
    let x = view(0x1000, DType::U8, &[n, n], &[1, n]);
    let run = Recorder::of(Op::fixed(negated::DEFINITION), &[x], &[whole(0x2000, DType::U8, &[n, n])]);
    let p = Params::of(&run, 1, 0);
    assert_eq!((p.packs, p.dims.wide), (1 << 40, 1));
    assert_eq!(run.calls[0].1.blocks, [i32::MAX as u32, 1, 1], "as many as there may be; the kernel loops");
}

#[test]
fn nothing_is_launched_for_nothing() {
    let (x, y) = (whole(0x1000, DType::F32, &[3, 0]), whole(0x2000, DType::F32, &[3, 0]));
    assert!(Recorder::of(Op::fixed(same::DEFINITION), &[x], &[y]).calls.is_empty());
}

#[test]
fn a_kernel_is_one_for_each_combination_of_types() {
    let entry = |from, to| {
        let run = Recorder::of(
            Op::fixed(same::DEFINITION),
            &[whole(0x1000, from, &[8])],
            &[whole(0x2000, to, &[8])],
        );
        run.calls[0].0.unit.source
    };
    let narrowing = entry(DType::F32, DType::Bf16);
    assert!(std::ptr::eq(narrowing, entry(DType::F32, DType::Bf16)));
    assert!(!std::ptr::eq(narrowing, entry(DType::Bf16, DType::F32)));
    assert!(
        narrowing.text.contains("Pack<f32, V> x0;") && narrowing.text.contains("lang::Results<bf16, V> y0;")
    );
}
