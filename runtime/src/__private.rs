//! Names for generated code. Nothing here is stable.

pub use graphable_macros::{Configured, Graph, configured};

pub use crate::{
    base::{
        mode::Support,
        plan::{BoundaryMove, Plan, PlanItem, Site},
    },
    graph::{
        FunctionSpec, GraphCall, GraphObject, Options, StaticInput, Synthetic, SyntheticSlice, call,
        capture_all,
        inputs::Inputs,
        silent,
        spec::{Dim, DimsSpec, InputKind, InputSpec},
    },
    host::{
        boundary::{
            CannotChangeReferent, CarriedByDevice, CarriedField, ChangesReferent, DeviceIndex,
            DevicePredicate, EagerEntersSegment, EagerEntersSegmentToChange, EagerFieldEntersSegment, Ends,
            EndsAsContainer, EndsAsGuard, EndsAsLiveIn, EndsAsOther, EndsIn, EndsItself, EndsWithSegment,
            EntersSegment, EntersSegmentToChange, FieldEntersSegment, GraphInput, GraphKey, GraphParams,
            GraphResult, LeavesArm, LeavesSegment, Leaving, LiveInRef, NeedsPiecewise,
            OnlyForFunctionsWithBoundaries, Referent, UserError,
        },
        control::{Carried, DEFAULT_LIMIT, Description, NextTensor, sealed::Sealed as CarriedSealed},
        device_flow::{
            Carrying, ChangedByArms, CopyOfAnything, CopyOfReferent, CopyOfValue, NewValue, OfArms, Own,
            OwnCopy, OwnReborrow, OwnReference, Round, end, limit, place,
        },
        eager::{EagerOther, EagerResult, EagerTensors, Region, RegionResult},
        piecewise::Piecewise,
    },
    memory::{Live, Tables},
    model::{
        load::{Exporter, LoadParam, LoadParams, LoadState, Loader},
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

/// Macros with the names of attributes that are only read by `#[graphable]`; see `imports` in the macro.
pub mod misplaced {
    macro_rules! named {
        ($($name:ident)*) => {$(
            /// One attribute.
            pub mod $name {
                pub use graphable_macros::graphable as $name;
            }
        )*};
    }
    named!(eager piecewise host key dims device);
}

/// Names for the code that `#[kernel]` generates.
pub mod kernel {
    pub use crate::kernel::rows::columns;
    #[cfg(feature = "cuda")]
    pub use crate::kernel::{
        chain::sample::compile_chain,
        cuda::{compile, compile_all},
    };

    /// Returns the kernels of the built-in operations.
    #[cfg(feature = "cuda")]
    pub fn built_in() -> Vec<&'static Definition> {
        crate::ops::kernels()
    }

    /// Compiles every `step`-th of the kernels of products with what precedes and follows them, from the one at `first` on, without a
    /// GPU, and returns the compiler's remarks, with names.
    ///
    /// # Errors
    /// As for [`compile`].
    #[cfg(feature = "cuda")]
    pub fn compile_fused(
        check: &crate::backend::cuda::Check,
        first: usize,
        step: usize,
    ) -> crate::Result<Vec<(String, String)>> {
        let samples = crate::ops::fused_samples().into_iter().skip(first).step_by(step);
        samples
            .map(|(name, source)| Ok((name, crate::backend::cuda::compile_source(source, check)?)))
            .collect()
    }

    /// Writes the elements that a kernel has computed, each to its place; see the operation.
    ///
    /// # Errors
    /// Returns [`Error::Shape`](crate::Error::Shape) if the state has too many elements.
    pub fn write<'s, T: crate::Element>(
        kernel: &'static str,
        state: &crate::State<T>,
        places: &crate::Tensor<'s, u32>,
        values: &crate::Tensor<'s, T>,
    ) -> crate::Result<()> {
        crate::ops::write(kernel, state, places, values)
    }

    pub use crate::kernel::{
        block::Block,
        call::{Argument, Call, Results},
        definition::{
            CalledByKernels, Compute, Constant, Definition, Extent, Index, Kernel, Kind, Rows, Uses, above,
        },
        lang,
        source::cuda_source,
    };
}

/// The error type of a `Result`, under any alias.
pub trait TryError {
    /// `E` of `Result<T, E>`.
    type Error;
}

impl<T, E> TryError for Result<T, E> {
    type Error = E;
}

/// The result of a function pointer type: there, elided lifetimes are those of the parameter.
pub trait Returns {
    /// `R` of `fn(A) -> R`.
    type Value;
}

impl<A, R> Returns for fn(A) -> R {
    type Value = R;
}

/// The return type of a segment's body whose outputs are passed elsewhere; `R` is the function's `Result`.
pub type Ran<R> = Result<(), <R as TryError>::Error>;

/// Checks that a name refers to the same variable before and after a macro call in a segment.
///
/// # Errors
/// Returns [`Error::Argument`](crate::Error::Argument) if the macro rebound the name: code after the segment
/// that uses it would see the older value.
pub fn same_variable(before: *const (), after: *const (), name: &str, mac: &str) -> crate::Result<()> {
    if before == after {
        return Ok(());
    }
    let reason = format!(
        "`{mac}!` rebinds `{name}`, which code after the segment uses: it would see the older value; write \
         `let {name} = …;` instead"
    );
    Err(crate::Error::Argument { op: "segment", reason })
}

/// Converts a user's error into ours, where only ours can be returned.
#[derive(Debug)]
pub struct CaptureFailed;

impl CaptureFailed {
    /// Returns whether a call succeeded.
    ///
    /// # Errors
    /// Returns our error as it is; for any other error, its message.
    pub fn check<T, E: std::fmt::Debug + 'static>(result: Result<T, E>) -> crate::Result<()> {
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
        let reason = slot.map(|error| format!("{error:?}")).unwrap_or_default();
        crate::Error::Config { what: "a call of `capture_all`".into(), reason }
    }
}
