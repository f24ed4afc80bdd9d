//! Types while they are found out: sets of places that have one type.

use std::fmt;

use crate::kernel::model::{Scalar, TypeId};

/// A type that only rustc knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kernel) enum Open {
    /// The parameter of a callee.
    Parameter(usize, usize),
    /// The result of a callee, and which part of it.
    Result(usize, Option<usize>),
    /// A constant.
    Constant(usize),
}

#[derive(Clone, Debug, PartialEq)]
pub(in crate::kernel) enum Inferred {
    /// Nothing is known.
    Unknown,
    /// The type of an integer without a suffix.
    Integer,
    /// The type of a float without a suffix.
    Float,
    Scalar(Scalar),
    Open(Open),
    Tuple(Vec<TypeId>),
    /// A row of values of this type.
    Row(TypeId),
    /// Of a statement.
    Unit,
}

enum Entry {
    Same(TypeId),
    Root(Inferred),
}

/// The types of a function, by number.
pub(in crate::kernel) struct Types {
    entries: Vec<Entry>,
    /// Types that were open until a method of one type was called on them.
    assumed: Vec<TypeId>,
}

/// Two types that are none.
pub(super) struct Mismatch(pub(super) String, pub(super) String);

impl Types {
    pub(super) fn new(count: usize) -> Self {
        let entries = (0..count).map(|_| Entry::Root(Inferred::Unknown)).collect();
        Self { entries, assumed: Vec::new() }
    }

    pub(super) fn add(&mut self, ty: Inferred) -> TypeId {
        self.entries.push(Entry::Root(ty));
        self.entries.len() - 1
    }

    /// Notes that an open type is taken for what a method needs.
    pub(super) fn assume(&mut self, id: TypeId) {
        self.assumed.push(id);
    }

    /// Returns whether rustc may know another type than has been found out.
    pub(in crate::kernel) fn is_assumed(&self, id: TypeId) -> bool {
        self.assumed.iter().any(|one| self.root(*one) == self.root(id))
    }

    fn root(&self, id: TypeId) -> TypeId {
        match self.entries[id] {
            Entry::Same(other) => self.root(other),
            Entry::Root(_) => id,
        }
    }

    pub(in crate::kernel) fn get(&self, id: TypeId) -> &Inferred {
        match &self.entries[self.root(id)] {
            Entry::Root(ty) => ty,
            // A root is not a reference.
            Entry::Same(_) => &Inferred::Unknown,
        }
    }

    pub(in crate::kernel) fn scalar(&self, id: TypeId) -> Option<Scalar> {
        match self.get(id) {
            Inferred::Scalar(scalar) => Some(*scalar),
            _ => None,
        }
    }

    /// Returns whether any type is one of which `is` is true.
    pub(in crate::kernel) fn has(&self, is: impl Fn(Scalar) -> bool) -> bool {
        self.entries.iter().any(|entry| matches!(entry, Entry::Root(Inferred::Scalar(scalar)) if is(*scalar)))
    }

    /// Makes integers of which nothing else is known `i32`, as rustc does.
    pub(super) fn default_integers(&mut self) {
        for entry in &mut self.entries {
            if matches!(entry, Entry::Root(Inferred::Integer)) {
                *entry = Entry::Root(Inferred::Scalar(Scalar::I32));
            }
        }
    }

    pub(super) fn set(&mut self, id: TypeId, ty: Inferred) {
        let root = self.root(id);
        self.entries[root] = Entry::Root(ty);
    }

    /// Makes both one type.
    pub(super) fn unify(&mut self, a: TypeId, b: TypeId) -> Result<(), Mismatch> {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return Ok(());
        }
        let (left, right) = (self.get(a).clone(), self.get(b).clone());
        let ty = match (left, right) {
            (Inferred::Unknown, ty) | (ty, Inferred::Unknown) => ty,
            (Inferred::Float, Inferred::Float) => Inferred::Float,
            // Nearly always; where it is `f64`, rustc asks for the suffix.
            (Inferred::Float, Inferred::Open(_)) | (Inferred::Open(_), Inferred::Float) => {
                Inferred::Scalar(Scalar::F32)
            }
            (Inferred::Integer, Inferred::Integer) => Inferred::Integer,
            (Inferred::Integer, Inferred::Open(open))
            | (Inferred::Open(open), Inferred::Integer | Inferred::Open(_)) => Inferred::Open(open),
            (Inferred::Float, Inferred::Scalar(s)) | (Inferred::Scalar(s), Inferred::Float)
                if s.is_float() =>
            {
                Inferred::Scalar(s)
            }
            (Inferred::Integer, Inferred::Scalar(s)) | (Inferred::Scalar(s), Inferred::Integer)
                if s.is_integer() =>
            {
                Inferred::Scalar(s)
            }
            (Inferred::Open(_), Inferred::Scalar(s)) | (Inferred::Scalar(s), Inferred::Open(_)) => {
                Inferred::Scalar(s)
            }
            (Inferred::Open(open), Inferred::Tuple(parts))
            | (Inferred::Tuple(parts), Inferred::Open(open)) => {
                self.open_tuple(open, &parts)?;
                Inferred::Tuple(parts)
            }
            (Inferred::Tuple(left), Inferred::Tuple(right)) if left.len() == right.len() => {
                for (left, right) in left.iter().zip(&right) {
                    self.unify(*left, *right)?;
                }
                Inferred::Tuple(left)
            }
            (Inferred::Row(left), Inferred::Row(right)) => {
                self.unify(left, right)?;
                Inferred::Row(left)
            }
            (left, right) if left == right => left,
            (left, right) => return Err(Mismatch(self.shown(&left), self.shown(&right))),
        };
        // Parts of a tuple may have become another's.
        let (a, b) = (self.root(a), self.root(b));
        self.entries[b] = Entry::Root(ty);
        if a != b {
            self.entries[a] = Entry::Same(b);
        }
        Ok(())
    }

    /// The parts of a result that is a tuple.
    fn open_tuple(&mut self, open: Open, parts: &[TypeId]) -> Result<(), Mismatch> {
        let Open::Result(callee, None) = open else {
            return Err(Mismatch("a value".into(), "a tuple".into()));
        };
        for (i, part) in parts.iter().enumerate() {
            let open = self.add(Inferred::Open(Open::Result(callee, Some(i))));
            self.unify(*part, open)?;
        }
        Ok(())
    }

    pub(super) fn shown(&self, ty: &Inferred) -> String {
        match ty {
            Inferred::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.shown(self.get(*part))).collect();
                format!("({})", parts.join(", "))
            }
            Inferred::Row(element) => format!("a row of `{}`", self.shown(self.get(*element))),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Inferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scalar(scalar) => scalar.name(),
            Self::Integer => "an integer",
            Self::Float => "a float",
            Self::Unit => "()",
            Self::Tuple(_) => "a tuple",
            Self::Row(_) => "a row",
            Self::Unknown | Self::Open(_) => "_",
        })
    }
}
