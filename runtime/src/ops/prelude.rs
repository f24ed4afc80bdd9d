//! The names that the `operation.rs` of every operation uses.

pub(super) use std::hash::{Hash as _, Hasher};

pub(super) use crate::backend::{
    Launch, Operation,
    cpu::{Access, Fault},
};
#[cfg(feature = "cuda")]
pub(super) use crate::backend::{View, cuda::kernels::Submit};
