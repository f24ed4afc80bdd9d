//! Passes, and which of them a runtime has.

use std::{
    fmt,
    sync::{Arc, LazyLock},
};

use super::{
    Program,
    common::CommonSubexpressions,
    early::LoadEarly,
    elementwise::FuseElementwise,
    products::FuseProducts,
    users::{self, Dependents, Target, UserPass},
};
use crate::{
    Error, Result,
    observe::inspect::PassReport,
    value::{key::KeyWriter, owned::next_id},
};

/// The built-in passes, in their order.
fn built_in() -> Vec<Arc<dyn Pass>> {
    vec![
        Arc::new(CommonSubexpressions::default()),
        Arc::new(FuseProducts::default()),
        Arc::new(FuseElementwise::default()),
        Arc::new(LoadEarly),
    ]
}

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
/// The built-in ones change no value, bit by bit.
///
/// | Name | What it does |
/// |---|---|
/// | `common_subexpressions` | Equal operations on equal inputs are computed once; what reads the others' results reads the first one's. |
/// | `fuse_products` | What lies around a product of at most 16 rows that a kernel of ours computes, and not a library, becomes a part of that kernel: norms before it, products of the same input, and element-wise operations, rotations and rows of states after it. |
/// | `fuse_elementwise` | Element-wise operations and `#[kernel]`s that read what others have computed for the same element become one kernel. What only they read is never stored. |
/// | `load_early` | Kernels that `fuse_products` has made ask for their weights before the kernels before them have ended, if these are [`Param`](crate::Param)s, which no operation writes. |
///
/// A pass of yours is added by [`with`](Self::with); see [`passes::Pass`](crate::passes::Pass).
///
/// Recordings have the passes in their keys: with others, a call warms up and records anew. A pass of yours is known by the call
/// of `with` that added it, so clone `Passes` instead of adding it again.
#[derive(Clone, Default)]
pub struct Passes(
    /// `None` for all built-in ones.
    Option<Arc<[Listed]>>,
);

/// A pass in a list.
#[derive(Clone)]
struct Listed {
    /// In keys: one that no other pass of the process has.
    id: u64,
    pass: AnyPass,
}

#[derive(Clone)]
enum AnyPass {
    BuiltIn(Arc<dyn Pass>),
    Users(Arc<UserPass>),
}

/// The effects of passes on a program.
#[derive(Debug, Default)]
pub(crate) struct Rewritten {
    pub(crate) reports: Box<[PassReport]>,
    /// The values that depend on launches that passes with a bound replaced.
    pub(crate) dependents: Vec<Dependents>,
}

impl Listed {
    fn name(&self) -> &'static str {
        match &self.pass {
            AnyPass::BuiltIn(pass) => pass.name(),
            AnyPass::Users(pass) => pass.name,
        }
    }
}

impl Passes {
    /// Returns no passes: recordings launch the operations of their bodies one by one.
    #[must_use]
    pub fn none() -> Self {
        Self::of(Vec::new())
    }

    /// Returns the passes without those of that name, if there are any.
    ///
    /// ```
    /// # use graphable::Passes;
    /// let passes = Passes::default().without("fuse_elementwise");
    /// assert!(passes.names().all(|name| name != "fuse_elementwise"));
    /// ```
    #[must_use]
    pub fn without(self, name: &str) -> Self {
        let left = self.all().iter().filter(|listed| listed.name() != name);
        Self::of(left.cloned().collect())
    }

    /// Returns the passes with one of yours, as the last: it sees what the others have made, such as `add+silu` for two
    /// operations.
    #[must_use]
    pub fn with(self, pass: impl users::Pass) -> Self {
        let at = self.all().len();
        self.with_at(at, pass)
    }

    /// Returns the passes with one of yours behind the first `at` of them, or behind all if they are fewer. The one at 0 sees the
    /// operations as the function calls them.
    ///
    /// ```
    /// # use graphable::{Passes, passes::{Pass, PassFailure, Program}};
    /// struct Counts;
    ///
    /// impl Pass for Counts {
    ///     fn name(&self) -> &'static str {
    ///         "counts"
    ///     }
    ///
    ///     fn run(&self, program: &Program<'_>) -> Result<(), PassFailure> {
    ///         program.note(format_args!("{} launches", program.launches().len()));
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let passes = Passes::default().with_at(0, Counts);
    /// assert_eq!(passes.names().next(), Some("counts"));
    /// ```
    #[must_use]
    pub fn with_at(self, at: usize, pass: impl users::Pass) -> Self {
        let mut all = self.all().to_vec();
        let pass = AnyPass::Users(Arc::new(UserPass::new(pass)));
        all.insert(at.min(all.len()), Listed { id: USERS + next_id(), pass });
        Self::of(all)
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
        let find = |name| self.all().iter().find(|listed| listed.name() == name).cloned().ok_or(name);
        let chosen: std::result::Result<_, &str> = names.into_iter().map(find).collect();
        chosen.map(Self::of).map_err(|name| {
            let known: Vec<&str> = self.names().collect();
            let reason = format!("there is no pass `{name}`; there are: {}", known.join(", "));
            Error::Argument { op: "Passes::only", reason }
        })
    }

    /// Returns the names of the passes, in their order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.all().iter().map(Listed::name)
    }

    /// All built-in ones are not a list, so that keys of most programs are no longer for it.
    fn of(all: Vec<Listed>) -> Self {
        let ids = |all: &[Listed]| all.iter().map(|listed| listed.id).collect::<Vec<u64>>();
        Self((ids(&all) != ids(default_list())).then(|| all.into()))
    }

    fn all(&self) -> &[Listed] {
        match &self.0 {
            Some(list) => list,
            None => default_list(),
        }
    }

    /// Writes what a key has of them: nothing for the built-in ones.
    #[inline]
    pub(crate) fn write_key(&self, key: &mut KeyWriter) {
        if let Some(list) = &self.0 {
            // No other word at this place of a key begins with these bits: they are counts, or switches of the numerics.
            key.word(1 << 62 | list.len() as u64);
            list.iter().for_each(|listed| key.word(listed.id));
        }
    }

    /// Rewrites a program with each.
    ///
    /// # Errors
    /// Returns [`Error::PassFailed`](crate::Error::PassFailed), and errors of the device.
    pub(crate) fn run(&self, program: &mut Program, target: &mut Target<'_>) -> Result<Rewritten> {
        let mut dependents = Vec::new();
        let run = |listed: &Listed| {
            let mut report = PassReport::new(listed.name());
            match &listed.pass {
                AnyPass::BuiltIn(pass) => pass.run(program, &mut report),
                AnyPass::Users(pass) => dependents.extend(pass.run(program, target, &mut report)?),
            }
            Ok(report)
        };
        let reports = self.all().iter().map(run).collect::<Result<_>>()?;
        Ok(Rewritten { reports, dependents })
    }
}

impl fmt::Debug for Passes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passes")?;
        f.debug_list().entries(self.names()).finish()
    }
}

/// The first id of a user's pass; those of built-in ones are their places.
const USERS: u64 = 1 << 32;

fn default_list() -> &'static [Listed] {
    static ALL: LazyLock<Vec<Listed>> = LazyLock::new(|| {
        let listed = |(id, pass)| Listed { id, pass: AnyPass::BuiltIn(pass) };
        (0..).zip(built_in()).map(listed).collect()
    });
    &ALL
}
