//! Dependences that prevent code motion: data that a region shares with the code that it would cross, and
//! jumps.

use proc_macro2::{Ident, TokenStream};
use quote::ToTokens;
use syn::{Expr, Stmt};

use super::{
    super::{
        alias::Names,
        evaluation_order::{Check, overlap, overlapping},
    },
    Part,
};
use crate::facts::{classify, jumps, operations, uses::Use};

/// The reason why a region and a statement keep their order. The names of hazards are for a region that would
/// move up, over a statement before it; for a move down, the first two are exchanged.
pub(super) enum Conflict {
    /// The statement binds a name that the region uses.
    ReadAfterWrite(Ident),
    /// The statement uses or binds a name that the region binds.
    WriteAfterRead(Ident),
    /// One of them changes a variable that both use.
    WriteAfterWrite(Ident),
    /// One of them takes a value that both use.
    Taken(Ident),
    /// Both reach memory that may change, by these names.
    State(Ident, String),
    /// The statement may end the function.
    Leaves(TokenStream),
    /// The statement holds something until the end of the block.
    Holds(Ident),
    /// The region leaves its block.
    Jumps(Ident),
    /// The region's value is held until the end of the block.
    Held(Ident),
    /// The region uses a macro of the function.
    Hidden(Ident),
}

impl Conflict {
    /// Returns the position, the reason and the remedy for a region that is to run `place` ("before",
    /// "after") other code.
    pub(super) fn explained(self, word: &str, place: &str) -> (TokenStream, String, String) {
        (self.at(), self.message(word, place), self.help(word))
    }

    fn at(&self) -> TokenStream {
        match self {
            Self::Leaves(statement) => statement.clone(),
            Self::ReadAfterWrite(name)
            | Self::WriteAfterRead(name)
            | Self::WriteAfterWrite(name)
            | Self::Taken(name)
            | Self::State(name, _)
            | Self::Holds(name)
            | Self::Jumps(name)
            | Self::Held(name)
            | Self::Hidden(name) => name.to_token_stream(),
        }
    }

    fn message(&self, word: &str, place: &str) -> String {
        let early = word == "early";
        let over = format!("the code that `{word}` moves this region {place}");
        match self {
            Self::ReadAfterWrite(name) if early => format!("`{name}` has its value from {over}"),
            Self::ReadAfterWrite(name) => format!("`{name}` means something else after {over}"),
            Self::WriteAfterRead(name) if early => {
                format!("`{name}` is also what a region calls its value that `early` moves before this")
            }
            Self::WriteAfterRead(name) => {
                format!("this needs `{name}`, and `late` moves the code that makes it after this")
            }
            Self::WriteAfterWrite(name) => format!("`{name}` changes, in this region or in {over}"),
            Self::Taken(name) => format!("`{name}` is taken by value, in this region or in {over}"),
            Self::State(name, other) if name == other => {
                format!("`{name}` may hold state, and {over} uses it too")
            }
            Self::State(name, other) => {
                format!("`{name}` may lead to state, and so may `{other}`, in {over}")
            }
            Self::Leaves(_) => format!("this may end the function, and `{word}` moves a region {place} it"),
            Self::Holds(name) => {
                format!("`{name}` is held until the end of its block, and `{word}` moves a region {place} it")
            }
            Self::Jumps(_) => {
                format!(
                    "`{word}` cannot move a region that leaves by `return`, `break`, `continue` or `else`"
                )
            }
            Self::Held(name) => {
                format!(
                    "`{name}` is held until the end of its block, and `{word}` changes what runs meanwhile"
                )
            }
            Self::Hidden(_) => {
                format!(
                    "`{word}` cannot move a region with a macro of this function: what it uses is not seen"
                )
            }
        }
    }

    fn help(&self, word: &str) -> String {
        let early = word == "early";
        let remove = format!("remove `{word}`");
        let renamed = |name: &Ident| format!("{remove}, or give one of the two `{name}` another name");
        match self {
            Self::ReadAfterWrite(_) if early => {
                format!("{remove}: this region depends on device work above it")
            }
            Self::ReadAfterWrite(name) => renamed(name),
            Self::WriteAfterRead(name) if early => renamed(name),
            Self::WriteAfterRead(_) => format!("{remove}: device work below the region depends on it"),
            Self::WriteAfterWrite(_) => format!("{remove}: the order of the two matters"),
            Self::Taken(name) => format!("pass `&{name}`, or remove `{word}`"),
            Self::State(..) => {
                format!("{remove}: writes and reads of state keep their order")
            }
            Self::Leaves(_) if early => {
                format!("{remove} from the region: it would run where this ends the function")
            }
            Self::Leaves(_) => {
                format!("{remove} from the region: it would not run where this ends the function")
            }
            Self::Holds(_) => format!("end its scope with a block, or remove `{word}` from the region"),
            Self::Jumps(_) => format!("{remove}, or give the region a value and leave after it"),
            Self::Held(name) => {
                let plain = name.to_string();
                format!("{remove}, or call it `{}` if it guards nothing", plain.trim_start_matches('_'))
            }
            Self::Hidden(_) => format!("write out the macro, or remove `{word}`"),
        }
    }
}

impl Names {
    /// Returns the reason why the region cannot be moved at all.
    pub(super) fn stays(&self, region: &Stmt, word: &Ident) -> Option<Conflict> {
        let diverges =
            matches!(region, Stmt::Local(l) if l.init.as_ref().is_some_and(|i| i.diverge.is_some()));
        if diverges || jumps::leaves(region) {
            return Some(Conflict::Jumps(word.clone()));
        }
        if self.calls_own_macro(region) {
            return Some(Conflict::Hidden(word.clone()));
        }
        let Stmt::Local(local) = region else { return None };
        classify::guard_name(local).map(|name| Conflict::Held(name.clone()))
    }

    /// Returns whether the statement may keep the region from running, or holds something while it runs.
    pub(super) fn leaves(&self, other: &Part, region: &Part) -> Option<Conflict> {
        if let Stmt::Local(local) = &other.stmt
            && let Some(name) = classify::guard_name(local)
        {
            return Some(Conflict::Holds(name.clone()));
        }
        // A call without a value exists for its effect, or for the error that it returns.
        let called = match &other.stmt {
            Stmt::Expr(e @ (Expr::Call(_) | Expr::MethodCall(_) | Expr::Try(_)), Some(_)) => Some(e),
            Stmt::Local(l) if other.binds.is_empty() => l.init.as_ref().map(|i| &*i.expr),
            _ => None,
        };
        let called = called.map(|e| if let Expr::Try(t) = e { &*t.expr } else { e });
        let protects =
            called.is_some_and(|e| !operations::is_operation(e)) && overlap(&other.uses, &region.uses);
        let leaves = Check::of(&other.stmt).explicit || protects;
        leaves.then(|| Conflict::Leaves(other.stmt.to_token_stream()))
    }

    /// Returns the reason why the two keep their order, if there is one.
    pub(super) fn conflict(&self, other: &Part, region: &Part) -> Option<Conflict> {
        for name in &other.binds {
            if let Some(u) = region.uses.get(&name.to_string()) {
                return Some(Conflict::ReadAfterWrite(u.ident.clone()));
            }
        }
        for name in &region.binds {
            let bound = other.binds.iter().find(|b| *b == name);
            let used = other.uses.get(&name.to_string()).map(|u| &u.ident);
            if let Some(at) = used.or(bound) {
                return Some(Conflict::WriteAfterRead(at.clone()));
            }
        }
        for (name, u) in &region.uses.0 {
            let Some(v) = other.uses.get(name) else { continue };
            let changes = |u: &Use| {
                let lent = self.is_exclusive(name) && u.by_value;
                let may = (u.touched || u.in_macro) && (self.is_mutable(name) || self.is_exclusive(name));
                u.assigned || u.through || lent || may
            };
            if changes(u) || changes(v) {
                return Some(Conflict::WriteAfterWrite(u.ident.clone()));
            }
            let takes = |u: &Use| u.by_value || u.parted() || u.taken;
            let whole = u.by_value || v.by_value;
            if self.is_owned(name) && (takes(u) || takes(v)) && (whole || overlapping(u, v)) {
                return Some(Conflict::Taken(u.ident.clone()));
            }
        }
        self.shared_state(other, region)
    }

    /// Memory that may change and that both reach.
    fn shared_state(&self, other: &Part, region: &Part) -> Option<Conflict> {
        for (name, u) in &region.uses.0 {
            let mine = self.roots(name);
            for (theirs, v) in &other.uses.0 {
                // Two fields of one struct are two states.
                let apart = name == theirs && !overlapping(u, v);
                if !apart && !mine.is_disjoint(&self.roots(theirs)) {
                    return Some(Conflict::State(u.ident.clone(), theirs.clone()));
                }
            }
        }
        None
    }
}
