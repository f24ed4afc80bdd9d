//! Operations of users: code for each device, and the arguments of a launch.

mod cpu;

use std::{
    any::Any,
    fmt,
    hash::{Hash as _, Hasher},
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use rustc_hash::FxHasher;
use smallvec::SmallVec;

pub use cpu::{CpuCall, CpuFailure};

#[cfg(feature = "cuda")]
use super::cuda::{custom::CudaCode, kernels::Submit};
use super::{
    Launch, Operation, View,
    cpu::{Access, Fault},
};
#[cfg(feature = "cuda")]
use crate::Error;
use crate::{
    Result,
    base::{contained::Contained, plan::Site},
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

/// One argument of a launch, in the order of the kernel's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Argument {
    /// The address of an input's first element.
    Input(u8),
    /// An input's address, sizes and strides.
    View(u8),
    /// The address of an output.
    Output(u8),
    /// The address of a state that is written.
    State(u8),
    /// A value of up to eight bytes.
    Value {
        /// The value, in the byte order of the host.
        bytes: [u8; 8],
        /// Its type; it has so many of the bytes.
        of: ScalarType,
    },
    /// The address of the real size of a padded dimension, a u32; none where the dimension is not padded.
    RealSize(Option<u8>),
    /// The address of the workspace.
    Workspace,
}

/// A host value that a kernel takes by value: `f32`, `f64`, and integers of 32 and 64 bits.
#[diagnostic::on_unimplemented(
    message = "a kernel does not take `{Self}` by value",
    label = "expected `f32`, `f64`, or an integer of 32 or 64 bits",
    note = "convert it, `u32::from(flag)` or `n as u64`; sizes of tensors are passed with `size(x.dim(0))`"
)]
pub trait ScalarArgument: bytemuck::Pod + sealed::Sealed {}

pub(crate) use sealed::ScalarType;

mod sealed {
    macro_rules! scalars {
        ($($of:ident $t:ident),*) => {
            /// The type of a host value.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub enum ScalarType { $($of),* }

            impl ScalarType {
                /// Its name in Rust.
                pub(crate) fn name(self) -> &'static str {
                    match self { $(Self::$of => stringify!($t)),* }
                }

                /// Its size.
                pub(crate) fn bytes(self) -> usize {
                    match self { $(Self::$of => size_of::<$t>()),* }
                }
            }

            $(
                impl Sealed for $t {
                    const TYPE: ScalarType = ScalarType::$of;
                }
                impl super::ScalarArgument for $t {}
            )*
        };
    }

    pub trait Sealed {
        const TYPE: ScalarType;
    }

    scalars! { F32 f32, F64 f64, I32 i32, U32 u32, I64 i64, U64 u64 }
}

impl Argument {
    /// Returns what it is, as a message says it.
    #[cfg(feature = "cuda")]
    pub(crate) fn described(&self) -> String {
        match self {
            Self::Input(_) => "the address of an input".into(),
            Self::View(_) => "a `graphable_view`".into(),
            Self::Output(_) => "the address of an output".into(),
            Self::State(_) => "the address of a state".into(),
            Self::Value { of, .. } => format!("a `{}`", of.name()),
            Self::RealSize(_) => "the address of a real size".into(),
            Self::Workspace => "the address of the workspace".into(),
        }
    }

    /// A value.
    pub(crate) fn value<T: ScalarArgument>(value: T) -> Self {
        let given = bytemuck::bytes_of(&value);
        let mut bytes = [0; 8];
        bytes[..given.len()].copy_from_slice(given);
        Self::Value { bytes, of: T::TYPE }
    }
}

/// The sizes of the operands of a launch, as the device sees them: those of padded dimensions are the bucket's.
#[derive(Clone, Copy, Debug)]
pub struct Shapes<'a> {
    inputs: &'a [View],
    outputs: &'a [View],
    states: &'a [View],
}

fn sizes(views: &[View], index: usize) -> &[usize] {
    views.get(index).map_or(&[], |view| view.layout.shape())
}

impl<'a> Shapes<'a> {
    /// Returns the sizes of an input, by the order of the inputs and views of the call; none if there is no such input.
    pub fn input(&self, index: usize) -> &'a [usize] {
        sizes(self.inputs, index)
    }

    /// Returns the sizes of an output.
    pub fn output(&self, index: usize) -> &'a [usize] {
        sizes(self.outputs, index)
    }

    /// Returns the sizes of a state that is written.
    pub fn state(&self, index: usize) -> &'a [usize] {
        sizes(self.states, index)
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
    #[cfg(feature = "cuda")]
    pub(crate) fn operands(&self) -> usize {
        self.operands
    }

    /// The number of outputs that are new; the others are states.
    #[cfg(feature = "cuda")]
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
    pub(crate) fn failed(&self, why: String) -> Error {
        Error::OperationFailed { op: self.definition.name, why }
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
        let why = format!("a workspace of {bytes} bytes is more than there are addresses");
        Err(Error::Argument { op: self.definition.name, why })
    }

    /// Returns the error for an operation without code for the device.
    #[cfg(feature = "cuda")]
    pub(crate) fn no_code(&self, device: &'static str) -> Error {
        Error::NoCode { op: self.definition.name, device }
    }
}

/// Returns the message of a panic.
fn what_panicked(panic: Box<dyn Any + Send>) -> String {
    let said = panic.downcast::<String>().map(|said| *said);
    let said = said.or_else(|panic| panic.downcast::<&'static str>().map(|said| said.to_string()));
    let said = said.unwrap_or_else(|payload| {
        // A value of the user's, whose drop may panic again.
        mem::forget(payload);
        "without a message".into()
    });
    format!("it panicked: {said}")
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

    fn has_cpu_code(&self) -> bool {
        self.definition.cpu.is_some()
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
            Some(CudaCode::Library(library)) => {
                super::cuda::custom::prepare_library(library, gpu, self, &shapes)?
            }
            None => 0,
        };
        self.check_workspace(bytes)
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
        match &self.definition.cuda {
            Some(CudaCode::Kernel(kernel)) => kernel.launch(gpu, self, launch),
            Some(CudaCode::Library(library)) => {
                super::cuda::custom::launch_library(library, gpu, self, launch)
            }
            None => Err(self.no_code("a GPU")),
        }
    }
}
