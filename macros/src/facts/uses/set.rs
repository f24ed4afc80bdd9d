//! The set of names that a piece of code uses.

use std::collections::{BTreeSet, HashMap, HashSet};

use syn::Ident;

use crate::facts::statement::Statement;

/// The use of one outer name.
#[derive(Clone)]
pub(crate) struct Use {
    pub(crate) ident: Ident,
    /// Used as a whole, and not only by field paths.
    pub(crate) whole: bool,
    /// Field paths, such as `["layers"]` or `["attn", "wq"]`.
    pub(crate) fields: BTreeSet<Vec<String>>,
    /// Used where the value itself is wanted: an argument, an element, the right side of an assignment.
    pub(crate) by_value: bool,
    /// It is named in a call of a macro, which may ignore it.
    pub(crate) named: bool,
    /// A `move` closure may capture it.
    pub(crate) captured: bool,
    /// Used by value or captured, and on every way through the code.
    pub(crate) always: bool,
    /// Assigned as a whole.
    pub(crate) assigned: bool,
    /// May be changed in place: `&mut x`, `x.push(…)`, `x.f = …`, `x[i] = …`.
    pub(crate) touched: bool,
    /// Assigned through: `*x = …`.
    pub(crate) through: bool,
    /// A field path of it is used where the field may be moved out.
    pub(crate) taken: bool,
    /// A method is called on a field path of it that may take the field.
    pub(crate) called: bool,
    /// Field paths whose value is wanted, there or elsewhere.
    pub(crate) parts: BTreeSet<Vec<String>>,
    /// Its value, or that of a field path, is wanted by more than an operator: a number is copied there, any other value moved.
    pub(crate) handed_on: bool,
    /// It is named in a call of a macro that may change its arguments, or changed by a macro.
    pub(crate) in_macro: bool,
    /// The rules of a macro name it.
    pub(crate) in_rules: bool,
}

impl Use {
    /// Returns whether the code may change the variable, given whether it is declared `mut`.
    pub(crate) fn changes(&self, mutable: bool) -> bool {
        self.assigned || (self.touched || self.through || self.in_macro) && mutable
    }

    /// Returns whether the value from before does not matter: the code only replaces it.
    pub(crate) fn only_replaces(&self) -> bool {
        let reads = self.whole || self.by_value || self.touched || self.through || self.taken || self.called;
        self.assigned
            && !reads
            && !self.parted()
            && !self.handed_on
            && !self.in_macro
            && self.fields.is_empty()
    }

    /// Returns whether the code only reads fields, and takes none of them.
    pub(crate) fn only_reads_fields(&self) -> bool {
        let changes = self.assigned || self.touched || self.through || self.in_macro;
        let takes = self.by_value || self.taken || self.called || self.handed_on || self.parted();
        !self.whole && !changes && !takes && !self.fields.is_empty()
    }

    /// Returns whether the value of a field path is wanted.
    pub(crate) fn parted(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Returns whether all of the value is moved, on every way through the code.
    pub(crate) fn moves(&self) -> bool {
        (self.by_value || self.captured) && self.always
    }

    /// Returns whether other code may get the value: what is done with a `&mut` there is not seen.
    pub(crate) fn passes_on(&self) -> bool {
        self.by_value || self.handed_on && self.whole || self.in_rules
    }
}

/// All outer names of a piece of code, in order of first use.
#[derive(Clone, Default)]
pub(crate) struct Uses(pub(crate) Vec<(String, Use)>, HashMap<String, usize>);

impl Uses {
    pub(crate) fn get(&self, name: &str) -> Option<&Use> {
        self.place(name).map(|at| &self.0[at].1)
    }

    /// Returns the index of a name. The list may have lost entries since the index was stored.
    fn place(&self, name: &str) -> Option<usize> {
        let noted = self.1.get(name).copied()?;
        if self.0.get(noted).is_some_and(|(n, _)| n == name) {
            return Some(noted);
        }
        self.0.iter().position(|(n, _)| n == name)
    }

    /// Goes one statement back: from the uses of the following statements to those of `statement` and the
    /// following statements.
    pub(crate) fn precede(&mut self, statement: &Statement) {
        for bound in &statement.binds {
            let name = bound.ident.to_string();
            if let Some(at) = self.place(&name) {
                self.1.remove(&name);
                self.0.swap_remove(at);
                if let Some((moved, _)) = self.0.get(at) {
                    self.1.insert(moved.clone(), at);
                }
            }
        }
        self.merge(&statement.uses);
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(n, _)| n.as_str())
    }

    /// The names of which the value from before may matter.
    pub(crate) fn needed(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, u)| !u.only_replaces()).map(|(n, _)| n.as_str())
    }

    pub(crate) fn entry(&mut self, ident: &Ident) -> &mut Use {
        let name = ident.to_string();
        let at = self.place(&name).unwrap_or_else(|| {
            let fresh = Use {
                ident: ident.clone(),
                whole: false,
                fields: BTreeSet::new(),
                by_value: false,
                named: false,
                captured: false,
                always: false,
                assigned: false,
                touched: false,
                through: false,
                taken: false,
                called: false,
                parts: BTreeSet::new(),
                handed_on: false,
                in_macro: false,
                in_rules: false,
            };
            self.1.insert(name.clone(), self.0.len());
            self.0.push((name, fresh));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }

    /// Adds the uses of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(_, u)| self.add(u));
    }

    /// Adds the uses of code of which one way is taken. What happens on those that end the call does not matter later.
    pub(super) fn one_of(&mut self, ways: &[Way]) {
        let mut all = Self::default();
        ways.iter().for_each(|way| all.merge(&way.uses));
        for (name, u) in &mut all.0 {
            let mut on = ways.iter().filter(|way| !way.ends_the_call);
            u.always = on.all(|way| way.uses.get(name).is_some_and(|u| u.always));
        }
        self.merge(&all);
    }

    fn add(&mut self, u: &Use) {
        let mine = self.entry(&u.ident);
        mine.whole |= u.whole;
        mine.by_value |= u.by_value;
        mine.named |= u.named;
        mine.captured |= u.captured;
        mine.always |= u.always;
        mine.assigned |= u.assigned;
        mine.touched |= u.touched;
        mine.through |= u.through;
        mine.taken |= u.taken;
        mine.called |= u.called;
        mine.handed_on |= u.handed_on;
        mine.in_macro |= u.in_macro;
        mine.in_rules |= u.in_rules;
        mine.fields.extend(u.fields.iter().cloned());
        mine.parts.extend(u.parts.iter().cloned());
    }
}

/// The outer names of one of several ways through some code.
#[derive(Default)]
pub(super) struct Way {
    pub(super) uses: Uses,
    pub(super) ends_the_call: bool,
}

/// The outer names of statements that follow each other in one block.
#[derive(Default)]
pub(crate) struct Sequence {
    uses: Uses,
    /// Names that statements move, other than those that make a value for each segment.
    moved: HashSet<String>,
    /// Names that they bind.
    bound: HashSet<String>,
}

impl Sequence {
    pub(crate) fn push(&mut self, statement: &Statement) {
        for (name, u) in &statement.uses.0 {
            if !self.bound.contains(name) {
                self.uses.add(u);
                if statement.made.is_some() && !self.moved.contains(name) {
                    // It is made again where it is used, each time of copies.
                    self.uses.entry(&u.ident).by_value = false;
                } else if u.by_value {
                    self.moved.insert(name.clone());
                }
            }
        }
        self.bound.extend(statement.binds.iter().map(|b| b.ident.to_string()));
    }

    /// Adds further uses.
    pub(crate) fn add(&mut self, uses: &Uses) {
        self.uses.merge(uses);
    }

    pub(crate) fn uses(&self) -> &Uses {
        &self.uses
    }

    /// Returns the combined uses of some statements.
    pub(crate) fn of<'s>(statements: impl IntoIterator<Item = &'s Statement>) -> Uses {
        let mut sequence = Self::default();
        statements.into_iter().for_each(|s| sequence.push(s));
        sequence.uses
    }
}
