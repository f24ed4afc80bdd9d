//! The driver's objects, owned by types that cannot be misused: nothing above this module is unsafe except
//! launching, where addresses are trusted.

mod bound;
mod capture_dependencies;
mod conditional;
mod context;
mod error;
mod event;
mod graph;
mod memory;
mod module;
mod once;
mod signature;
mod single_kernel_graph;
mod stream;
mod table;
mod topology;
mod types;

pub(crate) use bound::{Bound, BoundForCall};
pub(crate) use capture_dependencies::CaptureDependencies;
pub(crate) use conditional::{ConditionalHandle, ConditionalKind, GraphRef, Node};
pub(crate) use context::{Context, device_count};
pub(crate) use event::Event;
pub(crate) use graph::{Exec, Graph, KernelNode, Updated};
pub(crate) use memory::{Pinned, Pool, VirtualRange};
pub(crate) use module::{Function, Module, SHARED_WITHOUT_REQUEST};
pub(crate) use single_kernel_graph::SingleKernelGraph;
pub(crate) use stream::Stream;
pub(crate) use table::{cuda_major, cuda_version};
