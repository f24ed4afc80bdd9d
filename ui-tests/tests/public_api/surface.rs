//! The public surface of a crate as text: what users can name, with signatures.
//!
//! It is read from the sources, so it lacks what the compiler makes: signatures of items that macros write (their names
//! are there, if something re-exports them), implementations that macros write, implementations by `derive` other than
//! their names, and auto traits such as `Send`. Hidden items are left out, and with them what generated code uses.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use quote::quote;
use syn::{
    Attribute, Block, Field, Fields, File, ImplItem, Item, ItemImpl, TraitItem, Type, Visibility,
    parse::Parser, parse_quote,
};

use crate::crate_items::{Crate, Module, Named, has, imports, name_of};

/// Where something is defined.
type Place = (Module, String);

pub(crate) struct Surface<'c> {
    all: &'c Crate,
    /// Each definition, and the shortest path by which users name it.
    paths: BTreeMap<Place, String>,
    /// Each module, and the path by which users name it first.
    modules: BTreeMap<Module, String>,
    /// What each public module has besides definitions.
    lines: BTreeMap<String, BTreeSet<String>>,
}

pub(crate) fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    has(attributes, "doc", "hidden") || has(attributes, "cfg", "test")
}

/// The attributes and the visibility of an item.
fn head(item: &Item) -> Option<(&[Attribute], &Visibility)> {
    Some(match item {
        Item::Const(item) => (&item.attrs, &item.vis),
        Item::Enum(item) => (&item.attrs, &item.vis),
        Item::Fn(item) => (&item.attrs, &item.vis),
        Item::Mod(item) => (&item.attrs, &item.vis),
        Item::Static(item) => (&item.attrs, &item.vis),
        Item::Struct(item) => (&item.attrs, &item.vis),
        Item::Trait(item) => (&item.attrs, &item.vis),
        Item::Type(item) => (&item.attrs, &item.vis),
        Item::Union(item) => (&item.attrs, &item.vis),
        Item::Use(item) => (&item.attrs, &item.vis),
        _ => return None,
    })
}

impl<'c> Surface<'c> {
    pub(crate) fn of(all: &'c Crate, name: &str) -> Self {
        let mut found =
            Self { all, paths: BTreeMap::new(), modules: BTreeMap::new(), lines: BTreeMap::new() };
        found.module(&Vec::new(), name);
        found
    }

    fn module(&mut self, module: &Module, path: &str) {
        let Some(items) = self.all.modules.get(module) else { return };
        if let Some(first) = self.modules.get(module) {
            let (above, name) = path.rsplit_once("::").unwrap_or(("", path));
            let line = format!("pub use {first} as {name};");
            return self.line(above, line);
        }
        self.modules.insert(module.clone(), path.to_owned());
        for item in items {
            if let Item::Macro(item) = item
                && item.attrs.iter().any(|a| a.path().is_ident("macro_export"))
                && let Some(name) = &item.ident
            {
                self.line(path, format!("macro_rules! {name}"));
            }
            let Some((attributes, visibility)) = head(item) else { continue };
            if !is_public(visibility) || is_hidden(attributes) {
                continue;
            }
            match item {
                Item::Mod(inner) => {
                    let name = inner.ident.to_string();
                    let below = [module.as_slice(), std::slice::from_ref(&name)].concat();
                    self.module(&below, &format!("{path}::{name}"));
                }
                Item::Use(import) => {
                    let mut found = Vec::new();
                    imports(&import.tree, &Vec::new(), &mut found);
                    for (alias, target) in found {
                        self.import(module, path, &alias, &target);
                    }
                }
                item => {
                    let name = name_of(item).expect("what has a visibility has a name");
                    self.export((module.clone(), name.clone()), format!("{path}::{name}"));
                }
            }
        }
    }

    fn import(&mut self, module: &Module, path: &str, alias: &str, target: &Module) {
        match self.all.resolve(module, target) {
            Some(Named::Item(of, name)) => self.export((of, name), format!("{path}::{alias}")),
            Some(Named::Module(of)) if alias != "*" => self.module(&of, &format!("{path}::{alias}")),
            Some(Named::Module(_)) => self.line(path, format!("pub use {}::*;", target.join("::"))),
            Some(Named::Foreign(name)) => self.line(path, format!("pub use {name} as {alias};")),
            None => self.line(path, format!("pub use {alias}; // made by a macro")),
        }
    }

    fn line(&mut self, path: &str, line: String) {
        self.lines.entry(path.to_owned()).or_default().insert(line);
    }

    fn export(&mut self, place: Place, path: String) {
        let length = |path: &str| (path.split("::").count(), path.len());
        let first = self.paths.entry(place).or_insert_with(|| path.clone());
        let (home, other) =
            if length(&path) < length(first) { (path.clone(), first.clone()) } else { (first.clone(), path) };
        first.clone_from(&home);
        if home != other {
            let (module, alias) = other.rsplit_once("::").expect("a name in a module");
            self.line(module, format!("pub use {home} as {alias};"));
        }
    }

    /// The definition that a type or a trait names, if it is public.
    fn owner(&self, module: &Module, path: &syn::Path) -> Result<Option<Place>, Foreign> {
        let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        match self.all.resolve(module, &names) {
            Some(Named::Item(of, name)) => {
                Ok(Some((of, name)).filter(|place| self.paths.contains_key(place)))
            }
            _ => Err(Foreign),
        }
    }

    /// The implementations that users see, by the definition that they are listed with: that of the type, or of the
    /// trait, if the type is not of this crate.
    fn impls(&self) -> BTreeMap<Place, Vec<Item>> {
        let mut found: BTreeMap<Place, Vec<Item>> = BTreeMap::new();
        for (module, items) in &self.all.modules {
            for item in items {
                let Item::Impl(item) = item else { continue };
                if is_hidden(&item.attrs) {
                    continue;
                }
                let of_type = match &*item.self_ty {
                    Type::Path(path) => self.owner(module, &path.path),
                    _ => Err(Foreign),
                };
                let of_trait = item.trait_.as_ref().map(|(_, path, _)| self.owner(module, path));
                let place = match (of_type, of_trait) {
                    // Of a type or a trait that users cannot name.
                    (Ok(None), _) | (_, Some(Ok(None))) | (Err(Foreign), None | Some(Err(Foreign))) => {
                        continue;
                    }
                    (Ok(Some(place)), _) | (Err(Foreign), Some(Ok(Some(place)))) => place,
                };
                if let Some(item) = shown_impl(item) {
                    found.entry(place).or_default().push(Item::Impl(item));
                }
            }
        }
        found
    }

    pub(crate) fn text(&self) -> String {
        let mut impls = self.impls();
        let mut modules: BTreeMap<String, Vec<(String, Vec<Item>)>> = BTreeMap::new();
        for (place, path) in &self.paths {
            let (module, name) = path.rsplit_once("::").expect("a name in a module");
            let defined =
                self.all.modules[&place.0].iter().filter(|item| name_of(item).as_ref() == Some(&place.1));
            let mut items: Vec<Item> = defined.cloned().map(shown).collect();
            let mut own = impls.remove(place).unwrap_or_default();
            own.sort_by_key(|item| quote!(#item).to_string());
            items.extend(own);
            modules.entry(module.to_owned()).or_default().push((name.to_owned(), items));
        }
        for module in self.lines.keys() {
            modules.entry(module.clone()).or_default();
        }
        let mut text = String::new();
        for (module, mut names) in modules {
            let _ = writeln!(text, "// {module}\n");
            for line in self.lines.get(&module).into_iter().flatten() {
                let _ = writeln!(text, "{line}");
            }
            names.sort_by(|a, b| a.0.cmp(&b.0));
            let items = names.into_iter().flat_map(|(_, items)| items).collect();
            let _ = writeln!(
                text,
                "{}",
                prettyplease::unparse(&File { shebang: None, attrs: Vec::new(), items })
            );
        }
        text
    }
}

/// What this crate does not define.
struct Foreign;

/// What users see of an implementation: of one of a trait its types, of others the public items.
fn shown_impl(item: &ItemImpl) -> Option<ItemImpl> {
    let mut item = item.clone();
    keep_attributes(&mut item.attrs);
    let of_trait = item.trait_.is_some();
    item.items.retain_mut(|inner| {
        let (attributes, visibility) = match inner {
            ImplItem::Const(inner) => (&mut inner.attrs, &inner.vis),
            ImplItem::Fn(inner) => {
                inner.block = empty();
                (&mut inner.attrs, &inner.vis)
            }
            ImplItem::Type(inner) => return of_trait && !is_hidden(&inner.attrs),
            _ => return false,
        };
        let is_shown = !of_trait && is_public(visibility) && !is_hidden(attributes);
        keep_attributes(attributes);
        is_shown
    });
    (of_trait || !item.items.is_empty()).then_some(item)
}

fn empty() -> Block {
    parse_quote!({})
}

/// Attributes that users notice.
fn keep_attributes(attributes: &mut Vec<Attribute>) {
    let kept = ["non_exhaustive", "must_use", "derive", "repr", "deprecated", "cfg", "cfg_attr"];
    attributes.retain(|attribute| kept.iter().any(|name| attribute.path().is_ident(name)));
}

/// One mark for all private fields.
fn keep_fields(fields: &mut Fields) {
    let is_shown = |field: &Field| is_public(&field.vis) && !is_hidden(&field.attrs);
    match fields {
        Fields::Named(named) => {
            let all = named.named.len();
            named.named = std::mem::take(&mut named.named).into_iter().filter(is_shown).collect();
            if named.named.len() < all {
                named.named.push(Field::parse_named.parse2(quote!(private: Private)).unwrap());
            }
        }
        Fields::Unnamed(unnamed) => {
            for field in &mut unnamed.unnamed {
                if !is_shown(field) {
                    *field = Field::parse_unnamed.parse2(quote!(Private)).unwrap();
                }
            }
        }
        Fields::Unit => {}
    }
    fields.iter_mut().for_each(|field| keep_attributes(&mut field.attrs));
}

/// What users see of a definition.
fn shown(mut item: Item) -> Item {
    match &mut item {
        Item::Const(item) => keep_attributes(&mut item.attrs),
        Item::Static(item) => keep_attributes(&mut item.attrs),
        Item::Type(item) => keep_attributes(&mut item.attrs),
        Item::Union(item) => keep_attributes(&mut item.attrs),
        Item::Fn(item) => {
            keep_attributes(&mut item.attrs);
            *item.block = empty();
        }
        Item::Struct(item) => {
            keep_attributes(&mut item.attrs);
            keep_fields(&mut item.fields);
        }
        Item::Enum(item) => {
            keep_attributes(&mut item.attrs);
            for variant in &mut item.variants {
                keep_attributes(&mut variant.attrs);
                variant.fields.iter_mut().for_each(|field| keep_attributes(&mut field.attrs));
            }
        }
        Item::Trait(item) => {
            keep_attributes(&mut item.attrs);
            for inner in &mut item.items {
                match inner {
                    TraitItem::Fn(inner) => {
                        keep_attributes(&mut inner.attrs);
                        inner.default = inner.default.is_some().then(empty);
                    }
                    TraitItem::Const(inner) => keep_attributes(&mut inner.attrs),
                    TraitItem::Type(inner) => keep_attributes(&mut inner.attrs),
                    _ => {}
                }
            }
        }
        _ => {}
    }
    item
}
