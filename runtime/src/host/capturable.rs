//! The capability of regions that may be captured.

use std::{cell::Cell, fmt};

use crate::{Runtime, Scope, base::plan::Site};

/// The capability of a region that a graph of the whole call may contain, provided by `#[eager(cx, support = …)]`.
///
/// It launches work of your own with what the region has at hand: a plan for this batch, a handle, captures of a closure. It
/// reads nothing: what a captured region read would be the value of the recording in every replay.
///
/// An operation is known by its name, the position of the region, and its number among the operations that the region makes.
/// Sources of CUDA code that are made for a launch are kept for the life of the process: pass what varies as an argument.
///
/// Where the call is not captured, the region and its code run on every call. Where it is, they run when it is warmed up and
/// recorded; a replay repeats the work as it was recorded, with what the code owned then. `support` promises that this is
/// the work that the region would do.
///
/// ```
/// use graphable::{custom::CustomOp, prelude::*};
///
/// /// What a library computes with a plan: here, a factor.
/// fn planned<'s>(cx: &Capturable<'s>, plan: f32, x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
///     let op = CustomOp::builder("planned").cpu(move |call| {
///         let (x, y) = (call.input::<f32>(0)?, call.output::<f32>(0)?);
///         y.iter_mut().zip(x).for_each(|(y, x)| *y = plan * x);
///         Ok(())
///     });
///     cx.call(op).input(x).output(x.shape()).run()
/// }
///
/// #[graphable]
/// fn attend(x: &Tensor<f32>) -> Result<Tensor<f32>> {
///     let x = ops::neg(x)?;
///     let y = #[eager(cx, support = Always)]
///     planned(cx, 3.0, &x)?;
///     ops::neg(&y)
/// }
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # for mode in [Mode::Full, Mode::Piecewise] {
/// # let graph = AttendGraph::builder().mode(mode).deny_fallback(true).build(&mut rt)?;
/// # for _ in 0..4 {
/// # let step = rt.step()?;
/// # let y = graph.call(&step, &step.tensor(&[2], &[1.0, 2.0])?)?;
/// # assert_eq!(step.read(&y)?, [3.0, 6.0]);
/// # }
/// # }
/// # Ok::<(), Error>(())
/// ```
pub struct Capturable<'s> {
    rt: &'s Runtime,
    site: &'static Site,
    /// Operations that were made.
    made: Cell<u32>,
}

impl<'s> Capturable<'s> {
    pub(crate) fn new(rt: &'s Runtime, site: &'static Site) -> Self {
        Self { rt, site, made: Cell::new(0) }
    }

    /// Returns the scope from which constructors get their runtime.
    pub fn scope(&self) -> Scope<'s> {
        Scope { rt: self.rt }
    }

    /// Returns the position of the region.
    pub(crate) fn site(&self) -> &'static Site {
        self.site
    }

    /// Returns the number of the next operation that the region makes.
    pub(crate) fn next_operation(&self) -> u32 {
        let number = self.made.get();
        self.made.set(number.wrapping_add(1));
        number
    }
}

impl fmt::Debug for Capturable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Capturable")
    }
}
