//! For generated code. Nothing here is stable.

pub use bytemuck;
pub use graphable_macros::{Configured, configured};

pub use crate::{
    base::{
        dtype::HostSlot,
        mode::Support,
        plan::{BoundaryMove, Plan, PlanItem, Site},
    },
    graph::{
        BuildGraph, FunctionSpec, GraphCall, GraphObject, Options, StaticInput, Synthetic, SyntheticSlice,
        inputs::{Dim, DimsSpec, InputKind, InputSpec, Inputs},
    },
    host::{
        boundary::{
            EagerEntersSegment, EagerFieldEntersSegment, Ends, EndsAsContainer, EndsAsGuard, EndsAsLiveIn,
            EndsAsOther, EndsWithSegment, EntersSegment, FieldEntersSegment, GraphInput, GraphKey,
            GraphParams, GraphResult, Held, LeavesSegment, Leaving, NeedsPiecewise,
            OnlyForFunctionsWithBoundaries, UserError,
        },
        eager::{EagerOther, EagerResult, EagerTensors, Finish, Region},
        piecewise::Piecewise,
    },
    memory::{Live, Tables},
    model::{
        load::{LoadParam, LoadParams, LoadState, Loader},
        params::{ConfigValue, ParamField, ParamVisitor, Params},
    },
    tensor::{
        live_out::{Decoder, LiveOut},
        persistent::Keep,
    },
    value::{
        entry::Encoder,
        key::KeyWriter,
        live_in::{DeviceValue, Key, LiveIn},
    },
};

/// The error type of a `Result`, whatever alias it was written with.
pub trait TryError {
    /// `E` of `Result<T, E>`.
    type Error;
}

impl<T, E> TryError for Result<T, E> {
    type Error = E;
}

/// The result of a pointer to a function: there, elided lifetimes are that of the parameter.
pub trait Returns {
    /// `R` of `fn(A) -> R`.
    type Value;
}

impl<A, R> Returns for fn(A) -> R {
    type Value = R;
}

/// What the body of a segment returns, whose outputs go elsewhere; `R` is the function's `Result`.
pub type Ran<R> = Result<(), <R as TryError>::Error>;

/// Whether a name is the same variable before and behind a macro call in a segment.
///
/// # Errors
/// [`Error::Argument`](crate::Error::Argument) if the macro bound the name anew: code behind the segment, which uses
/// it, would find the older value.
pub fn same_variable(before: *const (), after: *const (), name: &str, mac: &str) -> crate::Result<()> {
    if before == after {
        return Ok(());
    }
    let why = format!(
        "`{mac}!` binds `{name}` anew, which code behind the segment uses: it would find the older value; write \
         `let {name} = …;` instead"
    );
    Err(crate::Error::Argument { op: "segment", why })
}

/// Turns a user's error into ours, where only ours can be returned.
#[derive(Debug)]
pub struct CaptureFailed;

/// What nobody wants to hear of.
pub fn untold(_: crate::CaptureProgress<'_>) {}

impl CaptureFailed {
    /// Whether a call succeeded.
    ///
    /// # Errors
    /// Ours as it is; of any other, the message.
    pub fn told<T, E: std::fmt::Debug + 'static>(result: Result<T, E>) -> crate::Result<()> {
        match result {
            Ok(_) => Ok(()),
            Err(error) => Err(Self::from_user(error)),
        }
    }

    fn from_user<E: std::fmt::Debug + 'static>(error: E) -> crate::Error {
        let mut slot = Some(error);
        let any: &mut dyn std::any::Any = &mut slot;
        if let Some(ours) = any.downcast_mut::<Option<crate::Error>>().and_then(Option::take) {
            return ours;
        }
        let why = slot.map(|error| format!("{error:?}")).unwrap_or_default();
        crate::Error::Config { what: "a call of `capture_all`".into(), why }
    }
}
