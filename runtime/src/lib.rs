//! Graph-capturable kernels in Rust.
//!
//! `#[graphable]` turns an ordinary model function into one that replays as graphs: what cannot be
//! captured does not compile, `#[eager]` calls are partition boundaries, and the buffers that must keep
//! their address are managed for you.

#![deny(unsafe_code)]

// Generated code names the runtime by its crate name, in this crate's own tests too.
#[cfg(test)]
extern crate self as graphable;

#[doc(hidden)]
pub mod __private;
pub mod backend;
mod bucket;
mod core;
mod device;
mod driver;
mod eager;
mod element;
mod error;
mod event;
mod function;
mod inputs;
mod key;
mod layout;
pub mod load;
mod log;
mod mode;
pub mod ops;
mod output;
mod param;
mod params;
mod plan;
mod pool;
mod ragged;
mod runtime;
mod step;
mod tensor;
mod tree;

pub use bucket::Schedule;
pub use device::Device;
pub use eager::{Eager, PendingRead};
pub use element::{DType, Element, Float, Number};
pub use error::{Error, Result};
pub use event::{CopySlot, Event, FallbackReason, RerecordReason, Stats};
pub use function::CaptureProgress;
pub use graphable_macros::{ConfigValue, GraphOutput, Params, graphable};
pub use half::{bf16, f16};
pub use inputs::HostSlice;
pub use key::{DeviceValue, Key, LiveIn};
pub use layout::{Layout, MAX_RANK, Marks};
pub use mode::{Mode, Support};
pub use output::LiveOut;
pub use param::{Param, State};
pub use params::{ConfigValue, ParamInfo, ParamKind, ParamVisitor, Params};
pub use plan::{Plan, PlanItem, Site};
pub use ragged::Ragged;
pub use runtime::Runtime;
pub use step::Step;
pub use tensor::{AsOperand, Operand, RawTensor, Scalar, Scope, Tensor};

/// What a model file needs: `use graphable::prelude::*;`.
pub mod prelude {
    pub use crate::{
        ConfigValue, Device, Eager, Element, Error, Float, GraphOutput, HostSlice, Key, Mode, Number, Param,
        Params, Ragged, Result, Runtime, Scalar, Schedule, Scope, State, Step, Tensor, bf16, f16, graphable,
        ops,
    };
}
