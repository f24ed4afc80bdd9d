//! Branches of a segment that may run in parallel on the device.

use crate::{Error, Result, Runtime, Scope};

/// Runs two branches whose work on the device may overlap, and returns both results. `scope` selects the
/// runtime, as for constructors: `t.scope()`.
///
/// ```
/// use graphable::prelude::*;
///
/// #[graphable]
/// fn forked(#[host] #[dims(B, 2)] x: &Tensor<f32>, w: &Param<f32>) -> Result<Tensor<f32>> {
///     let (up, gate) = join(
///         x.scope(),
///         || ops::linear(x, w),
///         || {
///             let doubled = ops::scale(x, 2.0)?;
///             ops::silu(&doubled)
///         },
///     )?;
///     ops::mul(&up, &gate)
/// }
/// # fn main() -> Result<()> {
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let w = Param::new(&rt, &[2, 2], &[1.0, 0.0, 0.0, 1.0])?;
/// # let forked = ForkedGraph::builder().build(&mut rt)?;
/// # for _ in 0..3 {
/// #     let step = rt.step()?;
/// #     let y = forked.call(&step, &[0.0, 0.0], &w)?;
/// #     assert_eq!(step.read(&y)?, [0.0, 0.0]);
/// # }
/// # Ok(())
/// # }
/// ```
///
/// The closures run on this thread, one after the other; only the work that they launch overlaps. In a
/// recording, each branch waits for the work recorded before the `join`, but not for the other branch, and
/// the work recorded after the `join` waits for both. Everywhere else (in warm-up, without graphs, in an
/// eager region, between calls), the work runs in order. Joins may be nested.
///
/// **Memory.** A branch starts from the memory that is free before the `join`. Memory freed inside a branch,
/// even by its last handle, becomes available to others only after the `join`; the branch that allocated a
/// block may reuse it for a block of the same size. Branches therefore need more memory than the same work in
/// sequence.
///
/// **Independence.** A branch must not use memory that the other one writes: neither a tensor passed in a
/// cell, nor [`State`](crate::State) that one of them modifies. Within a function this is checked, in every
/// mode.
///
/// If the first branch fails, the second is not started.
///
/// # Errors
/// Returns the errors of the branches, [`Error::BranchesShare`], [`Error::OutsideSegment`], and errors of the
/// device. If rustc asks for the type of the error, end a branch with `Ok::<_, Error>(…)`.
pub fn join<A, B, E: From<Error>>(
    scope: Scope<'_>,
    a: impl FnOnce() -> Result<A, E>,
    b: impl FnOnce() -> Result<B, E>,
) -> Result<(A, B), E> {
    let mut fork = Fork::open(scope)?;
    let a = fork.branch(a)?;
    let b = fork.branch(b)?;
    fork.close()?;
    Ok((a, b))
}

/// Runs three branches; see [`join`].
///
/// # Errors
/// See [`join`].
pub fn join3<A, B, C, E: From<Error>>(
    scope: Scope<'_>,
    a: impl FnOnce() -> Result<A, E>,
    b: impl FnOnce() -> Result<B, E>,
    c: impl FnOnce() -> Result<C, E>,
) -> Result<(A, B, C), E> {
    let mut fork = Fork::open(scope)?;
    let a = fork.branch(a)?;
    let b = fork.branch(b)?;
    let c = fork.branch(c)?;
    fork.close()?;
    Ok((a, b, c))
}

/// Runs any number of branches of one type; see [`join`]. All closures are created before the first one runs.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// # let x = step.tensor(&[1], &[1.0f32])?;
/// let x = &x;
/// let scaled = join_all(x.scope(), [1.0, 2.0, 3.0].map(|by| move || ops::scale(x, by)))?;
/// assert_eq!(step.item(&scaled[2])?, 3.0);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`join`].
pub fn join_all<T, E, F>(scope: Scope<'_>, branches: impl IntoIterator<Item = F>) -> Result<Vec<T>, E>
where
    E: From<Error>,
    F: FnOnce() -> Result<T, E>,
{
    // The iterator's own work belongs to no branch.
    let branches: Vec<F> = branches.into_iter().collect();
    let mut fork = Fork::open(scope)?;
    let results = branches.into_iter().map(|branch| fork.branch(branch)).collect::<Result<_, E>>()?;
    fork.close()?;
    Ok(results)
}

/// An open fork. It is closed when dropped, also by `?` and by panics, so that the surrounding capture can be
/// ended.
struct Fork<'s> {
    rt: &'s Runtime,
    open: bool,
    branches: usize,
}

impl<'s> Fork<'s> {
    fn open(scope: Scope<'s>) -> Result<Self> {
        let open = {
            let core = &mut *scope.rt.core.borrow_mut();
            let (mut launcher, call) = core.in_call();
            launcher.begin_fork(call)?
        };
        Ok(Self { rt: scope.rt, open, branches: 0 })
    }

    fn branch<T, E: From<Error>>(&mut self, body: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        if self.open {
            self.rt.core.borrow_mut().launcher().begin_branch(self.branches)?;
            self.branches += 1;
        }
        body()
    }

    fn close(mut self) -> Result<()> {
        if std::mem::take(&mut self.open) { self.rt.core.borrow_mut().launcher().end_fork() } else { Ok(()) }
    }
}

impl Drop for Fork<'_> {
    fn drop(&mut self) {
        if self.open {
            // A failure is noted in the run, which reports it at its end.
            drop(self.rt.core.borrow_mut().launcher().end_fork());
        }
    }
}
