//! Passes, and which of them a runtime has.

use std::{fmt, sync::Arc};

use super::{Program, elementwise::FuseElementwise, products::FuseProducts};
use crate::observe::inspect::PassReport;

/// A rewriting of programs.
///
/// What the program computes stays the same, bit by bit.
pub(crate) trait Pass: fmt::Debug + Send + Sync {
    /// Its name, for switches and reports.
    fn name(&self) -> &'static str;

    /// Rewrites a program, and reports what it did and what it had to refuse.
    fn run(&self, program: &mut Program, report: &mut PassReport);
}

/// The passes over new recordings, in their order: see [`Runtime::set_passes`](crate::Runtime::set_passes).
///
/// The built-in ones change no value, bit by bit, so recordings made with different passes may be mixed.
///
/// | Name | What it does |
/// |---|---|
/// | `fuse_products` | What lies around a product of at most 16 rows that a kernel of ours computes, and not a library, becomes a part of that kernel: norms before it, products of the same input, and element-wise operations, rotations and rows of states after it. |
/// | `fuse_elementwise` | Element-wise operations and `#[kernel]`s that read what others have computed for the same element become one kernel. What only they read is never stored. |
#[derive(Clone, Debug)]
pub struct Passes(Vec<Arc<dyn Pass>>);

impl Default for Passes {
    /// All built-in ones.
    fn default() -> Self {
        Self(vec![Arc::new(FuseProducts::default()), Arc::new(FuseElementwise::default())])
    }
}

impl Passes {
    /// Returns no passes: recordings launch the operations of their bodies one by one.
    #[must_use]
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// Returns the passes without the one of that name, if it is among them.
    ///
    /// ```
    /// # use graphable::Passes;
    /// let passes = Passes::default().without("fuse_elementwise");
    /// assert!(passes.names().all(|name| name != "fuse_elementwise"));
    /// ```
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.0.retain(|pass| pass.name() != name);
        self
    }

    /// Returns the names of the passes, in their order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|pass| pass.name())
    }

    /// Rewrites a program with each.
    pub(crate) fn run(&self, program: &mut Program) -> Box<[PassReport]> {
        let run = |pass: &Arc<dyn Pass>| {
            let mut report = PassReport::new(pass.name());
            pass.run(program, &mut report);
            report
        };
        self.0.iter().map(run).collect()
    }
}
