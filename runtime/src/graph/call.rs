//! One call of a graph object: entering it, running it, and leaving it.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use tracing::span::EnteredSpan;

use super::bind::Bound;
#[cfg(feature = "cuda")]
use crate::backend::cuda::{BoundForCall, CudaBackend};
use crate::{
    Error, Result, Runtime, Scalar, Tensor,
    backend::SharedMemory,
    base::{
        mode::Mode,
        plan::{Plan, PlanItem, Site},
    },
    graph::inputs::{Inputs, Size},
    host::{
        boundary::{Leaves, Leaving},
        piecewise::{BodyId, Piecewise},
    },
    observe::timeline,
    record::ActiveCall,
    tensor::live_out::{Decoder, LiveOut},
    tree::Identity,
    value::{
        entry::Encoder,
        key::KeyWriter,
        live_in::LiveIn,
        owned::{Caller, OwnerId},
        raw::RawTensor,
    },
};

/// Runs the host code of a call that was entered, or returns the error of one that could not be. `convert` converts an
/// error of the runtime to the function's error type.
///
/// # Errors
/// Returns the errors of [`Inputs::enter`] and of the host code.
pub fn call<'s, T, By, E>(
    entered: Result<GraphCall<'s>>,
    convert: fn(Error) -> E,
    host_code: impl FnOnce(&GraphCall<'s>) -> Result<Leaving<T, By>, E>,
) -> Result<T, E>
where
    By: Leaves<'s, T>,
{
    match entered
        .map_err(Failed::Runtime)
        .and_then(|call| call.run_host_code(|call| host_code(call).map_err(Failed::HostCode)))
    {
        Ok(Leaving(out, _)) => Ok(out),
        Err(Failed::HostCode(error)) => Err(error),
        Err(Failed::Runtime(error)) => Err(convert(error)),
    }
}

/// The way in which a call failed. It keeps the function's error type out of the bounds of this module: `From<Error>`
/// is required once, where the type is written ([`UserError`](crate::boundary::UserError)).
enum Failed<E> {
    HostCode(E),
    Runtime(Error),
}

impl<E> From<Error> for Failed<E> {
    fn from(error: Error) -> Self {
        Self::Runtime(error)
    }
}

/// A running call. Dropping it ends the call.
pub struct GraphCall<'s> {
    pub(super) rt: &'s Runtime,
    name: &'static str,
    graph: OwnerId,
    plan: &'static Plan,
    body: BodyId,
    pub(super) inputs: Vec<Bound>,
    full_key: Option<Box<KeyWriter>>,
    _span: EnteredSpan,
    _bound: BoundThread,
}

/// The context of the device, current on the calling thread if it had none.
#[cfg(feature = "cuda")]
type BoundThread = Option<BoundForCall>;
#[cfg(not(feature = "cuda"))]
type BoundThread = ();

#[cfg(feature = "cuda")]
fn bind_thread(rt: &Runtime) -> BoundThread {
    CudaBackend::of(rt.core.borrow().stream.backend())?.bind_for_call()
}
#[cfg(not(feature = "cuda"))]
fn bind_thread(_: &Runtime) -> BoundThread {}

impl fmt::Debug for GraphCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphCall").field("function", &self.name).finish_non_exhaustive()
    }
}

impl<'s> GraphCall<'s> {
    /// Starts a call with these inputs; `sizes` are those of its symbols.
    pub(super) fn enter(inputs: Inputs<'s, '_>, sizes: &[Size], key: &dyn LiveIn) -> Result<Self> {
        let Inputs { step: rt, function, given, .. } = inputs;
        let name = function.spec.name;
        rt.views.check_call(name)?;
        let mut chosen = function.choose(rt, sizes)?;
        let symbols = function.symbols(rt, sizes, &mut chosen)?;
        chosen.check(function)?;
        let (mode, key_of_batch) = (chosen.mode, chosen.key);
        let mut frame = Self {
            rt,
            name,
            graph: function.id,
            plan: function.spec.plan,
            body: function.body,
            inputs: Vec::with_capacity(given.len()),
            full_key: None,
            _span: timeline::call(name, mode),
            _bound: bind_thread(rt),
        };
        {
            let core = &mut *rt.core.borrow_mut();
            core.launcher().flush()?;
            let numerics = function.options.numerics.unwrap_or(core.settings.numerics());
            let passes = function.options.passes.as_ref().unwrap_or(core.settings.passes()).clone();
            core.begin_call(ActiveCall {
                name,
                graph: function.id,
                mode,
                symbols: symbols.clone(),
                dispatched: key_of_batch.is_some(),
                adapters: key_of_batch.filter(|_| function.tells_adapters_apart()).map(|key| key.adapters),
                numerics,
                passes,
                block: SharedMemory::clone(&function.block.memory),
                block_id: function.block.id,
                scalars: function.scalars.len(),
                audit_every: function.options.audit_every,
                limits: function.options.limits,
                policy: function.options.policy.clone(),
                deny_fallback: function.options.deny_fallback,
                eager_conditionals: function.options.eager_conditionals,
                warmups_before: core.log.stats().warmups,
                counted_shape: false,
            });
            core.tree.enter(Caller { id: function.id, name });
        }
        // From here on, dropping `frame` ends the call.
        frame.bind(function, &given, &symbols)?;
        if mode == Mode::Full {
            let mut writer = rt.take_writer();
            writer.collect = true;
            for input in &frame.inputs {
                writer.tensor(&input.raw);
            }
            key.write_key(&mut writer);
            frame.full_key = Some(writer);
        }
        rt.core.borrow_mut().call.enter_host_code();
        Ok(frame)
    }

    /// Returns an input as the body sees it.
    #[inline]
    pub fn tensor<T>(&self, i: usize) -> Tensor<'s, T> {
        Tensor::from_raw(self.rt, self.input(i))
    }

    /// Returns a host scalar as the body sees it.
    #[inline]
    pub fn host_scalar<T>(&self, i: usize) -> Scalar<'s, T> {
        Scalar(self.tensor(i))
    }

    /// Returns an input, with its count incremented.
    fn input(&self, i: usize) -> RawTensor {
        let Some(Bound { raw, .. }) = self.inputs.get(i) else {
            unreachable!(
                "generated code asks for the inputs that it gave, and `Inputs::enter` checks that it gave all"
            )
        };
        self.rt.retain(raw.slot, raw.epoch);
        *raw
    }

    /// Returns the identity of the function's body.
    #[inline]
    pub fn body(&self) -> BodyId {
        self.body
    }

    /// Returns the executor of the call's host code.
    #[inline]
    pub fn piecewise(&self) -> Piecewise<'s> {
        Piecewise { rt: self.rt }
    }

    /// Runs the host code, in the call's mode.
    ///
    /// # Errors
    /// Returns the errors of the host code, and those of the runtime, converted.
    pub fn run<O, E, F>(self, host_code: F) -> Result<O, E>
    where
        O: LiveOut<'s>,
        E: From<Error>,
        F: FnOnce(Piecewise<'s>) -> Result<O, E>,
    {
        self.run_host_code(|call| host_code(call.piecewise()))
    }

    fn run_host_code<O, E, F>(mut self, host_code: F) -> Result<O, E>
    where
        O: LiveOut<'s>,
        E: From<Error>,
        F: FnOnce(&Self) -> Result<O, E>,
    {
        let rt = self.rt;
        rt.refused_sizes.clear();
        let full_key = self.full_key.take();
        rt.graphs.set(rt.core.borrow().call.graphs());
        let out = not_for_a_refused_size(rt, || match full_key {
            None => {
                let out = host_code(&self);
                rt.refused_sizes.take()?;
                out
            }
            Some(key) => {
                let site = self.plan.items.first().map_or(&NO_SITE, PlanItem::site);
                let mut host_code = Some(host_code);
                let out = rt.run_segment::<O, E>(
                    site,
                    Identity::Full(self.graph),
                    |k| key.copy_to(k),
                    &mut |out| {
                        rt.core.borrow_mut().call.enter_host_code();
                        // `run_segment` never tries host code twice, since it may consume what it was given.
                        let Some(host_code) = host_code.take() else { unreachable!("host code runs once") };
                        *out = Some(host_code(&self)?);
                        Ok(())
                    },
                );
                rt.put_writer(key);
                out
            }
        })?;
        let mut encoder = Encoder::of(rt);
        out.encode(&mut encoder);
        encoder.check("an output of a call")?;
        let finished = rt.core.borrow_mut().body_runner().finish_outputs(&encoder.entries)?;
        let out = match finished {
            Some(entries) => {
                let moved = O::decode(&mut Decoder::new(rt, entries));
                // Tensors that were moved out of the pool leave it here; anything that remains was leaked.
                drop(out);
                moved
            }
            None => out,
        };
        let left = self.end();
        rt.tell_hooks();
        match left {
            None => Ok(out),
            Some((bytes, op)) => {
                Err(Error::UnownedAllocation { segment: format!("`{}`", self.name), op, bytes }.into())
            }
        }
    }

    /// Ends the call; returns what remained in the pool.
    fn end(&mut self) -> Option<(u64, &'static str)> {
        for input in self.inputs.drain(..) {
            input.end(self.rt);
        }
        self.rt.graphs.set(false);
        self.rt.core.borrow_mut().end_call()
    }
}

/// Runs the user's host code. If it compared sizes that are not numbers, its result is discarded, even if it
/// is a panic, as from `assert_eq!`: the call ends with the error of the comparison.
fn not_for_a_refused_size<T, E: From<Error>>(
    rt: &Runtime,
    run: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    // The panic has been unwound; the call ends in either case.
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result,
        Err(panic) => match rt.refused_sizes.take() {
            Ok(()) => resume_unwind(panic),
            Err(error) => Err(error.into()),
        },
    }
}

/// The site of a function without parts, such as one that returns its input.
static NO_SITE: Site = Site { function: "", index: 0, file: "", first_line: 0, last_line: 0 };

impl Drop for GraphCall<'_> {
    fn drop(&mut self) {
        if self.rt.core.borrow().call.active().is_some() {
            self.end();
        }
    }
}
