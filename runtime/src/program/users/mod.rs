//! Passes of users: what they see of a program, and what they may do to it.
//!
//! A pass sees a [`Program`] and names launches that one of its own operations is to replace. Each replacement is checked when
//! it is asked for, by the rules of [`joining`](super::joining); all of them are made after the pass has returned. So a pass
//! that fails or panics has changed nothing.

mod depends;
mod new_launch;
mod replace;
mod view;

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

pub(crate) use depends::Dependents;
pub use new_launch::NewLaunch;
pub(crate) use new_launch::Operands;
pub use view::{Launch, LaunchId, Nesting, Program, TensorRef};

use crate::{
    Error, Result,
    backend::Backend,
    base::{
        bound::Bound,
        contained::{Contained, what_panicked},
        plan::Site,
    },
    observe::inspect::PassReport,
    program::Program as Whole,
};

/// A pass over recordings.
///
/// Each recording is a list of launches before it is captured. A pass of yours looks at them, and may
/// [replace](Program::replace) some by operations of yours: a [`CustomOp`](crate::custom::CustomOp), or a
/// [`#[kernel]`](macro@crate::kernel). [`Passes::with`](crate::Passes::with) adds it to the passes of a runtime or of a graph.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use graphable::{
///     Passes,
///     passes::{Pass, PassFailure, Program, kernel},
///     prelude::*,
/// };
///
/// #[kernel]
/// fn half(x: f32) -> f32 {
///     x * 0.5
/// }
///
/// /// Replaces divisions by two.
/// struct Halves;
///
/// impl Pass for Halves {
///     fn name(&self) -> &'static str {
///         "halves"
///     }
///
///     fn run(&self, program: &Program<'_>) -> Result<(), PassFailure> {
///         for launch in program.launches().filter(|launch| launch.operation() == "div") {
///             if let ([x], [y]) = (&launch.inputs()[..], &launch.outputs()[..]) {
///                 // A refusal is in the report of the recording.
///                 let _ = program.replace(&[launch.id()], kernel::<half>().input(*x).output(*y));
///             }
///         }
///         Ok(())
///     }
/// }
///
/// #[graphable]
/// fn mean(#[host] #[dims(2)] x: &Tensor<f32>, y: &Param<f32>) -> Result<Tensor<f32>> {
///     ops::div(&ops::add(x, y)?, 2.0)
/// }
///
/// # fn main() -> Result<()> {
/// let mut rt = Runtime::new(Device::cpu())?;
/// rt.set_passes(Passes::none().with(Halves));
/// let y = Param::new(&rt, &[2], &[1.0f32, 2.0])?;
/// let graph = MeanGraph::builder().build(&mut rt)?;
/// for _ in 0..3 {
///     let step = rt.step()?;
///     let z = graph.call(&step, &[3.0, 4.0], &y)?;
///     assert_eq!(step.read(&z)?, [2.0, 3.0]);
/// }
/// let report = &rt.tree().recordings[0].passes[0];
/// assert_eq!(report.to_string(), "halves: 1 x half for 1 operation each");
/// # Ok(())
/// # }
/// ```
///
/// **What it promises.** What leaves a recording, and the state that it writes, has the same bits as without the pass; or, if it
/// declares a [bound](Self::bound), values within that. Warm-up, mode [`None`](crate::Mode::None) and audits run the operations
/// of the function, so a pass that breaks its promise is found by [audits](crate::GraphBuilder::audit_every).
///
/// **What it cannot do.** Nothing that leaves the recording goes missing, no operation that writes state is replaced, and no order
/// of writes changes. An operation never sees memory that is not its operand. What is refused has a reason, a
/// [`PassRefusal`](crate::inspect::PassRefusal).
///
/// **Errors.** If it fails or panics, the call that was to record fails with [`Error::PassFailed`], nothing was recorded and
/// nothing ran; the next call tries again.
///
/// **Where it runs.** On the thread of the call, once for each recording, while the runtime is in use: a pass must not call
/// one (which it could only do through a thread-local, and which would panic).
pub trait Pass: Send + Sync + 'static {
    /// Its name, in reports and for [`Passes::without`](crate::Passes::without). It is asked for once.
    fn name(&self) -> &'static str;

    /// Returns how far what leaves a recording may be from what it would be without the pass; `None`, if no bit changes. It is
    /// asked for once.
    ///
    /// Audits compare what depends on a replaced launch within the bound, and everything else bit by bit. What depends on several
    /// passes with bounds is compared within the sum of them. If control flow on the device depends on it, so does all that its
    /// bodies write. Integers are compared as numbers: where a token is chosen from values that may differ, no bound holds for it.
    fn bound(&self) -> Option<Bound> {
        None
    }

    /// Looks at a program, and asks for replacements.
    ///
    /// # Errors
    /// Any error or text of yours: the recording is not made then.
    fn run(&self, program: &Program<'_>) -> Result<(), PassFailure>;
}

impl<P: Pass + ?Sized> Pass for Arc<P> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn bound(&self) -> Option<Bound> {
        (**self).bound()
    }

    fn run(&self, program: &Program<'_>) -> Result<(), PassFailure> {
        (**self).run(program)
    }
}

/// The reason why a pass failed: any text or error.
pub struct PassFailure(String);

impl<E: fmt::Display> From<E> for PassFailure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Debug for PassFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The device for which a program is, and what operations must keep to.
#[derive(Debug)]
pub(crate) struct Target<'c> {
    pub(crate) backend: &'c mut dyn Backend,
    /// Set if only deterministic operations are allowed.
    pub(crate) deterministic: bool,
    /// The code that is recorded.
    pub(crate) segment: &'c Site,
}

/// A pass of a user, with what it said about itself.
pub(super) struct UserPass {
    pub(super) name: &'static str,
    pub(super) bound: Option<Bound>,
    /// Whose destructor may run anywhere.
    pass: Contained<Box<dyn Pass>>,
}

impl UserPass {
    pub(super) fn new(pass: impl Pass) -> Self {
        Self { name: pass.name(), bound: pass.bound(), pass: Contained::new(Box::new(pass)) }
    }

    /// Rewrites a program. Returns what depends on the launches that were replaced, if the pass has a bound.
    ///
    /// # Errors
    /// Returns [`Error::PassFailed`], and errors of the device.
    pub(super) fn run(
        &self,
        program: &mut Whole,
        target: &mut Target<'_>,
        report: &mut PassReport,
    ) -> Result<Option<Dependents>> {
        report.bound = self.bound;
        let segment = target.segment;
        let failed =
            |reason| Err(Error::PassFailed { pass: self.name, segment: segment.to_string(), reason });
        let seen = Program::new(&program.commands, target, report);
        match catch_unwind(AssertUnwindSafe(|| self.pass.get().map(|pass| pass.run(&seen)))) {
            Ok(None | Some(Ok(()))) => {}
            Ok(Some(Err(failure))) => return failed(failure.0),
            Err(panic) => return failed(what_panicked(panic)),
        }
        let replaced = seen.finish()?;
        let dependents = match self.bound {
            Some(bound) if !replaced.is_empty() => Some(replaced.dependents(&program.commands, bound)),
            _ => None,
        };
        replaced.make(program, report);
        Ok(dependents)
    }
}

impl fmt::Debug for UserPass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserPass")
            .field("name", &self.name)
            .field("bound", &self.bound)
            .finish_non_exhaustive()
    }
}
