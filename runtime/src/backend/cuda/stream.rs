//! Work on the stream of a GPU.

use std::sync::Arc;

use super::{CudaBackend, POISON, mark::CudaMark, read::CudaRead};
use crate::{
    Result,
    backend::{HostBlock, Launch, Mark, Op, PendingBytes, Stream, View},
};

impl Stream for CudaBackend {
    fn launch(&mut self, launch: &Launch) -> Result<()> {
        let _bound = self.shared.context.bind()?;
        if self.capture.is_none() {
            self.faults.reset()?;
        }
        // Nothing to write: a grid of zero blocks is an error in CUDA.
        if launch.outputs.iter().all(|view| view.layout.count() == 0) {
            return Ok(());
        }
        launch.op.operation().launch_cuda(self, launch)
    }

    fn supports(&mut self, op: &Op) -> Result<bool> {
        op.operation().cuda_supports(self)
    }

    fn workspace(&mut self, op: &Op, inputs: &[View], outputs: &[View], measure: bool) -> Result<u64> {
        op.operation().cuda_workspace(self, inputs, outputs, measure)
    }

    fn host_write(&mut self, block: HostBlock) -> Result<()> {
        let _bound = self.outside_capture("host_write")?;
        self.shared.drain()?;
        self.put(&block)
    }

    fn read(&mut self, addr: u64, bytes: u64) -> Result<Box<dyn PendingBytes>> {
        let _bound = self.outside_capture("read")?;
        self.shared.drain()?;
        Ok(Box::new(CudaRead::start(&self.shared, &self.faults, addr, bytes)?))
    }

    fn mark(&mut self) -> Result<Arc<dyn Mark>> {
        let _bound = self.outside_capture("an event")?;
        // A kernel is not started early across it, because its time would include that of the other.
        self.after_kernel = false;
        Ok(Arc::new(CudaMark::new(&self.shared)?))
    }

    fn poison(&mut self, addr: u64, bytes: u64) -> Result<()> {
        let _bound = self.shared.context.bind()?;
        self.watched(false, |backend| backend.shared.stream.fill(addr, POISON, bytes))
    }

    fn wants_poison(&self) -> bool {
        self.options.test_mode
    }

    fn synchronize(&mut self) -> Result<()> {
        let _bound = self.outside_capture("synchronize")?;
        self.shared.stream.synchronize()?;
        self.shared.drain()?;
        self.faults.check()
    }
}
