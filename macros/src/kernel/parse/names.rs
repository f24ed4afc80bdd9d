//! Names in scope.

use quote::ToTokens;
use syn::{Ident, ItemConst, Lifetime, Path};

use super::header;
use crate::{
    diag::{Code, Errors},
    kernel::model::{Constant, Local, LocalId, Scalar, TypeId},
};

/// The meaning of names at one point of a body, and the names so far.
#[derive(Default)]
pub(super) struct Names {
    pub(super) locals: Vec<Local>,
    pub(super) callees: Vec<Path>,
    pub(super) constants: Vec<Constant>,
    pub(super) items: Vec<ItemConst>,
    /// The variables in scope, the newest last.
    scope: Vec<LocalId>,
    /// The loops around, the innermost last.
    loops: Vec<(usize, Option<Lifetime>)>,
    counted: usize,
    /// Counters of loops, and other variables that can be the bound of one.
    bounds: Vec<LocalId>,
    /// The first variable of the closure around.
    closure: Option<LocalId>,
}

/// The loops and the closure around a closure, which are restored at its end.
pub(super) struct Outside {
    loops: Vec<(usize, Option<Lifetime>)>,
    closure: Option<LocalId>,
}

impl Names {
    pub(super) fn bind(&mut self, name: Ident, mutable: bool, ty: TypeId) -> LocalId {
        self.locals.push(Local { name, mutable, ty, row: None, view: None });
        self.scope.push(self.locals.len() - 1);
        self.locals.len() - 1
    }

    pub(super) fn local(&self, path: &Path) -> Option<LocalId> {
        let name = path.get_ident()?;
        self.scope.iter().rev().copied().find(|id| self.locals[*id].name == *name)
    }

    /// A place in the scope, to return to.
    pub(super) fn mark(&self) -> usize {
        self.scope.len()
    }

    pub(super) fn leave(&mut self, mark: usize) {
        self.scope.truncate(mark);
    }

    pub(super) fn enter_loop(&mut self, label: Option<Lifetime>) -> usize {
        let number = self.counted;
        self.counted += 1;
        self.loops.push((number, label));
        number
    }

    pub(super) fn leave_loop(&mut self) {
        self.loops.pop();
    }

    /// The loop that a `break` or `continue` means.
    pub(super) fn target(&self, label: Option<&Lifetime>) -> Option<usize> {
        let mut loops = self.loops.iter().rev();
        let found = match label {
            None => loops.next(),
            Some(label) => loops.find(|(_, own)| own.as_ref().is_some_and(|own| own.ident == label.ident)),
        };
        found.map(|(number, _)| *number)
    }

    pub(super) fn note_bound(&mut self, local: LocalId) {
        self.bounds.push(local);
    }

    pub(super) fn is_bound(&self, local: LocalId) -> bool {
        self.bounds.contains(&local)
    }

    pub(super) fn has_loops(&self) -> bool {
        self.counted > 0
    }

    pub(super) fn in_closure(&self) -> bool {
        self.closure.is_some()
    }

    /// Begins a closure. It sees the variables around it, and leaves no loop around it.
    pub(super) fn enter_closure(&mut self) -> Outside {
        let outer = Outside { loops: std::mem::take(&mut self.loops), closure: self.closure };
        self.closure = Some(self.locals.len());
        outer
    }

    pub(super) fn leave_closure(&mut self, Outside { loops, closure }: Outside) {
        (self.loops, self.closure) = (loops, closure);
    }

    /// Returns whether a closure uses a variable around it.
    pub(super) fn is_captured(&self, local: LocalId) -> bool {
        self.closure.is_some_and(|first| local < first)
    }

    /// Counts a use of the values of a row; in a loop there are several.
    pub(super) fn use_row(&mut self, local: LocalId) {
        let uses = if self.loops.is_empty() { 1 } else { 2 };
        if let Some(count) = &mut self.locals[local].row {
            *count += uses;
        }
    }

    /// Takes back such a use.
    pub(super) fn forget_use(&mut self, local: LocalId) {
        let uses = if self.loops.is_empty() { 1 } else { 2 };
        if let Some(count) = &mut self.locals[local].row {
            *count = count.saturating_sub(uses);
        }
    }

    pub(super) fn callee(&mut self, path: &Path) -> usize {
        let shown = path.to_token_stream().to_string();
        let known = self.callees.iter().position(|other| other.to_token_stream().to_string() == shown);
        known.unwrap_or_else(|| {
            self.callees.push(path.clone());
            self.callees.len() - 1
        })
    }

    pub(super) fn constant(&mut self, path: &Path) -> usize {
        let shown = path.to_token_stream().to_string();
        let known = self.constants.iter().position(|c| c.path.to_token_stream().to_string() == shown);
        known.unwrap_or_else(|| {
            let item = self.items.iter().find(|item| path.is_ident(&item.ident));
            let scalar = match item {
                Some(item) => header::scalar(&item.ty, &mut Errors::default()),
                None => standard(path),
            };
            self.constants.push(Constant { path: path.clone(), scalar });
            self.constants.len() - 1
        })
    }

    /// A `const` of the body.
    pub(super) fn item(&mut self, item: &ItemConst, errors: &mut Errors) {
        if header::scalar(&item.ty, errors).is_none() {
            return;
        }
        if let Some(attr) = item.attrs.iter().find(|attr| !attr.path().is_ident("doc")) {
            errors.push(
                Code::KernelSyntax,
                attr,
                "a kernel cannot have an attribute here",
                "put it on the function",
            );
        }
        self.items.push(item.clone());
    }
}

/// The type of a constant of the standard library.
fn standard(path: &Path) -> Option<Scalar> {
    let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match names[..] {
        [.., "f32", "consts", _] => Some(Scalar::F32),
        [.., "f64", "consts", _] => Some(Scalar::F64),
        [ty, name] | ["std" | "core", ty, name] => match (Scalar::named(ty)?, name) {
            // Counts of digits and exponents have types of their own.
            (
                Scalar::F32 | Scalar::F64,
                "RADIX" | "DIGITS" | "MANTISSA_DIGITS" | "MIN_EXP" | "MAX_EXP" | "MIN_10_EXP" | "MAX_10_EXP",
            ) => None,
            (_, "BITS") => Some(Scalar::U32),
            (scalar, _) => Some(scalar),
        },
        _ => None,
    }
}
