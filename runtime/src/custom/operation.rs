//! A user's operation as the runtime launches it: its identity, its code for each device, and its arguments.

use std::{
    fmt,
    hash::{Hash as _, Hasher},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use rustc_hash::FxHasher;
use smallvec::SmallVec;

#[cfg(feature = "cuda")]
use super::cuda::{self, CudaCode};
use super::{
    argument::Argument,
    cpu::{CpuCall, CpuFailure},
};
#[cfg(feature = "cuda")]
use crate::{Error, backend::cuda::kernels::Submit};
use crate::{
    Result,
    backend::{
        Constant, Launch, Operation, View,
        cpu::{Access, Fault},
        shapes::Shapes,
    },
    base::{
        contained::{Contained, what_panicked},
        plan::Site,
    },
    value::owned::next_id,
};

/// Code of an operation for the CPU.
pub(crate) type CpuCode = dyn Fn(&CpuCall<'_>) -> Result<(), CpuFailure> + Send + Sync;

/// By what an operation is known in keys and traces.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Identity {
    /// A number that no other operation of the process ever has.
    Own(u64),
    /// The region that makes it anew each time, and promises that it does the same work; and its number among those that the
    /// region makes.
    Region(&'static Site, u32),
}

/// An operation of a user: a name, and code for each device. Known by identity.
pub(crate) struct Definition {
    /// By what it is known.
    pub(crate) identity: Identity,
    /// Its name.
    pub(crate) name: &'static str,
    /// If a capture may hold it.
    pub(crate) may_be_captured: bool,
    /// If the user declared that its results are the same in every run.
    pub(crate) is_deterministic: bool,
    /// Its code for the CPU.
    pub(crate) cpu: Option<Box<CpuCode>>,
    /// Its code for a GPU.
    #[cfg(feature = "cuda")]
    pub(crate) cuda: Option<CudaCode>,
}

impl Definition {
    /// Without code.
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            identity: Identity::Own(next_id()),
            name,
            may_be_captured: true,
            is_deterministic: false,
            cpu: None,
            #[cfg(feature = "cuda")]
            cuda: None,
        }
    }

    /// Returns what tells it from other operations of its name.
    pub(crate) fn identity(&self) -> [u64; 2] {
        match self.identity {
            Identity::Own(id) => [0, id],
            Identity::Region(site, number) => [1 + u64::from(number), std::ptr::from_ref(site).addr() as u64],
        }
    }
}

impl Drop for Definition {
    fn drop(&mut self) {
        drop(Contained::new(self.cpu.take()));
        #[cfg(feature = "cuda")]
        drop(Contained::new(self.cuda.take()));
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Definition")
            .field("name", &self.name)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// A launch of a definition with its arguments. It is made once for launches that pass the same ones.
#[derive(Debug)]
pub(crate) struct CustomOperation {
    /// The operation to launch.
    definition: Arc<Definition>,
    /// The parameters of its kernel.
    arguments: SmallVec<[Argument; 4]>,
    /// The number of inputs that are operands; the others are real sizes.
    operands: usize,
    /// The number of outputs that are new; the others are states.
    made: usize,
    /// If a state is among the outputs.
    writes_in_place: bool,
    /// Of all that distinguishes it from other launches: a trace asks for it at each launch.
    fingerprint: u64,
}

impl CustomOperation {
    /// A launch of `definition` with these arguments.
    pub(crate) fn new(definition: &Arc<Definition>, arguments: &[Argument]) -> Self {
        let count = |which: fn(&Argument) -> bool| arguments.iter().filter(|a| which(a)).count();
        let mut fingerprint = FxHasher::default();
        (definition.name, definition.identity(), arguments).hash(&mut fingerprint);
        Self {
            definition: Arc::clone(definition),
            arguments: SmallVec::from_slice(arguments),
            operands: count(|a| matches!(a, Argument::Input(_) | Argument::View(_))),
            made: count(|a| matches!(a, Argument::Output(_))),
            writes_in_place: count(|a| matches!(a, Argument::State(_))) > 0,
            fingerprint: fingerprint.finish(),
        }
    }

    /// The parameters of its kernel.
    #[inline]
    pub(crate) fn arguments(&self) -> &[Argument] {
        &self.arguments
    }

    /// The number of inputs that are operands; the others are real sizes.
    pub(crate) fn operands(&self) -> usize {
        self.operands
    }

    /// The number of outputs that are new; the others are states.
    pub(crate) fn made(&self) -> usize {
        self.made
    }

    /// The sizes of its operands.
    pub(crate) fn shapes<'a>(&self, inputs: &'a [View], outputs: &'a [View]) -> Shapes<'a> {
        let (outputs, states) = outputs.split_at(self.made);
        Shapes { inputs: &inputs[..self.operands], outputs, states }
    }

    /// Runs code of the user's on the host, which may panic.
    ///
    /// # Errors
    /// [`Error::OperationFailed`] if it does.
    #[cfg(feature = "cuda")]
    pub(crate) fn guarded<R>(&self, run: impl FnOnce() -> R) -> Result<R> {
        catch_unwind(AssertUnwindSafe(run)).map_err(|panic| self.failed(what_panicked(panic)))
    }

    /// It could not be run.
    #[cfg(feature = "cuda")]
    pub(crate) fn failed(&self, reason: String) -> Error {
        Error::OperationFailed { op: self.definition.name, reason }
    }

    /// Refuses a workspace beyond all addresses: a size that overflowed, most likely.
    ///
    /// # Errors
    /// [`Error::Argument`].
    #[cfg(feature = "cuda")]
    fn check_workspace(&self, bytes: u64) -> Result<u64> {
        const ADDRESSES: u64 = 1 << 48;
        if bytes < ADDRESSES {
            return Ok(bytes);
        }
        let reason = format!("a workspace of {bytes} bytes is more than there are addresses");
        Err(Error::Argument { op: self.definition.name, reason })
    }

    /// Returns the error for an operation without code for the device.
    #[cfg(feature = "cuda")]
    pub(crate) fn no_code(&self, device: &'static str) -> Error {
        Error::NoCode { op: self.definition.name, device }
    }
}

impl Operation for CustomOperation {
    fn name(&self) -> &'static str {
        self.definition.name
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_u64(self.fingerprint);
    }

    fn writes_in_place(&self) -> bool {
        self.writes_in_place
    }

    fn may_be_captured(&self) -> bool {
        self.definition.may_be_captured
    }

    fn is_deterministic(&self) -> bool {
        self.definition.is_deterministic
    }

    fn has_cpu_code(&self) -> bool {
        self.definition.cpu.is_some()
    }

    fn constants(&self) -> Vec<Constant> {
        self.arguments.iter().filter_map(Argument::constant).collect()
    }

    #[cfg(feature = "cuda")]
    fn cuda_supports(&self, _: &mut dyn Submit) -> Result<bool> {
        Ok(self.definition.cuda.is_some())
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        let Some(code) = &self.definition.cpu else {
            return Err(Fault::Failed { op: self.name(), reason: "it has no code for the CPU".into() });
        };
        let reason = match catch_unwind(AssertUnwindSafe(|| code(&CpuCall::new(access, launch, self)))) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(failure)) => failure.0,
            // Missing memory is not a mistake of the user's code: it ends the stream.
            Err(panic) if Access::is_invalid_access(&*panic) => std::panic::resume_unwind(panic),
            Err(panic) => what_panicked(panic),
        };
        Err(Fault::Failed { op: self.name(), reason })
    }

    #[cfg(feature = "cuda")]
    fn cuda_workspace(
        &self,
        gpu: &mut dyn Submit,
        inputs: &[View],
        outputs: &[View],
        _: bool,
    ) -> Result<u64> {
        let shapes = self.shapes(inputs, outputs);
        let bytes = match &self.definition.cuda {
            Some(CudaCode::Kernel(kernel)) => self.guarded(|| kernel.workspace_bytes(&shapes))?,
            Some(CudaCode::Library(library)) => cuda::library::prepare(library, gpu, self, &shapes)?,
            None => 0,
        };
        self.check_workspace(bytes)
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
        match &self.definition.cuda {
            Some(CudaCode::Kernel(kernel)) => cuda::kernel::launch(kernel, gpu, self, launch),
            Some(CudaCode::Library(library)) => cuda::library::launch(library, gpu, self, launch),
            None => Err(self.no_code("a GPU")),
        }
    }
}
