//! For generated code. Nothing here is stable.

pub use bytemuck;

pub use crate::{
    driver::{Driver, InDriver},
    eager::{EagerOther, EagerResult, EagerTensors, Finish, Region},
    element::HostSlot,
    function::{Frame, Function, FunctionSpec, Options, StaticInput, Synthetic, SyntheticSlice},
    inputs::{Dim, DimsSpec, InputKind, InputSpec, Inputs},
    key::{DeviceValue, FromEager, Key, KeyWriter, LiveIn},
    load::{LoadParam, LoadParams, LoadState, Loader},
    mode::Support,
    output::{Decoder, Encoder, LiveOut},
    params::{ConfigValue, ParamField, ParamVisitor, Params},
    plan::{Plan, PlanItem, Site},
};

/// The error type of a `Result`, whatever alias it was written with.
pub trait TryError {
    /// `E` of `Result<T, E>`.
    type Error;
}

impl<T, E> TryError for Result<T, E> {
    type Error = E;
}

/// Turns a user's error into ours, where only ours can be returned.
#[derive(Debug)]
pub struct CaptureFailed;

impl CaptureFailed {
    /// Keeps the message.
    pub fn from_user<E: std::fmt::Debug>(error: E) -> crate::Error {
        crate::Error::Config { what: "a call of `capture_all`".into(), why: format!("{error:?}") }
    }
}
