//! Operations of your own: code for each device under one name, to be called in segments and eager code alike.
//!
//! A [`CustomOp`] has a name and code: a closure over slices for the CPU, and for a GPU a kernel ([`CudaKernel`], of CUDA
//! C++, PTX or machine code) or a library ([`CudaLibrary`]). An ordinary function makes a launch of it: it names the
//! arguments in the order of the kernel's parameters, and the shapes of the outputs.
//!
//! ```
//! use std::sync::LazyLock;
//!
//! use graphable::{custom::CustomOp, prelude::*};
//!
//! /// `x * x`, element by element.
//! fn square<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
//!     static SQUARE: LazyLock<CustomOp> = LazyLock::new(|| {
//!         CustomOp::builder("square")
//!             .keeps_padding()
//!             .cpu(|call| {
//!                 let (x, y) = (call.input::<f32>(0)?, call.output::<f32>(0)?);
//!                 y.iter_mut().zip(x).for_each(|(y, x)| *y = x * x);
//!                 Ok(())
//!             })
//!             .build()
//!     });
//!     SQUARE.call(x.scope()).input(x).output_like(x).run()
//! }
//!
//! #[graphable]
//! fn twice(x: &Tensor<f32>) -> Result<Tensor<f32>> {
//!     square(&square(x)?)
//! }
//! # let mut rt = Runtime::new(Device::cpu())?;
//! # let graph = TwiceGraph::builder().build(&mut rt)?;
//! # for _ in 0..4 {
//! let step = rt.step()?;
//! let y = graph.call(&step, &step.tensor(&[2], &[2.0, 3.0])?)?;
//! assert_eq!(step.read(&y)?, [16.0, 81.0]);
//! # }
//! # Ok::<(), Error>(())
//! ```
//!
//! **What the runtime does with it** is what it does with its own operations: it is traced and audited, compared by identity
//! and arguments, freed at its last use, put into branches, and launched again when a capture is made again.
//!
//! **Errors.** A launch on a device without code is [`Error::NoCode`](crate::Error::NoCode); code for the CPU that returns an
//! error or panics is [`Error::OperationFailed`](crate::Error::OperationFailed), from the next read; a CUDA source that does
//! not compile is [`Error::Compile`](crate::Error::Compile), with the compiler's log, from the first launch.
//!
//! **Padding.** In a bucketed function an input may have padded dimensions, which hold rows that do not exist. By default a
//! launch with one is [`Error::PaddedMix`](crate::Error::PaddedMix). [`CustomOpBuilder::keeps_padding`] says that what real
//! rows become does not depend on the others; the outputs must then have the padded dimensions, too. A launch that
//! passes the [real size](Call::real_size) of a dimension says that its code reads no further.

mod argument;
mod call;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod gradient;
mod operation;
mod parts;
mod replacement;

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use argument::Argument;
use call::Held;
#[cfg(feature = "cuda")]
use cuda::CudaCode;
use gradient::Rule;
use operation::{CustomOperation, Definition, Identity};

pub use argument::ScalarArgument;
pub use call::{AndOutput, Call};
pub use cpu::{CpuCall, CpuFailure};
pub use gradient::{AnyTensor, Backward};
pub use replacement::CustomReplacement;

#[cfg(feature = "cuda")]
pub use crate::backend::cuda::custom::{
    CudaCall, CudaGrid, CudaKernel, CudaLaunch, CudaLibrary, CudaSource, LibraryError,
};
pub use crate::backend::shapes::Shapes;
use crate::{
    Capturable, ConfigValue, Eager, Key, LiveIn, Scope, Step, backend::Op, base::plan::Site,
    value::key::KeyWriter,
};

/// An operation of your own. Cloning shares it.
///
/// It is known by identity: one that is built again is another operation, and a recording made with the first does not
/// fit it. So build it once, in a `static` or beside the model. One that a region that may be captured builds for a
/// launch ([`Capturable::call`]) is known by the region, its number there and its name instead. It can be a `#[key]`
/// parameter of a graph function, or a `#[config]` field of its parameters; a recording keeps what it owns until the
/// recording is evicted.
#[derive(Clone)]
pub struct CustomOp(Arc<Shared>);

/// The part of an operation that its clones share.
struct Shared {
    definition: Arc<Definition>,
    keeps_padding: bool,
    gradient: Option<Box<Rule>>,
    /// The launch with the arguments of the first one: for most operations, the arguments of all.
    first: OnceLock<Arc<CustomOperation>>,
}

impl Shared {
    /// Returns what a launch with these arguments is.
    fn launch(&self, arguments: &[Argument]) -> Op {
        let new = || Arc::new(CustomOperation::new(&self.definition, arguments));
        let first = self.first.get_or_init(new);
        let launch = if first.arguments() == arguments { Arc::clone(first) } else { new() };
        Op::shared(launch)
    }
}

impl CustomOp {
    /// Starts an operation. The name is in messages, events and traces; it need not be unique.
    pub fn builder(name: &'static str) -> CustomOpBuilder {
        CustomOpBuilder { definition: Definition::new(name), keeps_padding: false, gradient: None }
    }

    /// Returns the name.
    pub fn name(&self) -> &'static str {
        self.0.definition.name
    }

    /// Starts a launch.
    pub fn call<'s>(&self, scope: Scope<'s>) -> Call<'_, 's> {
        Call::new(Held::Borrowed(self), scope)
    }
}

impl fmt::Debug for CustomOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.definition.fmt(f)
    }
}

impl PartialEq for CustomOp {
    /// Returns whether both are one operation, by identity.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CustomOp {}

impl LiveIn for CustomOp {
    fn write_key(&self, k: &mut KeyWriter) {
        self.0.definition.identity().into_iter().for_each(|word| k.word(word));
    }
}

impl Key for CustomOp {}
impl ConfigValue for CustomOp {}

/// An operation of your own that may never be captured: a launch requires the capability of eager code, so a launch in a
/// segment does not compile.
///
/// ```
/// # use std::sync::LazyLock;
/// # use graphable::{custom::{CustomOp, EagerOp}, prelude::*};
/// static NOISE: LazyLock<EagerOp> = LazyLock::new(|| {
///     let op = CustomOp::builder("noise");
///     op.cpu(|call| Ok(call.output::<f32>(0)?.fill(0.5))).build_eager()
/// });
///
/// #[graphable]
/// fn noisy(x: &Tensor<f32>) -> Result<Tensor<f32>> {
///     let noise = #[eager(cx)]
///     NOISE.call(cx).output::<f32>(x.shape()).run()?;
///     ops::add(x, &noise)
/// }
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let graph = NoisyGraph::builder().build(&mut rt)?;
/// # for _ in 0..3 {
/// # let step = rt.step()?;
/// # let y = graph.call(&step, &step.tensor(&[1], &[1.0])?)?;
/// # assert_eq!(step.read(&y)?, [1.5]);
/// # }
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct EagerOp(CustomOp);

impl EagerOp {
    /// Returns the name.
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Starts a launch, in an `#[eager(cx)]` region or between calls: `cx` is the capability of the region, or a step.
    pub fn call<'s>(&self, cx: impl EagerCode<'s>) -> Call<'_, 's> {
        self.0.call(cx.scope_of_eager_code())
    }
}

/// The capability of eager code, which an [`EagerOp`] requires: `&Eager`, or a `&Step` between calls.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the capability of eager code",
    label = "an operation for eager code is never captured",
    note = "launch it in a region that binds the capability: `let y = #[eager(cx)] op.call(cx).…;`"
)]
pub trait EagerCode<'s>: sealed::Sealed {
    #[doc(hidden)]
    fn scope_of_eager_code(self) -> Scope<'s>;
}

mod sealed {
    pub trait Sealed {}
}

impl sealed::Sealed for &Eager<'_> {}
impl<'s> EagerCode<'s> for &Eager<'s> {
    fn scope_of_eager_code(self) -> Scope<'s> {
        self.scope()
    }
}

impl sealed::Sealed for &Step<'_> {}
impl<'s> EagerCode<'s> for &Step<'s> {
    fn scope_of_eager_code(self) -> Scope<'s> {
        self.scope()
    }
}

impl<'s> Capturable<'s> {
    /// Starts a launch of `op`, whose code may own whatever the region has at hand. On a GPU, its code gets the stream, and
    /// the addresses of its operands; on the CPU, their memory as slices.
    pub fn call<'c>(&self, op: CustomOpBuilder) -> Call<'c, 's> {
        Call::new(Held::Owned(op.build_at(self.site(), self.next_operation())), self.scope())
    }
}

impl<'s> Eager<'s> {
    /// Starts a launch of an operation that is made for it, as [`Capturable::call`] does.
    pub fn call<'c>(&self, op: CustomOpBuilder) -> Call<'c, 's> {
        Call::new(Held::Owned(op.build()), self.scope())
    }
}

/// A [`CustomOp`] that is being built.
#[must_use = "`build` makes the operation"]
pub struct CustomOpBuilder {
    definition: Definition,
    keeps_padding: bool,
    gradient: Option<Box<Rule>>,
}

impl CustomOpBuilder {
    /// Sets the code for the CPU. It must write all of each output, and depend on nothing but what the call names: it runs
    /// again at each replay, on the device's thread.
    pub fn cpu(
        mut self,
        code: impl Fn(&CpuCall<'_>) -> Result<(), CpuFailure> + Send + Sync + 'static,
    ) -> Self {
        self.definition.cpu = Some(Box::new(code));
        self
    }

    /// Sets the code for a GPU: a kernel.
    #[cfg(feature = "cuda")]
    pub fn cuda(mut self, kernel: CudaKernel) -> Self {
        self.definition.cuda = Some(CudaCode::Kernel(kernel));
        self
    }

    /// Sets the code for a GPU: a library, which also states whether it may be captured, or a closure ([`CudaLaunch`]).
    #[cfg(feature = "cuda")]
    pub fn cuda_library(mut self, library: impl CudaLibrary) -> Self {
        self.definition.may_be_captured &= library.may_be_captured();
        self.definition.cuda = Some(CudaCode::Library(Arc::new(library)));
        self
    }

    /// Declares that the real rows of the results do not depend on the rows of the padding.
    pub fn keeps_padding(mut self) -> Self {
        self.keeps_padding = true;
        self
    }

    /// Declares that equal inputs give equal bits in every run: the code adds in a fixed order (no atomic additions of floats),
    /// and never measures which algorithm to use. The deterministic mode
    /// ([`Numerics::deterministic`](crate::Numerics::deterministic)) rejects all other operations of yours, on every device.
    pub fn deterministic(mut self) -> Self {
        self.definition.is_deterministic = true;
        self
    }

    /// Sets the rule by which [`CustomOp::backward`] computes the gradients of the inputs of a launch. It is written with
    /// operations; nothing calls it but `backward`.
    ///
    /// ```
    /// # use std::sync::LazyLock;
    /// # use graphable::{custom::CustomOp, prelude::*};
    /// static SQUARE: LazyLock<CustomOp> = LazyLock::new(|| {
    ///     CustomOp::builder("square")
    ///         .cpu(|call| {
    ///             let (x, y) = (call.input::<f32>(0)?, call.output::<f32>(0)?);
    ///             y.iter_mut().zip(x).for_each(|(y, x)| *y = x * x);
    ///             Ok(())
    ///         })
    ///         .gradient(|pass| {
    ///             let (x, dy) = (pass.input::<f32>(0)?, pass.gradient::<f32>(0)?);
    ///             pass.set_gradient(0, &ops::mul(&ops::scale(&x, 2.0)?, &dy)?)
    ///         })
    ///         .build()
    /// });
    /// # let mut rt = Runtime::new(Device::cpu())?;
    /// # let step = rt.step()?;
    /// let x = step.tensor(&[2], &[3.0f32, 4.0])?;
    /// let y: Tensor<f32> = SQUARE.call(x.scope()).input(&x).output_like(&x).run()?;
    /// let dy = ops::ones_like(&y)?;
    /// let gradients = SQUARE.backward(&[(&x).into()], &[(&y).into()], &[(&dy).into()])?;
    /// let dx = gradients[0].as_ref().expect("the rule sets it").typed::<f32>()?;
    /// assert_eq!(step.read(&dx)?, [6.0, 8.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn gradient(
        mut self,
        rule: impl for<'s> Fn(&mut Backward<'_, 's>) -> crate::Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.gradient = Some(Box::new(rule));
        self
    }

    /// Makes the operation.
    pub fn build(self) -> CustomOp {
        let Self { definition, keeps_padding, gradient } = self;
        let definition = Arc::new(definition);
        CustomOp(Arc::new(Shared { definition, keeps_padding, gradient, first: OnceLock::new() }))
    }

    /// Makes the operation of a region, which is the same one each time that the region runs.
    pub(crate) fn build_at(mut self, site: &'static Site, number: u32) -> CustomOp {
        self.definition.identity = Identity::Region(site, number);
        self.build()
    }

    /// Makes an operation for eager code only, which no capture ever holds.
    pub fn build_eager(mut self) -> EagerOp {
        self.definition.may_be_captured = false;
        EagerOp(self.build())
    }
}

impl fmt::Debug for CustomOpBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomOpBuilder").field("name", &self.definition.name).finish_non_exhaustive()
    }
}
