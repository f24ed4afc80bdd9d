//! The names in scope, and the known facts about their values.

use std::{
    collections::{BTreeSet, HashMap, HashSet, hash_map::Entry},
    rc::Rc,
};

use syn::{Ident, Stmt};

use crate::{
    facts::uses::{Use, Uses},
    model::Header,
    parse::syntax,
};

/// A name in scope.
#[derive(Clone, Default)]
pub(super) struct Binding {
    pub(super) name: String,
    pub(super) id: usize,
    pub(super) mutable: bool,
    /// Set if no tensor can be obtained through it.
    pub(super) host: bool,
    /// Set if it is known to be, or to hold, a tensor.
    pub(super) device: bool,
    /// Set if it is a `&mut`: writes of a segment through it take effect when the segment has ended.
    pub(super) exclusive: bool,
    /// A value that each segment which uses it recreates: a closure literal, or a constant.
    pub(super) made: Option<Rc<Made>>,
    /// `let x;` that nothing has assigned yet.
    pub(super) uninit: bool,
    /// Set if it is a shared reference, and is never assigned.
    pub(super) reference: bool,
    /// Set if its `let` shows that it is a vector or an array.
    pub(super) list: bool,
    /// Set if it is an iterator that host code advances.
    pub(super) iterator: bool,
}

impl Binding {
    /// Returns whether a use may change the variable, or what it refers to as a `&mut`: what other code does with one that it
    /// gets is not seen.
    pub(super) fn is_changed_by(&self, u: &Use) -> bool {
        u.changes(self.mutable || self.exclusive) || self.exclusive && u.passes_on()
    }
}

/// A `let` of a value that each segment which uses it recreates.
pub(super) struct Made {
    pub(super) local: syn::Local,
    /// The uses of its value.
    pub(super) uses: Uses,
    /// The number of entries that the plan had before it.
    pub(super) planned: usize,
    /// The number of arms and loops around it.
    pub(super) arms: usize,
}

/// The items of a block. In all of the block, their names mean them.
struct Items {
    /// The number of names that were in scope before the block.
    outside: usize,
    /// Their names; `None` if they may be any.
    names: Option<HashSet<String>>,
    /// Those that hide variables.
    values: HashSet<String>,
    /// Whether traits may be among them.
    has_traits: bool,
}

/// Bindings that values may refer to, each with the fields that they refer to; `None` if that may be all of it.
#[derive(Clone, Default)]
pub(super) struct Lenders(HashMap<usize, Option<BTreeSet<Vec<String>>>>);

impl Lenders {
    fn add(&mut self, id: usize, parts: Option<&BTreeSet<Vec<String>>>) {
        match self.0.entry(id) {
            Entry::Vacant(entry) => _ = entry.insert(parts.cloned()),
            Entry::Occupied(mut entry) => match (entry.get_mut(), parts) {
                (Some(mine), Some(parts)) => mine.extend(parts.iter().cloned()),
                (mine, _) => *mine = None,
            },
        }
    }

    /// Returns whether they refer to a binding, or to the field of it that `path` leads to.
    pub(super) fn refer_to(&self, id: usize, path: Option<&[String]>) -> bool {
        match (self.0.get(&id), path) {
            (None, _) => false,
            (Some(Some(parts)), Some(path)) => {
                parts.iter().any(|part| part.starts_with(path) || path.starts_with(part))
            }
            (Some(_), _) => true,
        }
    }
}

/// What a block changes in the meaning of code that a segment writes there once more.
pub(super) enum Hidden<'n> {
    /// An item of this name.
    Name(&'n String),
    /// An import that may bring any name.
    Anything,
    /// Traits, whose methods may be called instead of others.
    Traits,
}

/// Names in scope. Facts stored by id remain available after a name has left the scope.
#[derive(Default)]
pub(super) struct Scope {
    /// Innermost last.
    pub(super) names: Vec<Binding>,
    /// The items of the blocks around, innermost last.
    items: Vec<Items>,
    pub(super) next_id: usize,
    /// Ids of bindings that hold values of eager code.
    pub(super) eager_derived: HashSet<usize>,
    /// Of those that are struct literals: the fields that hold none.
    pub(super) clean: HashMap<usize, HashSet<String>>,
    /// Of bindings that may hold references: the bindings that they lead to.
    pub(super) lenders: HashMap<usize, Lenders>,
    /// Ids of bindings that hold results of calls, and may therefore own their contents.
    pub(super) owned: HashSet<usize>,
    /// Ids of bindings that hold results of calls as host values, or parts of owned values: mostly numbers, which are copied, but
    /// they may be anything.
    pub(super) host_results: HashSet<usize>,
    /// Ids of `let x;` bindings that were assigned.
    pub(super) assigned: HashSet<usize>,
    /// The types of bindings that are written with their names.
    pub(super) types: HashMap<usize, syn::Type>,
}

impl Scope {
    /// The parameters of a function.
    pub(super) fn of(header: &Header<'_>) -> Self {
        let binding = |(id, param): (usize, &&Ident)| Binding {
            name: param.to_string(),
            id,
            mutable: header.mutable.contains(param),
            host: header.host.contains(param),
            device: !header.host.contains(param),
            reference: header.references.contains(param) && !header.mutable.contains(param),
            ..Binding::default()
        };
        let names = header.params.iter().enumerate().map(binding).collect();
        Self { names, next_id: header.params.len(), ..Self::default() }
    }

    pub(super) fn lookup(&self, name: &str) -> Option<&Binding> {
        self.last(|b| b.name == name)
    }

    /// Returns the innermost of some bindings that have one name, unless an item has the name here.
    pub(super) fn last(&self, is_meant: impl Fn(&Binding) -> bool) -> Option<&Binding> {
        let at = self.names.iter().rposition(is_meant)?;
        let binding = &self.names[at];
        self.inside(at).all(|items| !items.values.contains(&binding.name)).then_some(binding)
    }

    /// The items of the blocks around the current place that are inside that of a binding.
    fn inside(&self, binding: usize) -> impl Iterator<Item = &Items> {
        self.items.iter().filter(move |items| items.outside > binding)
    }

    /// Enters a block.
    pub(super) fn enter_items(&mut self, stmts: &[Stmt]) {
        let names = syntax::items_among(stmts);
        if names.as_ref().is_none_or(|names| !names.is_empty()) {
            let values = syntax::values_among(stmts).map(ToString::to_string).collect();
            let has_traits = syntax::has_traits(stmts);
            self.items.push(Items { outside: self.names.len(), names, values, has_traits });
        }
    }

    /// Passes a macro that a block defines: from here on, its name is that of this one.
    pub(super) fn enter_macro(&mut self, name: &Ident) {
        let names = Some(HashSet::from([name.to_string()]));
        self.items.push(Items {
            outside: self.names.len(),
            names,
            values: HashSet::new(),
            has_traits: false,
        });
    }

    /// The place to which [`Self::leave`] returns.
    pub(super) fn depth(&self) -> (usize, usize) {
        (self.names.len(), self.items.len())
    }

    pub(super) fn leave(&mut self, (names, items): (usize, usize)) {
        self.names.truncate(names);
        self.items.truncate(items);
    }

    /// Returns what hides the meaning that code has at a binding: its names, and the methods that it calls if `calls_methods`.
    pub(super) fn hidden<'n>(
        &self,
        id: usize,
        mut names: impl Iterator<Item = &'n String>,
        calls_methods: bool,
    ) -> Option<Hidden<'n>> {
        let at = self.names.iter().rposition(|b| b.id == id)?;
        let named =
            names.find(|name| self.inside(at).flat_map(|items| &items.names).any(|all| all.contains(*name)));
        if let Some(name) = named {
            return Some(Hidden::Name(name));
        }
        if self.inside(at).any(|items| items.names.is_none()) {
            return Some(Hidden::Anything);
        }
        (calls_methods && self.inside(at).any(|items| items.has_traits)).then_some(Hidden::Traits)
    }

    pub(super) fn bind(&mut self, name: String, mutable: bool) -> usize {
        let id = self.next_id;
        self.next_id += 1;
        self.names.push(Binding { name, id, mutable, ..Binding::default() });
        id
    }

    pub(super) fn mark_exclusive(&mut self, names: &HashSet<String>) {
        for name in names {
            if let Some(b) = self.names.iter_mut().rev().find(|b| b.name == *name) {
                b.exclusive = !b.mutable;
            }
        }
    }

    /// Sets the facts about a binding's value.
    pub(super) fn describe(&mut self, id: usize, host: bool, device: bool) {
        if let Some(b) = self.names.iter_mut().rev().find(|b| b.id == id) {
            (b.host, b.device) = (host, device);
        }
    }

    /// Sets whether a binding is a list.
    pub(super) fn note_list(&mut self, id: usize, list: bool) {
        if let Some(b) = self.names.iter_mut().rev().find(|b| b.id == id) {
            b.list = list;
        }
    }

    /// Sets whether a binding is a shared reference.
    pub(super) fn note_reference(&mut self, id: usize, reference: bool) {
        if let Some(b) = self.names.iter_mut().rev().find(|b| b.id == id) {
            b.reference = reference && !b.mutable;
        }
    }

    /// Returns whether a name stands for a shared reference.
    pub(super) fn is_reference(&self, name: &str) -> bool {
        self.lookup(name).is_some_and(|b| b.reference)
    }

    /// Sets that a binding is an iterator that host code advances.
    pub(super) fn note_iterator(&mut self, id: usize) {
        if let Some(b) = self.names.iter_mut().rev().find(|b| b.id == id) {
            b.iterator = true;
        }
    }

    /// The bindings that code names, and those that they may hold references to.
    pub(super) fn roots(&self, uses: &Uses) -> Lenders {
        let mut roots = self.lent_to(&self.ids(uses));
        for (name, u) in &uses.0 {
            let own = self.lookup(name).map(|b| b.id);
            for id in self.ids_of(name) {
                let parts = Some(id) == own && !u.whole && !u.fields.is_empty();
                roots.add(id, parts.then_some(&u.fields));
            }
        }
        roots
    }

    /// What some bindings may hold references to.
    pub(super) fn lent_to(&self, ids: &HashSet<usize>) -> Lenders {
        let mut lent = Lenders::default();
        for (id, parts) in ids.iter().filter_map(|id| self.lenders.get(id)).flat_map(|lenders| &lenders.0) {
            lent.add(*id, parts.as_ref());
        }
        lent
    }

    /// Returns the ids of names, as they resolve here; closures count as their captured variables.
    pub(super) fn ids(&self, uses: &Uses) -> HashSet<usize> {
        let mut ids = HashSet::new();
        for name in uses.names() {
            self.add_id(name, &mut ids);
        }
        ids
    }

    /// As [`Self::ids`], of one name.
    pub(super) fn ids_of(&self, name: &str) -> HashSet<usize> {
        let mut ids = HashSet::new();
        self.add_id(name, &mut ids);
        ids
    }

    fn add_id(&self, name: &str, ids: &mut HashSet<usize>) {
        let Some(b) = self.lookup(name) else { return };
        if !ids.insert(b.id) {
            return;
        }
        if let Some(made) = &b.made {
            made.uses.names().for_each(|inner| self.add_id(inner, ids));
        }
    }

    /// Returns whether code names a closure, or another value that segments recreate.
    pub(super) fn names_closures(&self, uses: &Uses) -> bool {
        uses.names().any(|name| self.lookup(name).is_some_and(|b| b.made.is_some()))
    }

    /// Returns the uses including those of the closures of outer scopes that they name.
    pub(super) fn with_captures(&self, mut uses: Uses) -> Uses {
        let mut at = 0;
        while at < uses.0.len() {
            if let Some(made) = self.lookup(&uses.0[at].0).and_then(|b| b.made.as_ref()) {
                uses.merge(&made.uses);
            }
            at += 1;
        }
        uses
    }

    /// Returns whether the code moves an owned value as a whole.
    pub(super) fn hands_over(&self, uses: &Uses) -> bool {
        let owned = |name: &str| self.lookup(name).is_some_and(|b| self.owned.contains(&b.id));
        uses.0.iter().any(|(name, u)| u.by_value && owned(name))
    }

    /// Returns whether the code may move a result of a call that is a host value, an owned value, or a part of one.
    pub(super) fn hands_on(&self, uses: &Uses) -> bool {
        let is_result = |name: &str| {
            self.lookup(name).is_some_and(|b| self.host_results.contains(&b.id) || self.owned.contains(&b.id))
        };
        uses.0.iter().any(|(name, u)| u.handed_on && is_result(name))
    }

    /// Returns whether code uses only those fields of a struct literal that do not hold values of eager code.
    pub(super) fn only_clean(&self, id: usize, u: &Use) -> bool {
        let clean = |path: &Vec<String>| {
            path.first().is_some_and(|f| self.clean.get(&id).is_some_and(|clean| clean.contains(f)))
        };
        !u.fields.is_empty() && u.fields.iter().all(clean)
    }
}
