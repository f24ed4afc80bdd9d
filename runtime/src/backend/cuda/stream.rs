//! Work on the stream of a GPU.

use std::sync::Arc;

use super::{
    CudaBackend, POISON,
    host_memory::{CudaHostMemory, CudaHostSource},
    mark::CudaMark,
    read::CudaRead,
    staging,
};
use crate::{
    Result,
    backend::{HostCopy, HostMemory, HostUpload, Launch, Mark, Op, PendingBytes, Stream, View},
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

    fn host_write(&mut self, block: HostUpload) -> Result<()> {
        let _bound = self.outside_capture("host_write")?;
        self.shared.drain()?;
        self.upload(&block)
    }

    fn host_write_lent(&mut self, addr: u64, bytes: &[u8]) -> Result<()> {
        /// At least as many as a kernel's parameter may hold.
        const FEW: usize = 32 << 10;
        if bytes.len() <= FEW {
            return self.host_write(HostUpload::to_place(addr, bytes.to_vec()));
        }
        let _bound = self.outside_capture("host_write_lent")?;
        self.shared.drain()?;
        // As behind `upload_by_kernel`: the next kernel waits for all of it.
        self.after_kernel = false;
        staging::write(&self.shared, [(addr, bytes)])
    }

    fn read(&mut self, addr: u64, bytes: u64) -> Result<Box<dyn PendingBytes>> {
        let _bound = self.outside_capture("read")?;
        self.shared.drain()?;
        Ok(Box::new(CudaRead::start(&self.shared, &self.faults, addr, bytes)?))
    }

    fn write_from(&mut self, copy: HostCopy) -> Result<()> {
        const CALL: &str = "write_from";
        let _bound = self.outside_capture(CALL)?;
        self.shared.drain()?;
        let HostCopy { to, from, offset, bytes, zeros } = copy;
        let from = from.into_any().downcast::<CudaHostSource>();
        let Some(from) = from.ok().filter(|from| from.belongs_to(&self.shared)) else {
            return Err(self.failed(CALL, "the host memory is of another device".into()));
        };
        self.after_kernel = false;
        from.copy_to(offset, to, bytes)?;
        if zeros > 0 {
            self.shared.stream.fill(to + bytes as u64, 0, zeros)?;
        }
        Ok(())
    }

    fn read_into(&mut self, addr: u64, bytes: u64, to: &mut dyn HostMemory) -> Result<()> {
        const CALL: &str = "read_into";
        let _bound = self.outside_capture(CALL)?;
        self.shared.drain()?;
        let bytes = bytes as usize;
        if bytes > to.len() {
            let reason = format!("{bytes} bytes do not fit into {} bytes of host memory", to.len());
            return Err(self.failed(CALL, reason));
        }
        let to = to.as_any_mut().downcast_mut::<CudaHostMemory>();
        let Some(to) = to.filter(|to| to.belongs_to(&self.shared)) else {
            return Err(self.failed(CALL, "the host memory is of another device".into()));
        };
        self.after_kernel = false;
        to.write(addr, bytes)
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
        self.shared.wait_for_stream()?;
        self.shared.drain()?;
        self.faults.check()
    }
}
