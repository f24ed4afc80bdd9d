//! The public operations, as `ui-tests/tests/public_api` pins them.

use std::collections::BTreeSet;

const PINNED: &str = include_str!("../../../ui-tests/tests/public_api/graphable.txt");

/// The names of all functions of `graphable::ops`.
pub(crate) fn names() -> BTreeSet<&'static str> {
    let (mut inside, mut names) = (false, BTreeSet::new());
    for line in PINNED.lines() {
        if let Some(module) = line.strip_prefix("// graphable::") {
            inside = module == "ops" || module.starts_with("ops::");
        }
        if inside {
            names.extend(function(line));
        }
    }
    assert!(names.len() > 100, "operations are no longer found in the pinned surface: {names:?}");
    names
}

/// The function that a line declares, exports under another path, or says to be made by a macro.
fn function(line: &'static str) -> Option<&'static str> {
    let rest = match line.strip_prefix("pub use ") {
        Some(used) => used.rsplit(" as ").next()?,
        None => line.strip_prefix("pub const fn ").or(line.strip_prefix("pub fn "))?,
    };
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let name = &rest[..end];
    name.starts_with(|c: char| c.is_ascii_lowercase()).then_some(name)
}
