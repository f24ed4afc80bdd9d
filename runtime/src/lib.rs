//! Models as ordinary functions, replayed as graphs.
//!
//! [`#[graphable]`](macro@graphable) splits a function at its `#[eager]` expressions. The code between them
//! becomes *segments*: each is recorded once per set of shapes and addresses, and from then on replayed
//! without running its Rust code. Code that a recording would get wrong does not compile.
//!
//! ```
//! use graphable::prelude::*;
//!
//! #[derive(Params)]
//! struct Model {
//!     up: Param<f32>,
//!     down: Param<f32>,
//! }
//!
//! #[graphable]
//! fn mlp(
//!     #[host] #[dims(B, 2)] x: &Tensor<f32>, // a slice at the call
//!     model: &Model,
//! ) -> Result<Tensor<f32>> {
//!     let h = ops::linear(x, &model.up)?;
//!     let h = #[eager]
//!     ops::relu(&h)?; // runs on every call, between two graphs
//!     ops::linear(&h, &model.down)
//! }
//!
//! # fn main() -> Result<()> {
//! let mut rt = Runtime::new(Device::best()?)?;
//! let model = Model {
//!     up: Param::new(&rt, &[3, 2], &[1.0, 0.0, 0.0, 1.0, -1.0, -1.0])?,
//!     down: Param::new(&rt, &[1, 3], &[1.0, 1.0, 5.0])?,
//! };
//! let mlp = MlpGraph::builder().bucket("B", Schedule::new([1, 4])).build(&mut rt)?;
//! mlp.capture_all(&mut rt, &model)?;
//! let recorded = rt.stats().recordings;
//!
//! let step = rt.step()?;
//! let y = mlp.call(&step, &[1.0, 2.0, -3.0, 1.0], &model)?;
//! assert_eq!(step.read(&y)?, [3.0, 11.0]);
//! drop((y, step));
//! assert_eq!(rt.stats().recordings, recorded); // both segments were replays
//! assert_eq!(MlpGraph::PLAN.segments(), 2);
//! # Ok(())
//! # }
//! ```
//!
//! # The parts
//!
//! - [`Runtime`] owns a device, its memory and the recordings; [`Runtime::step`] starts a step, and the
//!   tensors of a step cannot outlive it.
//! - [`Tensor`] and [`Scalar`] are values on the device. Only a [`Step`], or the [`Eager`] that `#[eager(cx)]`
//!   binds, can read them.
//! - [`Eager::keep`] returns a [`Kept`], which has no lifetime and outlives its step.
//! - [`Param`] and [`State`] are device memory with a stable address. [`derive(Params)`](derive@Params) builds
//!   models from them, and [`load`] fills models from files.
//! - [`join`] lets branches of a segment run in parallel; [`control`] has branches and loops that depend on values on
//!   the device, which `#[device]` on an `if`, a `while` or a `match` of a graph function writes.
//! - [`ops`] contains the operations, and [`#[kernel]`](macro@kernel) makes further ones of Rust functions.
//! - [`Mode`], [`Schedule`] and [`Batching`] configure a graph object through its builder. A [`Dispatcher`]
//!   chooses the graph of each batch, which [`Step::batch`] describes.
//! - [`Stats`] and [`Event`] report what happened; [`inspect`] shows what a runtime holds.
//!
//! # Devices
//!
//! [`Device::best`] picks the first NVIDIA GPU if one can be used, and the CPU otherwise. Nothing is linked: the
//! driver, NVRTC and cuBLASLt are located at run time, so one build serves both. On a GPU segments are CUDA graphs;
//! on the CPU they are recordings of an asynchronous stream that imitates a GPU's.
//!
//! # Limits
//!
//! One GPU and one stream per runtime, no autograd. Types guarantee
//! that device values cannot control a segment; the rule that host values from eager code need `#[key]` is a lint of
//! the macro. README.md lists all limits.

#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

// Generated code names the runtime by its crate name, in this crate too.
extern crate self as graphable;

#[doc(hidden)]
pub mod __private;
pub mod backend;
mod base;
pub mod custom;
mod error;
mod graph;
mod host;
mod kernel;
pub mod lora;
mod memory;
mod model;
mod observe;
pub mod ops;
mod program;
mod quantized;
mod record;
mod runtime;
mod tensor;
mod tree;
mod value;

pub use backend::cpu::CpuOptions;
#[cfg(feature = "cuda")]
#[cfg_attr(docsrs, doc(cfg(feature = "cuda")))]
pub use backend::cuda::{CacheFolder, CudaOptions};
pub use base::batch::BatchDescriptor;
pub use base::dtype::{DType, Element, Float, Integer, Number, Real};
pub use base::mode::{Mode, ModeSet, Support};
pub use base::numerics::Numerics;
pub use base::plan::{BoundaryMove, Plan, PlanItem, Site};
pub use base::rank::MAX_RANK;
pub use base::reason::FallbackReason;
pub use base::recording_id::RecordingId;
/// The version of cudarc with which this crate shares streams and memory.
#[cfg(feature = "cuda")]
#[cfg_attr(docsrs, doc(cfg(feature = "cuda")))]
pub use cudarc;
pub use error::{Error, MemoryFault, Result};
pub use graph::dispatch::buckets::{Packed, Schedule};
pub use graph::dispatch::{
    BatchGuard, BatchKey, BatchSizes, Batching, Capability, Capture, Dispatch, Dispatcher, Resolution,
};
pub use graph::inputs::HostSlice;
pub use graph::switches::GraphGuard;
pub use graph::{CaptureProgress, GraphBuilder, GraphObject, StaticInput};
pub use graphable_macros::{Carried, ConfigValue, GraphOutput, Params, graphable, kernel};
pub use half::{bf16, f16};
pub use host::boundary;
pub use host::capturable::Capturable;
pub use host::control;
#[cfg(feature = "cuda")]
#[cfg_attr(docsrs, doc(cfg(feature = "cuda")))]
pub use host::cuda::{CudaMemory, CudaOutput, CudaTensor};
pub use host::device_event::DeviceEvent;
pub use host::eager::{Eager, PendingRead, PinnedRead};
pub use host::join::{join, join_all, join3};
pub use host::pinned_log::LogReader;
pub use host::ragged::Ragged;
pub use host::step::{BorrowedPool, Step};
pub use kernel::call::Argument;
pub use kernel::random::Random;
pub use model::load;
pub use model::params::{ConfigValue, ParamInfo, ParamKind, ParamVisitor, Params};
pub use observe::caches::CacheStats;
pub use observe::event::{CopySlot, Event, RerecordReason, UnsharedReason, WaitReason};
pub use observe::hooks::{GraphId, HookId, Lifecycle, LifecycleEvent};
pub use observe::memory::{
    ArenaUsage, CaptureMemory, DeviceUsage, FunctionUsage, MemoryArena, MemoryStats, RecordingUsage,
};
pub use observe::stats::{CopiedSlot, Stats};
pub use program::Passes;
pub use quantized::BlockFormat;
pub use record::policy::limits::{Limits, OnMove};
pub use record::policy::{CallInfo, Moved, Policy, SegmentDecision, SegmentInfo};
pub use runtime::Runtime;
pub use runtime::device::Device;
pub use runtime::sleep::Sleep;
pub use tensor::contents::Contents;
pub use tensor::context::HostContext;
pub use tensor::dim::Dim;
pub use tensor::live_out::LiveOut;
pub use tensor::param::{Param, State};
pub use tensor::persistent::{Keep, Kept, KeptTensor};
pub use tensor::pinned::{PinnedBuffer, PinnedPart};
pub use tensor::pinned_log::PinnedLog;
pub use tensor::rng::{Rng, RngState};
pub use tensor::shape::{IntoDataShape, IntoDim, IntoShape, Shape};
pub use tensor::weight::{AsWeight, Weight, WeightOperand};
pub use tensor::{AsOperand, Operand, Scalar, Scope, Tensor};
pub use value::layout::{Layout, PaddedDims};
pub use value::live_in::{DeviceValue, Key, LiveIn};
pub use value::raw::RawTensor;

pub mod passes {
    //! Passes of your own over recordings: look at what a function launches, and replace launches by operations of yours.
    //!
    //! [`Pass`] is the trait, with an example; [`Passes::with`](crate::Passes::with) adds one to the passes of a
    //! [runtime](crate::Runtime::set_passes) or of a [graph](crate::GraphBuilder::passes). A replacement is made of a
    //! [`CustomOp`](crate::custom::CustomOp::replacement) or a [`kernel`].
    //!
    //! # Stability
    //!
    //! **What a program looks like may change.** The names of operations, which launches an operation consists of, the order of
    //! their inputs, and what built-in passes make of them are not covered by semantic versioning: a pass should leave alone what it does
    //! not recognise. The types and methods are stable.

    pub use crate::{
        backend::Constant,
        base::bound::Bound,
        custom::CustomReplacement,
        kernel::replacement::{KernelReplacement, kernel},
        program::users::{Launch, LaunchId, Nesting, NewLaunch, Pass, PassFailure, Program, TensorRef},
    };
}

pub mod inspect {
    //! Snapshots of a runtime, to print, draw or store.
    //!
    //! - [`GraphTree`], from [`Runtime::tree`](crate::Runtime::tree): every recording, its followers, the
    //!   values alive at each, and the memory it uses.
    //! - [`Topology`], from [`Runtime::topology`](crate::Runtime::topology): one recording as the device sees
    //!   it, with its kernels, copies and edges.
    //! - [`PlanReport`], from [`Plan::report`](crate::Plan::report): how a function is partitioned, and why.
    //!
    //! Each is a snapshot of plain fields that owns its data. Each can be printed as text; `to_dot` (of the
    //! first two) returns Graphviz, and `to_json` returns one JSON object; all implement `serde::Serialize`.
    //! The latter two need the feature `serde`.

    pub use crate::{
        graph::dispatch::plan_report::{PartKind, PlanPart, PlanReport},
        observe::inspect::{
            EdgeKind, GraphEdge, GraphNode, GraphTree, NodeKind, OutputId, OutputPlace, PassMade,
            PassRefusal, PassRefused, PassReport, Topology, TreeBlock, TreeFunction, TreeOutput,
            TreeRecording, TreeSegment, TreeState, TreeWaiting,
        },
    };
}

/// The names that a model file needs: `use graphable::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Capturable, Carried, ConfigValue, Device, Dim, Eager, Element, Error, Float, GraphOutput,
        HostContext, HostSlice, Key, Mode, Number, Param, Params, Ragged, Real, Result, Rng, Runtime, Scalar,
        Schedule, Scope, Shape, State, Step, Tensor, bf16, control, f16, graphable, join, join_all, join3,
        kernel, ops,
    };
}
