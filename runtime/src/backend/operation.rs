//! Operations: the units of work that a segment launches, as self-describing values.
//!
//! An [`Operation`] provides its name, its parameters, whether it writes in place, whether a capture may
//! contain it, its workspace, and its code on each device. No code matches over a list of operations: traces,
//! audits, signatures and both backends call the trait. The function that users call determines the shapes
//! and types of the outputs before the launch, and allocates them.

use std::{
    any::Any,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use smallvec::SmallVec;

#[cfg(feature = "cuda")]
use super::cuda::kernels::Submit;
use super::{
    Constant, JoinsElements,
    cpu::{Access, Fault},
};
#[cfg(feature = "cuda")]
use crate::Result;
use crate::{observe::inspect::NodeKind, value::view::View};

/// An operation that can be launched; its parameters are fields of the value.
///
/// The backend may trust a launch: the function that made it has checked shapes, dtypes and aliasing, and the
/// recorder has checked the addresses. An operation must write all of its outputs (or, in place, the part
/// that it documents) and nothing else, and depend only on its parameters and its inputs: recordings of it
/// run again without calling it.
pub(crate) trait Operation: Any + fmt::Debug + Send + Sync {
    /// A short name for messages, events and traces.
    fn name(&self) -> &'static str;

    /// Writes everything that distinguishes this operation from others of its type: every parameter, floats
    /// by their bits, and shared context by its identity. Two operations of one type that write the same are
    /// the same operation.
    fn parameters(&self, to: &mut dyn Hasher);

    /// If it writes memory that is not only its own output's: state, of which a copy may have to be kept.
    fn writes_in_place(&self) -> bool {
        false
    }

    /// Returns whether [`fuse`](Self::fuse) may make one launch of this launch of the operation and of what lies around it.
    fn may_fuse(&self, launch: &Launch) -> bool {
        let _ = launch;
        false
    }

    /// Returns one launch that does what `parts` do one after the other, with the same bits; `None` if no kernel does. One of the
    /// parts is a launch of this operation. `kept[i]` has a bit for each output of part `i` that is read by others, too: the
    /// launch writes only those.
    fn fuse(&self, parts: &[&Launch], kept: &[u8]) -> Option<Launch> {
        let _ = (parts, kept);
        None
    }

    /// Returns the same operation with a kernel that loads those inputs before earlier kernels have ended which `is_constant`
    /// says that nothing writes; `None` if it has none, or they are not constant.
    fn early(&self, launch: &Launch, is_constant: &dyn Fn(&View) -> bool) -> Option<Op> {
        let _ = (launch, is_constant);
        None
    }

    /// Returns whether an output may be the memory of an input: wherever it writes, it has read before, and no part of the
    /// device reads what another one writes.
    fn may_write_over(&self, input: &View, output: &View) -> bool {
        let _ = (input, output);
        false
    }

    /// Returns how it is listed in a [`Topology`](crate::observe::inspect::Topology) of the CPU.
    fn node_kind(&self) -> NodeKind {
        NodeKind::Kernel
    }

    /// If a capture may hold it; where not, it is refused in segments.
    fn may_be_captured(&self) -> bool {
        true
    }

    /// If equal inputs give equal bits in every run: its code adds in a fixed order, and its algorithm is not chosen by
    /// measurement where the [switches](crate::Numerics) among its parameters forbid that.
    fn is_deterministic(&self) -> bool {
        true
    }

    /// Returns what joins it with others if it computes each element of its outputs from the elements of its inputs at the
    /// same place: a pass may then make one operation of several.
    fn joins_elements(&self) -> Option<&'static dyn JoinsElements> {
        None
    }

    /// Returns the numbers that are fixed parameters of it, in the order of the parameters.
    fn constants(&self) -> Vec<Constant> {
        Vec::new()
    }

    /// If [`run_cpu`](Self::run_cpu) can run it.
    fn has_cpu_code(&self) -> bool {
        true
    }

    /// Runs it to its end on host memory.
    ///
    /// # Errors
    /// Returns the first index that was out of range. The output is complete nevertheless: rows without a
    /// valid index are zeros, or unchanged if the operation writes in place.
    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault>;

    /// If a GPU can run it; front ends launch other operations where it cannot. The answer is the same in every call of a
    /// process, because recordings and their bodies must agree.
    ///
    /// # Errors
    /// Returns errors of the device.
    #[cfg(feature = "cuda")]
    fn cuda_supports(&self, gpu: &mut dyn Submit) -> Result<bool> {
        let _ = gpu;
        Ok(true)
    }

    /// Returns the bytes of workspace that a launch on a GPU needs, aligned to 256 bytes, with undefined
    /// contents. With `measure` it may try different algorithms, writing the outputs.
    ///
    /// # Errors
    /// Returns errors of the device.
    #[cfg(feature = "cuda")]
    fn cuda_workspace(
        &self,
        gpu: &mut dyn Submit,
        inputs: &[View],
        outputs: &[View],
        measure: bool,
    ) -> Result<u64> {
        let _ = (gpu, inputs, outputs, measure);
        Ok(0)
    }

    /// Adds its kernels to the stream of a GPU, or to the current capture. At least one output has elements.
    ///
    /// # Errors
    /// Returns errors of the device.
    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> Result<()>;
}

/// An operation with its parameters, cheap to pass on.
#[derive(Clone)]
pub struct Op(Handle);

#[derive(Clone)]
enum Handle {
    /// Without parameters, or with some that are known when the program is compiled.
    Fixed(&'static dyn Operation),
    Shared(Arc<dyn Operation>),
}

impl Op {
    /// A handle that allocates nothing.
    pub(crate) const fn fixed(operation: &'static dyn Operation) -> Self {
        Self(Handle::Fixed(operation))
    }

    /// A handle of an operation that others hold, too.
    pub(crate) fn shared(operation: Arc<dyn Operation>) -> Self {
        Self(Handle::Shared(operation))
    }

    /// Returns the operation.
    pub(crate) fn operation(&self) -> &dyn Operation {
        match &self.0 {
            Handle::Fixed(operation) => *operation,
            Handle::Shared(operation) => &**operation,
        }
    }

    /// Returns the operation, if it is one that [`fixed`](Self::fixed) was given.
    pub(crate) fn as_fixed(&self) -> Option<&'static dyn Operation> {
        match self.0 {
            Handle::Fixed(operation) => Some(operation),
            Handle::Shared(_) => None,
        }
    }

    /// Returns a short name for messages, events and traces.
    pub fn name(&self) -> &'static str {
        self.operation().name()
    }
}

/// By type and parameters, never by name or address.
impl Hash for Op {
    fn hash<H: Hasher>(&self, to: &mut H) {
        let operation: &dyn Any = self.operation();
        operation.type_id().hash(to);
        self.operation().parameters(to);
    }
}

impl<O: Operation> From<O> for Op {
    fn from(operation: O) -> Self {
        Self::shared(Arc::new(operation))
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operation().fmt(f)
    }
}

/// One operation with its memory.
#[derive(Debug)]
pub struct Launch {
    /// The operation.
    pub op: Op,
    /// The memory that is read.
    pub inputs: SmallVec<[View; 4]>,
    /// The memory that is written.
    pub outputs: SmallVec<[View; 1]>,
    /// Address of the bytes that [`Stream::workspace`](super::Stream::workspace) asked for, if any;
    /// aligned to 256 bytes, contents unknown, free again when the operation is done.
    pub workspace: u64,
}

impl Launch {
    /// Returns the description of an operation without operands. It is large: one that is used again saves most of the work.
    pub(crate) fn of(op: Op) -> Self {
        Self { op, inputs: SmallVec::new(), outputs: SmallVec::new(), workspace: 0 }
    }

    /// Makes it describe another operation.
    pub(crate) fn describe(&mut self, op: Op, inputs: &[View], outputs: &[View], workspace: u64) {
        (self.op, self.workspace) = (op, workspace);
        // One by one: `extend_from_slice` calls `memmove` twice for each list.
        self.inputs.clear();
        inputs.iter().for_each(|view| self.inputs.push(*view));
        self.outputs.clear();
        outputs.iter().for_each(|view| self.outputs.push(*view));
    }
}

impl Clone for Launch {
    /// Copies the views as bytes. They are large, and cloning them one by one was a large part of the host time of an eager
    /// launch.
    fn clone(&self) -> Self {
        Self {
            op: self.op.clone(),
            inputs: SmallVec::from_slice(&self.inputs),
            outputs: SmallVec::from_slice(&self.outputs),
            workspace: self.workspace,
        }
    }
}
