//! The types of a body: those stated by its tokens, and those that follow.
//!
//! Types that only rustc knows, of parameters and results of other kernels and of constants from outside,
//! remain open: the text for the device names them, and the runtime fills them in.

mod check;
mod infer;
mod rows;
mod table;
mod views;

pub(super) use table::{Inferred, Open, Types};

use super::model::{Body, Header};
use crate::diag::Errors;

/// The types of all expressions; errors where they do not agree.
pub(super) fn types(header: &Header, body: &Body, errors: &mut Errors) -> Types {
    let mut inference = infer::Inference::new(header, body, errors);
    inference.run();
    let infer::Inference { mut types, checks, .. } = inference;
    types.default_integers();
    check::check(&types, &checks, errors);
    types
}
