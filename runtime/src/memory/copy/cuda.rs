//! Copies and padding on a GPU: `copy.cu` and `transpose.cu`.

use bytemuck::{Pod, Zeroable};
use smallvec::{SmallVec, smallvec};

use crate::{
    Result,
    backend::{
        View,
        cuda::kernels::{Dim, Dims, Kernel, Move, SourceFile, Submit, Walk, for_word, line, submit},
    },
    base::rank::MAX_RANK,
};

#[cfg(test)]
mod tests;
mod transpose;

static SOURCE: SourceFile = SourceFile::ours("copy/copy.cu", include_str!("copy.cu")).split();

/// Mirrors `FlatParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct FlatParams {
    from: u64,
    to: u64,
    bytes: u64,
}
const _: () = assert!(size_of::<FlatParams>() == 24);

/// Mirrors `PadParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct PadParams {
    from: u64,
    to: u64,
    count: u64,
    dims: Dims,
    limits: [u64; MAX_RANK],
    strides: [u64; MAX_RANK],
}
const _: () = assert!(size_of::<PadParams>() == 176);

pub(super) fn copy(gpu: &mut dyn Submit, x: &View, y: &View) -> Result<()> {
    let size = y.dtype.size() as u64;
    let walk = Walk::of([x, y]);
    if walk.is_flat() && (x.addr | y.addr).is_multiple_of(16) {
        let params = FlatParams { from: x.addr, to: y.addr, bytes: walk.count() * size };
        let grid = line(gpu, params.bytes.div_ceil(16));
        return submit(gpu, Kernel::plain(&SOURCE, "copy_flat"), grid, &params);
    }
    if let Some(of) = transpose::Transpose::of(&walk, size, x.addr, y.addr) {
        return of.submit(gpu);
    }
    let word = walk.word(size, &[x.addr, y.addr]);
    let params = Move::new(&walk.in_words(size, word), x.addr, y.addr);
    let name = for_word(["copy_1", "copy_2", "copy_4", "copy_8", "copy_16"], word);
    let grid = line(gpu, params.count);
    submit(gpu, Kernel::plain(&SOURCE, name), grid, &params)
}

pub(super) fn pad(gpu: &mut dyn Submit, x: &View, y: &View) -> Result<()> {
    let size = y.dtype.size() as u64;
    let (walk, mut limits) = match x.layout.count() {
        // Every element is beyond the input.
        0 => (Walk(smallvec![Dim { size: y.layout.count() as u64, strides: [1] }]), smallvec![0]),
        _ => padded(x, y),
    };
    let word = match (walk.0.first(), limits.first()) {
        (Some(_), Some(&limit)) => walk.word(size, &[x.addr, y.addr, limit * size]),
        _ => size,
    };
    let walk = walk.in_words(size, word);
    if let Some(limit) = limits.first_mut() {
        *limit = *limit * size / word;
    }
    let mut params = PadParams {
        from: x.addr,
        to: y.addr,
        count: walk.count(),
        dims: walk.dims(),
        limits: [1; MAX_RANK],
        strides: walk.strides()[0],
    };
    params.limits[..limits.len()].copy_from_slice(&limits);
    let name = for_word(["pad_1", "pad_2", "pad_4", "pad_8", "pad_16"], word);
    let grid = line(gpu, params.count);
    submit(gpu, Kernel::plain(&SOURCE, name), grid, &params)
}

/// Returns the output's dimensions with the input's strides, and the extent of the input in each. Two are
/// merged if the inner one has no padding.
fn padded(x: &View, y: &View) -> (Walk<1>, SmallVec<[u64; MAX_RANK]>) {
    let mut walk = Walk(SmallVec::<[Dim<1>; MAX_RANK]>::new());
    let mut limits = SmallVec::<[u64; MAX_RANK]>::new();
    for axis in (0..y.layout.rank()).rev() {
        let (limit, size) = (x.layout.shape()[axis] as u64, y.layout.shape()[axis] as u64);
        let stride = x.layout.strides()[axis] as u64;
        if size == 1 {
            continue;
        }
        match (walk.0.last_mut(), limits.last_mut()) {
            (Some(last), Some(reach)) if last.size == *reach && stride == last.size * last.strides[0] => {
                last.size *= size;
                *reach *= limit;
            }
            _ => {
                walk.0.push(Dim { size, strides: [stride] });
                limits.push(limit);
            }
        }
    }
    (walk, limits)
}
