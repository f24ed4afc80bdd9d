use super::*;
use crate::{
    DType,
    backend::cuda::kernels::testing::{Recorder, view, whole},
    ops::moe::grouped::operation::GROUPED_MM,
};

fn run(rows: usize, groups: usize) -> Recorder {
    let x = view(0x1000, DType::Bf16, &[rows, 40], &[1, rows.max(1)]);
    let w = view(0x2000, DType::Bf16, &[groups, 40, 100], &[4000, 1, 40]);
    let ends = view(0x3000, DType::U32, &[groups], &[2]);
    Recorder::of(GROUPED_MM, &[x, w, ends], &[whole(0x4000, DType::Bf16, &[rows, 100])])
}

/// Tiles along the rows, as `find` of `grouped.cu` counts them.
fn tiles(ends: &[u64], rows: u64, down: u64) -> u64 {
    let (mut first, mut tiles) = (0, 0);
    for end in ends.iter().copied().chain([rows]) {
        let end = end.min(rows).max(first);
        tiles += (end - first).div_ceil(down);
        first = end;
    }
    tiles
}

#[test]
fn addresses_and_strides_are_those_of_the_operands() {
    let run = run(300, 4);
    assert_eq!(run.names(), ["grouped_64"]);
    let p: Params = run.params(0);
    assert_eq!((p.x, p.w, p.ends, p.y), (0x1000, 0x2000, 0x3000, 0x4000));
    assert_eq!((p.rows, p.k, p.n, p.groups), (300, 40, 100, 4));
    assert_eq!((p.x_row, p.x_col, p.ends_stride), (1, 300, 2));
    assert_eq!((p.w_group, p.w_row, p.w_col), (4000, 1, 40));
    assert_eq!(run.calls[0].1.blocks[0] as u64, p.slots * 2);
}

#[test]
fn there_is_a_slot_for_every_tile_of_any_groups() {
    for (rows, groups) in [(1, 1), (1, 8), (5, 3), (16, 2), (64, 1), (65, 2), (300, 4), (1000, 7), (2, 300)] {
        let p: Params = run(rows, groups).params(0);
        let down = if run(rows, groups).names() == ["grouped_16"] { 16 } else { 64 };
        // One row in each group leaves the most tiles unfilled, as long as there are rows.
        let mut worst = 0;
        for each in 0..=(down + 1) {
            let ends: Vec<u64> = (1..=groups as u64).map(|group| group * each).collect();
            worst = worst.max(tiles(&ends, rows as u64, down));
        }
        assert!((1..=p.slots).contains(&worst), "{rows} rows, {groups} groups: {worst} of {}", p.slots);
    }
}

#[test]
fn nothing_is_launched_for_no_row() {
    assert!(run(0, 4).calls.is_empty());
}
