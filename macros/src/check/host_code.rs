//! Checks of the device statements of a function with boundaries.

use syn::Ident;

use super::lints;
use crate::{
    diag::{Errors, Place},
    model::HostCode,
};

/// Checks every run of device statements. Errors about a run are reported at its position among those of the
/// function.
pub(crate) fn check(code: &HostCode, params: &[&Ident], errors: &mut Errors) {
    let found: Vec<(Place, Errors)> = code
        .runs
        .iter()
        .map(|run| {
            let mut errors = Errors::default();
            lints::segment(&run.stmts, params, &mut errors);
            (run.report, errors)
        })
        .collect();
    errors.insert(found);
}
