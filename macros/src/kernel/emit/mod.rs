//! From the typed model to the two texts. Nothing here fails.

mod cuda;
mod definition;
mod index;
mod native;
mod operation;
mod random;
mod row;

pub(super) use operation::{kernel, without_body};
