//! Graph objects: their specification, static inputs, calls, and captures ahead of time.

mod batches;
mod bind;
mod builder;
mod call;
mod capture_all;
mod choose;
pub(crate) mod dispatch;
mod fill;
pub(crate) mod inputs;
mod jobs;
mod listed;
mod object;
mod options;
pub(crate) mod spec;
mod static_inputs;
pub(crate) mod switches;
mod synthetic;

pub use builder::GraphBuilder;
pub use call::{GraphCall, call};
pub use capture_all::{CaptureProgress, capture_all, silent};
pub use fill::StaticInput;
pub use object::GraphObject;
pub use options::Options;
pub use spec::FunctionSpec;
pub use synthetic::{Synthetic, SyntheticSlice};
