//! A stream that records what is launched, and the kernels' address arithmetic on the host.

use std::{fmt::Display, io::Write as _};

use bytemuck::Pod;
use proptest::prelude::*;

use super::{Convolution, ConvolutionAddresses, FaultSink, Grid, Kernel, Move, Product, Submit};
use crate::{
    DType, Result,
    backend::{
        Launch, Op, View,
        cuda::{DeviceProperties, custom::CudaGrid},
    },
    base::rank::MAX_RANK,
    value::layout::Layout,
};

/// Says that a test is skipped, and why; `.ci/run` repeats it at its end.
pub(crate) fn say_skipped(test: &str, why: &dyn Display) {
    // A closed standard error is not a reason to fail.
    let _ = writeln!(std::io::stderr(), "GPU tests: skipped {test}: {why}");
}

/// Bytes of shared memory that a block may have on every device.
pub(crate) const SHARED_EVERYWHERE: u32 = 99 << 10;

/// The request of a launch.
pub(crate) struct Recorder {
    props: DeviceProperties,
    /// Bytes of shared memory that a block may have.
    shared: u32,
    pub(crate) calls: Vec<(Kernel, Grid, Vec<u8>)>,
}

impl Submit for Recorder {
    fn props(&self) -> &DeviceProperties {
        &self.props
    }
    fn submit_bytes(&mut self, kernel: Kernel, grid: Grid, params: &[u8]) -> Result<()> {
        assert!(grid.blocks.iter().all(|&n| n > 0) && grid.blocks[1] < 65_536, "{grid:?}");
        assert!(grid.threads <= 1024 && grid.shared <= self.shared && params.len() <= 4096, "{grid:?}");
        self.calls.push((kernel, grid, params.to_vec()));
        Ok(())
    }
    fn parameter_sizes(&mut self, _: Kernel, _: CudaGrid) -> Result<Option<&[usize]>> {
        unreachable!("of users' kernels")
    }
    fn submit_list(&mut self, _: Kernel, _: CudaGrid, _: &[&[u8]]) -> Result<()> {
        unreachable!("of users' kernels")
    }
    fn work_in_context(
        &mut self,
        _: &mut dyn FnMut(&std::sync::Arc<cudarc::driver::CudaContext>) -> Result<()>,
    ) -> Result<()> {
        unreachable!("of users' libraries")
    }
    fn work_on_stream(
        &mut self,
        _: Box<dyn std::any::Any + Send + Sync>,
        _: &mut dyn FnMut(&std::sync::Arc<cudarc::driver::CudaStream>, bool) -> Result<()>,
    ) -> Result<()> {
        unreachable!("of users' libraries")
    }
    fn keep_with_recording(&mut self, _: std::sync::Arc<dyn std::any::Any + Send + Sync>) {}
    fn faults(&self) -> FaultSink {
        FaultSink { fault: 64, claim: 128 }
    }
    fn fault_op(&mut self, name: &'static str) -> u32 {
        name.len() as u32
    }
    fn fault_loop(&mut self, at: &'static std::panic::Location<'static>) -> u32 {
        at.line()
    }
    fn product_workspace(&mut self, product: Product<'_>, _: bool) -> Result<u64> {
        Ok(product.kernels.workspace_bytes(&self.props, product.inputs, product.output))
    }
    fn product(&mut self, product: Product<'_>, workspace: u64) -> Result<()> {
        product.kernels.launch(self, product.inputs, product.output, workspace)
    }
    fn convolution_workspace(&mut self, _: &Convolution) -> Result<Option<u64>> {
        Ok(None)
    }
    fn convolution(&mut self, _: &Convolution, _: ConvolutionAddresses, _: u64) -> Result<()> {
        unreachable!("there is no library")
    }
}

impl Recorder {
    /// A large GPU to which nothing was submitted.
    pub(crate) fn h200() -> Self {
        Self::with(DeviceProperties::h200())
    }

    /// On another device.
    pub(crate) fn with(props: DeviceProperties) -> Self {
        Self { props, shared: SHARED_EVERYWHERE, calls: Vec::new() }
    }

    /// Which takes kernels whose blocks have more shared memory than every device has: up to so many bytes.
    pub(crate) fn allowing(self, shared: u32) -> Self {
        Self { shared, ..self }
    }

    /// Names of the kernels that were submitted.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.calls.iter().map(|(kernel, ..)| kernel.name).collect()
    }

    /// Returns the launches of `op`.
    pub(crate) fn of(op: impl Into<Op>, inputs: &[View], outputs: &[View]) -> Self {
        let props = DeviceProperties { name: "none".into(), multiprocessors: 3, ..DeviceProperties::h200() };
        let mut gpu = Self::with(props);
        let launch = Launch { op: op.into(), inputs: inputs.into(), outputs: outputs.into(), workspace: 0 };
        // As the backend, which launches nothing that writes nothing.
        if outputs.iter().any(|y| y.layout.count() > 0) {
            launch.op.operation().launch_cuda(&mut gpu, &launch).unwrap();
        }
        gpu
    }

    /// The parameters of call `i`.
    pub(crate) fn params<P: Pod>(&self, i: usize) -> P {
        bytemuck::pod_read_unaligned(&self.calls[i].2)
    }
}

/// A view at an address.
pub(crate) fn view(addr: u64, dtype: DType, shape: &[usize], strides: &[usize]) -> View {
    View { addr, dtype, layout: Layout::strided(shape, strides).unwrap() }
}

/// A contiguous view at an address.
pub(crate) fn whole(addr: u64, dtype: DType, shape: &[usize]) -> View {
    View { addr, dtype, layout: Layout::contiguous(shape).unwrap() }
}

/// Element offset of the `i`-th element of a view, in row-major order.
pub(crate) fn offset(view: &View, mut i: u64) -> u64 {
    let mut at = 0;
    for (&n, &stride) in view.layout.shape().iter().zip(view.layout.strides()).rev() {
        at += i % n as u64 * stride as u64;
        i /= n as u64;
    }
    at
}

/// As `locate` of `common.cuh`.
pub(crate) fn locate(dims: super::walk::Dims, strides: &[u64; MAX_RANK], mut i: u64) -> u64 {
    let mut at = 0;
    for (axis, stride) in strides.iter().enumerate() {
        let mut part = i;
        if axis + 1 < dims.rank as usize {
            i = part / dims.shape[axis];
            part -= i * dims.shape[axis];
        }
        at += part * stride;
        if axis + 1 >= dims.rank as usize {
            break;
        }
    }
    at
}

/// Shapes of up to five dimensions without an empty one, often with sizes that vectors like.
pub(crate) fn shapes() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(prop_oneof![Just(1), Just(2), Just(3), Just(8), Just(16)], 0..=4)
}

/// Returns strides for `shape`: contiguous, permuted, broadcast or with gaps, according to `kinds`.
pub(crate) fn strides(shape: &[usize], kinds: &[u8]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..shape.len()).collect();
    if kinds[0].is_multiple_of(4) {
        order.reverse();
    }
    let (mut strides, mut next) = (vec![0; shape.len()], 1);
    for &axis in order.iter().rev() {
        let kind = kinds[axis + 1] % 8;
        if kind == 0 {
            continue;
        }
        strides[axis] = next;
        next *= shape[axis];
        if kind == 1 {
            next += 8;
        }
    }
    strides
}

/// Kinds for [`strides`].
pub(crate) fn kinds() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(0u8..16, 7)
}

/// Bytes of the words that a kernel counts in, from its name.
pub(crate) fn word_of(name: &str) -> u64 {
    name.rsplit('_').next().unwrap().parse().unwrap()
}

/// Bytes that a move copies, as pairs of addresses, sorted by destination.
pub(crate) fn moved(m: &Move, word: u64) -> Vec<(u64, u64)> {
    let mut pairs = Vec::new();
    for n in 0..m.count {
        let [from, to] =
            [(m.from, 0), (m.to, 1)].map(|(addr, k)| addr + word * locate(m.dims, &m.strides[k], n));
        assert_eq!((from | to) % word, 0, "a word that is not aligned");
        pairs.extend((0..word).map(|b| (to + b, from + b)));
    }
    pairs.sort_unstable();
    pairs
}

/// The same by definition.
pub(crate) fn pairs(x: &View, y: &View) -> Vec<(u64, u64)> {
    let size = x.dtype.size() as u64;
    let mut pairs = Vec::new();
    for i in 0..x.layout.count() as u64 {
        let (from, to) = (x.addr + offset(x, i) * size, y.addr + offset(y, i) * size);
        pairs.extend((0..size).map(|b| (to + b, from + b)));
    }
    pairs.sort_unstable();
    pairs
}
