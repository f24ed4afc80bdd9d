//! Recordings: running a body, capturing its launches, and replaying them.
//!
//! [`Recorder`] holds the current run. The components that an operation needs, on its way to the device or
//! into a capture, are borrowed together as a [`Launcher`]; those of a replay, which also include the tree,
//! as a [`Replayer`].

mod aliasing;
mod audit;
mod bodies;
mod body;
mod branches;
mod call;
mod command_log;
mod copied_inputs;
mod exec_reuse;
mod finish;
mod fork;
mod last_use;
mod launch;
mod nesting;
mod outputs;
mod overwrite;
mod persist;
pub(crate) mod policy;
mod recorder;
mod relocated;
mod replay;
mod run;
mod run_commands;
mod snapshots;
mod state_snapshot;
mod stored_outputs;
mod stream;
mod waits;

pub(crate) use aliasing::Overlaps;
pub(crate) use bodies::NodeStart;
pub(crate) use body::{BodyRunner, NewRun};
pub(crate) use call::{ActiveCall, CallHistory, CallState, Phase, ShapeCount, Symbol};
pub(crate) use copied_inputs::can_copy;
pub(crate) use launch::Launcher;
pub(crate) use overwrite::Overwrite;
pub(crate) use recorder::Recorder;
pub(crate) use relocated::Relocations;
pub(crate) use replay::Replayer;
pub(crate) use run::RunKind;
pub(crate) use stream::Stream;
pub(crate) use waits::{Candidate, WarmUp};
