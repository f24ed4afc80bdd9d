//! Host values that a graph function takes by identity.

use std::{fmt, ops::Deref, sync::Arc};

use crate::{
    LiveIn, Runtime,
    base::contained::Contained,
    value::{key::KeyWriter, owned::Owned},
};

/// A host value that a graph function takes by identity: a plan, a handle, a pool, an
/// [operation](crate::custom::CustomOp) and what its code owns.
///
/// It is a parameter of a graph function, `plan: &HostContext<Plan>`, or a field of a `#[derive(Params)]` struct, and
/// dereferences to its value. Nothing of the value is part of a recording's bytes or compared by content: a function that was
/// recorded with one context is warmed up and recorded again with another, even if both are equal.
///
/// Dropping the context evicts the recordings that were made with it when the next step begins. They keep the value until
/// then. It is dropped when all work has ended that is on the runtime's stream when the context and the last recording are
/// gone: replays, and also work that eager code launched there with a raw handle or address from the value. Work on other
/// streams must have ended before. The value's destructor may run on another thread, and its panic is caught, unless
/// the context or its [shared value](Self::shared) outlives the runtime. It may drop parameters and states, but must not call
/// this runtime, which may be in the middle of a call: that would be such a panic.
///
/// It cannot be cloned: code that a recording holds would keep its own recordings. Such code owns the
/// [shared value](Self::shared) instead.
///
/// ```
/// use graphable::{custom::CustomOp, prelude::*};
///
/// /// `factor * x`, by code that owns the factor.
/// fn scaling(factor: f32) -> CustomOp {
///     let op = CustomOp::builder("scaling").cpu(move |call| {
///         let (x, y) = (call.input::<f32>(0)?, call.output::<f32>(0)?);
///         y.iter_mut().zip(x).for_each(|(y, x)| *y = factor * x);
///         Ok(())
///     });
///     op.build()
/// }
///
/// #[graphable]
/// fn scaled(x: &Tensor<f32>, op: &HostContext<CustomOp>) -> Result<Tensor<f32>> {
///     op.call(x.scope()).input(x).output(x.shape()).run()
/// }
///
/// let mut rt = Runtime::new(Device::cpu())?;
/// let graph = ScaledGraph::builder().build(&mut rt)?;
/// for factor in [2.0, 3.0] {
///     let op = HostContext::new(&rt, scaling(factor));
///     for _ in 0..4 {
///         let step = rt.step()?;
///         let y = graph.call(&step, &step.tensor(&[1], &[5.0])?, &op)?;
///         assert_eq!(step.item(&y)?, 5.0 * factor);
///     }
///     assert_eq!(rt.stats().live_recordings, 1); // That of the first factor is gone.
/// }
/// # Ok::<(), Error>(())
/// ```
pub struct HostContext<T> {
    value: Arc<T>,
    /// Its identity: memory of the runtime without any bytes.
    owned: Arc<Owned>,
}

impl<T: Send + Sync + 'static> HostContext<T> {
    /// Gives `value` an identity in `rt`. It is given back when neither the context nor a recording uses it any more.
    pub fn new(rt: &Runtime, value: T) -> Self {
        let value = Arc::new(value);
        let owned = rt.identify(Box::new(Contained::new(Arc::clone(&value))));
        Self { value, owned }
    }
}

impl<T> HostContext<T> {
    /// Returns the value to code that outlives the call, such as the closure of an operation.
    pub fn shared(&self) -> Arc<T> {
        Arc::clone(&self.value)
    }
}

impl<T> Deref for HostContext<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for HostContext<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostContext").field(&self.value).finish()
    }
}

impl<T> LiveIn for HostContext<T> {
    #[inline]
    fn write_key(&self, k: &mut KeyWriter) {
        k.identity(&self.owned);
    }
}
