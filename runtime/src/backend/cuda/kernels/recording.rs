//! A stream of an H200 that records what is launched.

use super::{CudaGrid, DeviceProperties, FaultSink, Grid, Kernel, Submit};
use crate::{DType, Result, backend::View, value::layout::Layout};

pub(crate) struct Recorder {
    props: DeviceProperties,
    pub(crate) launches: Vec<(&'static str, Grid, Vec<u8>)>,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        Self { props: DeviceProperties::h200(), launches: Vec::new() }
    }
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.launches.iter().map(|l| l.0).collect()
    }
}

impl Submit for Recorder {
    fn props(&self) -> &DeviceProperties {
        &self.props
    }
    fn submit_bytes(&mut self, kernel: Kernel, grid: Grid, params: &[u8]) -> Result<()> {
        assert!(grid.blocks.iter().all(|&b| b > 0) && grid.blocks[1] < 65_536, "{grid:?}");
        assert!(grid.threads <= 1024 && grid.shared <= 48 << 10, "{grid:?}");
        self.launches.push((kernel.name, grid, params.to_vec()));
        Ok(())
    }
    fn submit_list(&mut self, _: Kernel, _: CudaGrid, _: &[&[u8]]) -> Result<()> {
        unreachable!("of users' kernels")
    }
    fn work_on_stream(
        &mut self,
        _: Box<dyn std::any::Any + Send + Sync>,
        _: &mut dyn FnMut(&std::sync::Arc<cudarc::driver::CudaStream>, bool) -> Result<()>,
    ) -> Result<()> {
        unreachable!("of users' libraries")
    }
    fn faults(&self) -> FaultSink {
        FaultSink { fault: 0, claim: 0 }
    }
    fn fault_op(&mut self, _: &'static str) -> u32 {
        1
    }
    fn product_workspace(&mut self, inputs: &[View], output: &View, _: bool) -> Result<u64> {
        Ok(super::matmul::workspace_bytes(&self.props, inputs, output))
    }
    fn product(&mut self, inputs: &[View], output: &View, workspace: u64) -> Result<()> {
        super::matmul::launch(self, inputs, output, workspace)
    }
}

pub(crate) fn view(dtype: DType, shape: &[usize]) -> View {
    View { addr: 1 << 20, dtype, layout: Layout::contiguous(shape).unwrap() }
}
