//! Passes, and which of them a runtime has.

use std::{fmt, sync::Arc};

use super::{Program, common::CommonSubexpressions, elementwise::FuseElementwise, products::FuseProducts};
use crate::{Error, Result, observe::inspect::PassReport};

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
/// | `common_subexpressions` | Equal operations on equal inputs are computed once; what reads the others' results reads the first one's. |
/// | `fuse_products` | What lies around a product of at most 16 rows that a kernel of ours computes, and not a library, becomes a part of that kernel: norms before it, products of the same input, and element-wise operations, rotations and rows of states after it. |
/// | `fuse_elementwise` | Element-wise operations and `#[kernel]`s that read what others have computed for the same element become one kernel. What only they read is never stored. |
#[derive(Clone, Debug)]
pub struct Passes(Vec<Arc<dyn Pass>>);

impl Default for Passes {
    /// All built-in ones.
    fn default() -> Self {
        Self(vec![
            Arc::new(CommonSubexpressions::default()),
            Arc::new(FuseProducts::default()),
            Arc::new(FuseElementwise::default()),
        ])
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

    /// Returns those of the passes that have these names, in the order of the names. Any order is right: none relies on another
    /// one. The default order fuses most.
    ///
    /// ```
    /// # use graphable::{Error, Passes};
    /// let passes = Passes::default().only(["fuse_elementwise", "common_subexpressions"])?;
    /// assert_eq!(passes.names().collect::<Vec<_>>(), ["fuse_elementwise", "common_subexpressions"]);
    /// assert!(matches!(passes.only(["fuse_products"]), Err(Error::Argument { .. })), "it is no longer among them");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::Argument`] if none of the passes has one of the names.
    pub fn only<'n>(self, names: impl IntoIterator<Item = &'n str>) -> Result<Self> {
        let find = |name| self.0.iter().find(|pass| pass.name() == name).cloned().ok_or(name);
        let chosen: std::result::Result<_, &str> = names.into_iter().map(find).collect();
        chosen.map(Self).map_err(|name| {
            let known: Vec<&str> = self.names().collect();
            let why = format!("there is no pass `{name}`; there are: {}", known.join(", "));
            Error::Argument { op: "Passes::only", why }
        })
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
