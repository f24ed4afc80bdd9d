//! Host code: eager regions, panics, and mistakes that are found at run time.

mod panics;
mod regions;
mod runtime_checks;
mod stale;
