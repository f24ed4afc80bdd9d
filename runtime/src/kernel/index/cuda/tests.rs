use super::*;
use crate::{
    backend::{
        Op,
        cuda::kernels::testing::{Recorder, view, whole},
    },
    kernel,
    kernel::{
        definition::{Constant as _, Kernel as _, Kind, Number},
        index::operation::Indexed,
        operation::operation,
    },
};

#[kernel(index)]
fn picked(ids: View<u32, 1>, x: View<f32, 2>, by: i32, [i, j]: [i32; 2]) -> f32 {
    x.at([ids.at([i]), j + by])
}

#[kernel(index)]
fn causal([i, j]: [i32; 2]) -> bool {
    j <= i
}

#[test]
fn numbers_below_2_31_are_divided_by_any_size() {
    let sizes = (1..70).chain([255, 256, 257, 1000, 65_535, 65_536, 65_537, (1 << 30) + 1, (1 << 31) - 1]);
    for size in sizes {
        let Divisor { multiplier, shift } = Divisor::new(size);
        let divided = |n: u32| match multiplier {
            0 => n,
            _ => ((u64::from(n) * u64::from(multiplier)) >> 32) as u32 >> shift,
        };
        let near = |n: usize| (n.saturating_sub(2)..n + 3).filter(|n| *n < NARROW);
        let multiples = (0..40).chain([1000, (NARROW - 1) / size]).flat_map(|k| near(k * size));
        for n in multiples.chain(near(NARROW - 1)) {
            assert_eq!(divided(n as u32), (n / size) as u32, "{n} / {size}");
        }
    }
}

#[test]
fn a_launch_describes_its_views() {
    let ids = view(0x100, DType::U32, &[3], &[2]);
    let x = view(0x200, DType::F16, &[5, 4], &[1, 5]);
    let by = whole(0x300, DType::I32, &[]);
    let (y, count) = (whole(0x400, DType::F16, &[3, 4]), whole(0x500, DType::U32, &[]));
    let words = |run: &Recorder| -> Vec<u64> {
        run.calls[0].2.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect()
    };
    let Kind::Index(index) = &picked::DEFINITION.kind else { panic!("a kernel of indices") };
    let op = |number: Option<Number>, padded: &[PaddedDim]| {
        let padding = Indexed { index, padded: padded.into(), ahead: SmallVec::new() };
        operation(picked::DEFINITION, [None, None, number].into_iter(), padding)
    };
    let run = Recorder::of(op(None, &[]), &[ids, x, by], &[y]);
    assert_eq!(run.calls[0].1.blocks, [1, 1, 1]);
    let of_out = |real| [3, 4, Divisor::new(3).multiplier.into(), 1 << 31, 1, 1, real, 0];
    let got = words(&run);
    assert_eq!(got[..4], [0x100, 0x200, 0x300, 0x400]);
    assert_eq!(got[4..7], [12, 64, 128]);
    assert_eq!(got[8..16], of_out(0));
    assert_eq!(got[16..], [3, 2, 0, 5, 4, 1, 5, 0, 0]);

    let padded = [Owner::Input(0), Owner::Results].map(|of| PaddedDim { of, axis: 0, count: 0 });
    let run = Recorder::of(op(Some(7i32.number()), &padded), &[ids, x, count], &[y]);
    let got = words(&run);
    assert_eq!(got[..3], [0x100, 0x200, 0x400]);
    assert_eq!(got[7], 7, "the number, in place of a tensor");
    assert_eq!(got[8..16], of_out(0x500));
    assert_eq!(got[16..], [3, 2, 0x500, 5, 4, 1, 5, 0, 0]);
    assert!(run.calls[0].0.unit.source.text.contains("views::view<f16, u32, true>"));
}

#[test]
fn neighbours_are_stored_at_once_where_rows_allow_it() {
    let text = |addr, shape: &[usize]| {
        let run = Recorder::of(Op::fixed(causal::DEFINITION), &[], &[whole(addr, DType::Bool, shape)]);
        run.calls[0].0.unit.source.text
    };
    assert!(text(0x2000, &[3, 8]).contains("Pack<boolean, 4> y0;"));
    assert!(!text(0x2000, &[8, 3]).contains("Pack<boolean, 4> y0;"));
    assert!(!text(0x2002, &[3, 8]).contains("Pack<boolean, 4> y0;"));
}

#[test]
fn large_results_are_counted_in_64_bits() {
    let n = 1 << 20;
    let run = Recorder::of(Op::fixed(causal::DEFINITION), &[], &[whole(0x2000, DType::Bool, &[n, n])]);
    assert_eq!(run.calls[0].1.blocks, [1 << 30, 1, 1]);
    assert!(run.calls[0].0.unit.source.text.contains("const u64 count"));
    let run = Recorder::of(Op::fixed(causal::DEFINITION), &[], &[whole(0x2000, DType::Bool, &[n, 9])]);
    assert!(run.calls[0].0.unit.source.text.contains("const u32 count"));
}

#[kernel(index)]
fn drawn(x: View<f32, 1>, r: Random, s: Random, [i]: [i32; 1]) -> f32 {
    x.at([i]) + r.uniform() * s.normal()
}

#[test]
fn generators_follow_the_numbers() {
    let (x, y) = (whole(0x100, DType::F32, &[8]), whole(0x200, DType::F32, &[8]));
    let generator = whole(0x300, DType::U32, &[4]);
    let Kind::Index(index) = &drawn::DEFINITION.kind else { panic!("a kernel of indices") };
    let draws = Indexed { index, padded: SmallVec::new(), ahead: SmallVec::from_slice(&[0, 1]) };
    let op = operation(drawn::DEFINITION, [None; 3].into_iter(), draws);
    let run = Recorder::of(op, &[x, generator, generator], &[y]);
    let got: Vec<u64> =
        run.calls[0].2.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
    assert_eq!(got[..5], [0x100, 0x200, 8, 64, 128]);
    assert_eq!(got[6..10], [0x300, 0x300, 0, 1], "after the operation's number");
    assert_eq!(got[10..14], [8, Divisor::new(8).multiplier.into(), Divisor::new(8).shift.into(), 0]);
    let text = &run.calls[0].0.unit.source.text;
    assert!(text.contains("lang::number(x2, views::unpadded<false>(p.out, at))"), "{text}");
}
