//! Control flow on the device: branches and loops of a segment that depend on values on the device.
//!
//! The code of every body runs once, on the host, and *describes* what the body does; which bodies run, and how
//! often, the device decides at each replay. Inside a segment this becomes a conditional node of its graph, so no
//! value travels to the host. Everywhere else (in warm-up, without graphs, in an eager region, between calls), the
//! host waits for the value and runs what it selects: the same operations in the same order.
//!
//! ```
//! use graphable::prelude::*;
//!
//! /// Halves `x` until no element is above 1.
//! #[graphable]
//! fn halved(#[host] #[dims(B)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
//!     control::while_loop(
//!         100,
//!         x.clone(),
//!         |x| ops::gt(&ops::max(x, 0)?, 1.0),
//!         |x| ops::scale(&x, 0.5),
//!     )
//! }
//!
//! # fn main() -> Result<()> {
//! let mut rt = Runtime::new(Device::cpu())?;
//! let halved = HalvedGraph::builder().build(&mut rt)?;
//! for x in [[8.0, 2.0], [0.5, 1.0], [3.0, 1.0]] {
//!     let step = rt.step()?;
//!     let y = halved.call(&step, &x)?;
//!     let halvings = f32::max(x[0], x[1]).log2().ceil().max(0.0);
//!     assert_eq!(step.read(&y)?, x.map(|x| x / 2f32.powf(halvings)));
//! }
//! assert_eq!(rt.stats().recordings, 1); // One graph, whatever the values are.
//! # Ok(())
//! # }
//! ```
//!
//! **Results.** Bodies return values on the device ([`Carried`]): tensors, scalars, tuples, arrays and vectors of
//! them, and structs that derive it. All bodies of a node return the same: element types, shapes, padding, and numbers of values. The results
//! are tensors of their own. A tensor of a body that does not leave it as its result is invalid after it.
//!
//! **Effects.** Bodies may write [`State`](crate::State), draw from an [`Rng`](crate::Rng), contain further control
//! flow, and [`join`](crate::join) branches. A body that does not run writes and draws nothing. What its Rust code
//! does to host values happens whether or not the body runs, so it should do nothing to them; reading values from the
//! device, allocating state and calling graphs are [`Error::InsideBody`].
//!
//! **Memory.** Each body starts from the memory that is free before the node. A tensor from outside that is dropped
//! in a body is freed after the node.
//!
//! **GPUs** have conditional nodes with drivers from CUDA 12.4. With an older one, recording such a segment is
//! [`Error::NoConditionalNodes`], unless the builder allows to run it without a graph
//! ([`eager_conditionals`](crate::GraphBuilder::eager_conditionals)). Recordings with conditional nodes share no
//! executables.
//!
//! If rustc asks for the type of the error, end a body with `Ok::<_, Error>(…)`.

mod carried;
mod cond;
mod node;
mod select;
mod switch;
mod while_loop;

pub use carried::Carried;
pub(crate) use carried::sealed;
#[doc(hidden)]
pub use carried::{Description, NextTensor};
pub use cond::cond;
pub use select::{Predicate, SwitchIndex};
pub use switch::switch;
pub(super) use while_loop::repeat;
pub use while_loop::{DEFAULT_LIMIT, while_loop};

#[cfg(doc)]
use crate::Error;
