//! Recordings: running a body, capturing what it launches, and replaying it.

pub(crate) mod aliasing;
pub(crate) mod audit;
pub(crate) mod branches;
pub(crate) mod command_log;
pub(crate) mod copied_inputs;
pub(crate) mod exec_reuse;
pub(crate) mod last_use;
pub(crate) mod launch;
pub(crate) mod outputs;
pub(crate) mod relocated;
pub(crate) mod run;
pub(crate) mod state_snapshot;
pub(crate) mod stored_outputs;

pub(crate) use run::{Run, RunKind};

use crate::{
    core::{Core, Phase, Slot, decide},
    memory::{Alive, Origin, Placement},
};
use {command_log as tape, exec_reuse as share, state_snapshot as save};
