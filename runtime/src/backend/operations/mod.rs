//! The built-in operations: parameters, and the code that runs for them on each device.
//!
//! Inputs and outputs are listed in the order of the [`Launch`](super::Launch). Unless said otherwise the output is
//! contiguous, inputs may have any strides (0 included), and element-wise inputs already have the output's shape.

mod elementwise;

pub(crate) use elementwise::{Binary, CAST, Compare, SELECT, Unary};

/// The names that most operations need for both devices.
mod prelude {
    pub(super) use std::hash::{Hash as _, Hasher};

    #[cfg(feature = "cuda")]
    pub(super) use crate::backend::cuda::kernels::{self as cuda, Submit};
    pub(super) use crate::backend::{
        Launch, Op, Operation,
        cpu::{Access, Fault, kernels as cpu},
    };

    /// The result of code for the CPU.
    pub(super) type Ran = Result<(), Fault>;
}
