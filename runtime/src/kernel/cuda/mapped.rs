//! The launch of a loop over packs of elements.

use smallvec::SmallVec;

use super::super::instances::Instance;
use crate::{
    Result,
    backend::{
        View,
        cuda::kernels::{Dims, Grid, Kernel, Submit, THREADS, Walk},
    },
    base::rank::MAX_RANK,
};

/// The driver's limit.
const MOST_BLOCKS: u64 = i32::MAX as u64;

/// A launch: its tensors, and the words of its parameter that are not about them.
pub(in crate::kernel) struct Mapped<'l> {
    /// At most 16, spread to the shape of the outputs.
    pub(in crate::kernel) tensors: &'l [View],
    /// Contiguous.
    pub(in crate::kernel) outputs: &'l [View],
    /// About random numbers.
    pub(in crate::kernel) numbers: SmallVec<[u64; 16]>,
    /// The bits of parameters that are numbers.
    pub(in crate::kernel) constants: SmallVec<[u64; 8]>,
}

impl Mapped<'_> {
    /// Launches a kernel whose text is a [`Map`](super::map::Map).
    pub(in crate::kernel) fn launch(&self, instance: &'static Instance, gpu: &mut dyn Submit) -> Result<()> {
        match self.tensors.len() {
            0 | 1 => self.of::<1>(instance, gpu),
            2 => self.of::<2>(instance, gpu),
            3 | 4 => self.of::<4>(instance, gpu),
            5..=8 => self.of::<8>(instance, gpu),
            _ => self.of::<16>(instance, gpu),
        }
    }

    /// With at most `N` tensors.
    fn of<const N: usize>(&self, instance: &'static Instance, gpu: &mut dyn Submit) -> Result<()> {
        let Some(first) = self.outputs.first() else { return Ok(()) };
        // The tensors that are read, then those that are written.
        let views = || self.tensors.iter().chain(self.outputs);
        let none = [0; MAX_RANK];
        let rank = first.layout.shape().len();
        let strides: [&[usize]; N] = std::array::from_fn(|i| match self.tensors.get(i) {
            Some(view) => view.layout.strides(),
            None => &none[..rank],
        });
        let walk = Walk::new(first.layout.shape(), strides);
        let lanes = 16 / views().map(|view| view.dtype.size()).max().unwrap_or(1) as u64;
        let operands: [(u64, u64); N] = std::array::from_fn(|i| match self.tensors.get(i) {
            Some(view) => (view.addr, view.dtype.size() as u64),
            None => (0, 1),
        });
        let aligned = |view: &View| view.addr.is_multiple_of(lanes * view.dtype.size() as u64);
        let packed = walk.in_packs(lanes, operands).filter(|_| self.outputs.iter().all(aligned));
        let (walk, packs) = match packed {
            Some(walk) => (walk, true),
            None => (walk, false),
        };

        // Mirrors `MapParams`, all of whose fields are words.
        let mut words: SmallVec<[u64; 64]> = views().map(|view| view.addr).collect();
        words.extend([first.layout.count() as u64, walk.count(), packs.into()]);
        words.extend_from_slice(&self.numbers);
        words.extend_from_slice(&self.constants);
        let dims: [u64; 7] = bytemuck::cast::<Dims, _>(walk.dims());
        words.extend(dims);
        words.extend(walk.strides().into_iter().take(self.tensors.len()).flatten());
        // A pass for each thread: blocks that loop leave the last ones alone at the end, which costs up to a tenth.
        let blocks = walk.count().div_ceil(u64::from(THREADS)).clamp(1, MOST_BLOCKS) as u32;
        let grid = Grid::line(blocks, THREADS);
        gpu.submit_bytes(Kernel::plain(&instance.source, &instance.entry), grid, bytemuck::cast_slice(&words))
    }
}
