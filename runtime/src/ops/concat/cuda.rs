//! Joined tensors on a GPU: `concat.cu`.

use bytemuck::{Pod, Zeroable};
use smallvec::SmallVec;

use crate::{
    Result,
    backend::{
        View,
        cuda::kernels::{Kernel, Move, SourceFile, Submit, Walk, for_word, line, submit},
    },
};

#[cfg(test)]
mod tests;

static SOURCE: SourceFile = SourceFile::ours("concat/concat.cu", include_str!("concat.cu")).split();

/// Inputs that one kernel joins.
const PARTS: usize = 8;

/// Mirrors `JoinParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct JoinParams {
    parts: [Move; PARTS],
}
const _: () = assert!(size_of::<JoinParams>() == 1408);

/// Each input is copied to its part of the output.
pub(super) fn concat(gpu: &mut dyn Submit, inputs: &[View], y: &View, axis: usize) -> Result<()> {
    const NAMES: [&str; 5] = ["join_1", "join_2", "join_4", "join_8", "join_16"];
    let size = y.dtype.size() as u64;
    let stride = y.layout.strides()[axis] as u64 * size;
    let mut to = y.addr;
    let mut moves: SmallVec<[(Walk<2>, u64, u64); PARTS]> = SmallVec::new();
    for x in inputs {
        let here = to;
        to += x.layout.shape()[axis] as u64 * stride;
        if x.layout.count() > 0 {
            let walk = Walk::new(x.layout.shape(), [x.layout.strides(), y.layout.strides()]);
            moves.push((walk, x.addr, here));
        }
    }
    for moves in moves.chunks(PARTS) {
        let words = moves.iter().map(|(walk, from, to)| walk.word(size, &[*from, *to]));
        let word = words.min().unwrap_or(size);
        let mut params = JoinParams::zeroed();
        for (part_of, (walk, from, to)) in params.parts.iter_mut().zip(moves) {
            *part_of = Move::new(&walk.clone().in_words(size, word), *from, *to);
        }
        let most = params.parts.iter().map(|p| p.count).max().unwrap_or(0);
        let mut grid = line(gpu, most);
        grid.blocks[1] = moves.len() as u32;
        submit(gpu, Kernel::plain(&SOURCE, for_word(NAMES, word)), grid, &params)?;
    }
    Ok(())
}
