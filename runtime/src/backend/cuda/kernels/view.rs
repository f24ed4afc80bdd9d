//! Views as kernels see them.

use bytemuck::{Pod, Zeroable};

use crate::{backend::View, base::rank::MAX_RANK};

/// Mirrors `View` of `common.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct DeviceView {
    /// First element.
    pub(crate) addr: u64,
    /// Number of dimensions.
    pub(crate) rank: u32,
    /// Nothing.
    pub(crate) pad: u32,
    /// Sizes, outermost first.
    pub(crate) shape: [u64; MAX_RANK],
    /// Strides in elements.
    pub(crate) strides: [u64; MAX_RANK],
}

impl From<&View> for DeviceView {
    /// Dimensions of size 1 are dropped and adjacent contiguous dimensions are merged, which saves divisions
    /// in the kernel.
    fn from(view: &View) -> Self {
        let mut out = Self { addr: view.addr, rank: 0, pad: 0, shape: [1; MAX_RANK], strides: [0; MAX_RANK] };
        for (&n, &stride) in view.layout.shape().iter().zip(view.layout.strides()) {
            if n == 1 {
                continue;
            }
            let last = (out.rank as usize).wrapping_sub(1);
            if out.rank > 0 && out.strides[last] == (n * stride) as u64 {
                out.shape[last] *= n as u64;
                out.strides[last] = stride as u64;
            } else {
                (out.shape[out.rank as usize], out.strides[out.rank as usize]) = (n as u64, stride as u64);
                out.rank += 1;
            }
        }
        out
    }
}

/// Mirrors `FaultSink` of `common.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct FaultSink {
    /// Mapped host memory that the host reads.
    pub(crate) fault: u64,
    /// Device word that the first thread claims.
    pub(crate) claim: u64,
}
