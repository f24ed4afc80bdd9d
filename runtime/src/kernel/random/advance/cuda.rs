//! Generators on a GPU: `advance.cu`.

use bytemuck::{Pod, Zeroable};

use crate::{
    Result,
    backend::{
        View,
        cuda::kernels::{Grid, Kernel, SourceFile, Submit, submit},
    },
    kernel::random::NUMBERS,
};

static SOURCE: SourceFile =
    SourceFile::ours("random/advance.cu", include_str!("../advance.cu")).with_header("random.cuh", NUMBERS);

/// Mirrors `AdvanceParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct AdvanceParams {
    state: u64,
    by: u64,
}
const _: () = assert!(size_of::<AdvanceParams>() == 16);

/// Mirrors `ForkParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct ForkParams {
    parent: u64,
    child: u64,
}
const _: () = assert!(size_of::<ForkParams>() == 16);

pub(super) fn advance(gpu: &mut dyn Submit, state: &View, by: u32) -> Result<()> {
    let params = AdvanceParams { state: state.addr, by: by.into() };
    submit(gpu, Kernel::plain(&SOURCE, "advance"), Grid::line(1, 1), &params)
}

pub(super) fn fork(gpu: &mut dyn Submit, parent: &View, child: &View) -> Result<()> {
    let params = ForkParams { parent: parent.addr, child: child.addr };
    submit(gpu, Kernel::plain(&SOURCE, "fork"), Grid::line(1, 1), &params)
}
