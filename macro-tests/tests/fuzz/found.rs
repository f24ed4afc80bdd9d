//! Inputs that an expansion once failed on.

use crate::input::Entry;

/// Entry, arguments and item of each.
pub(crate) const FOUND: &[(Entry, &str, &str)] = &[];
