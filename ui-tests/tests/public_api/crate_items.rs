//! The modules of a crate, and what a path in one of them names.

use std::{collections::BTreeMap, fs, path::Path};

use syn::{Attribute, Item, UseTree};

/// A module path below the crate root, empty at the root.
pub(crate) type Module = Vec<String>;

/// What a name stands for.
#[derive(Clone, Debug)]
pub(crate) enum Named {
    /// A definition in a module of the crate.
    Item(Module, String),
    Module(Module),
    /// Something of another crate, as it is written.
    Foreign(String),
}

/// A crate's modules without tests, each with its items.
#[derive(Default)]
pub(crate) struct Crate {
    pub(crate) modules: BTreeMap<Module, Vec<Item>>,
}

/// Whether an attribute `#[name(word)]` is there.
pub(crate) fn has(attributes: &[Attribute], name: &str, word: &str) -> bool {
    attributes.iter().any(|attribute| {
        let list = attribute.meta.require_list();
        attribute.path().is_ident(name) && list.is_ok_and(|list| list.tokens.to_string() == word)
    })
}

/// The name that an item defines.
pub(crate) fn name_of(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Macro(item) => item.ident.as_ref()?.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Union(item) => item.ident.to_string(),
        _ => return None,
    })
}

/// The imports of a tree: the alias, and the path.
pub(crate) fn imports(tree: &UseTree, prefix: &Module, found: &mut Vec<(String, Module)>) {
    let with = |name: &syn::Ident| [prefix.as_slice(), &[name.to_string()]].concat();
    match tree {
        UseTree::Path(path) => imports(&path.tree, &with(&path.ident), found),
        UseTree::Group(group) => group.items.iter().for_each(|tree| imports(tree, prefix, found)),
        UseTree::Name(name) if name.ident == "self" => {
            found.push((prefix.last().cloned().unwrap_or_default(), prefix.clone()));
        }
        UseTree::Name(name) => found.push((name.ident.to_string(), with(&name.ident))),
        UseTree::Rename(rename) => found.push((rename.rename.to_string(), with(&rename.ident))),
        UseTree::Glob(_) => found.push(("*".to_owned(), prefix.clone())),
    }
}

impl Crate {
    pub(crate) fn read(folder: &Path) -> Self {
        let mut found = Self::default();
        found.file(&folder.join("lib.rs"), folder, Vec::new());
        found
    }

    /// A crate of one file.
    pub(crate) fn of(text: &str) -> Self {
        let mut found = Self::default();
        found.items(syn::parse_file(text).unwrap().items, Path::new(""), Vec::new());
        found
    }

    fn file(&mut self, path: &Path, children: &Path, module: Module) {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        self.items(syn::parse_file(&text).unwrap().items, children, module);
    }

    fn items(&mut self, items: Vec<Item>, children: &Path, module: Module) {
        let mut own = Vec::new();
        for item in items {
            let Item::Mod(inner) = &item else {
                own.push(item);
                continue;
            };
            if has(&inner.attrs, "cfg", "test") {
                continue;
            }
            let name = inner.ident.to_string();
            let (path, folder) =
                ([module.as_slice(), std::slice::from_ref(&name)].concat(), children.join(&name));
            match &inner.content {
                Some((_, items)) => self.items(items.clone(), &folder, path),
                None if folder.join("mod.rs").exists() => self.file(&folder.join("mod.rs"), &folder, path),
                None => self.file(&children.join(name + ".rs"), &folder, path),
            }
            own.push(item);
        }
        self.modules.insert(module, own);
    }

    /// What a path means in a module: `None` if its definition is not there to be read, as that of a macro's output.
    pub(crate) fn resolve(&self, module: &Module, path: &[String]) -> Option<Named> {
        let (first, rest) = path.split_first()?;
        let start = match first.as_str() {
            "crate" => Named::Module(Vec::new()),
            "self" => Named::Module(module.clone()),
            "super" => Named::Module(module.split_last()?.1.to_vec()),
            name => self.lookup(module, name).unwrap_or_else(|| Named::Foreign(path.join("::"))),
        };
        rest.iter().try_fold(start, |at, name| match at {
            Named::Module(inside) if name == "super" => Some(Named::Module(inside.split_last()?.1.to_vec())),
            Named::Module(inside) => self.lookup(&inside, name),
            Named::Foreign(all) => Some(Named::Foreign(all)),
            Named::Item(..) => None,
        })
    }

    /// What a name is in a module: defined, or imported.
    fn lookup(&self, module: &Module, name: &str) -> Option<Named> {
        let items = self.modules.get(module)?;
        let below = [module.as_slice(), &[name.to_owned()]].concat();
        if self.modules.contains_key(&below) {
            return Some(Named::Module(below));
        }
        if items.iter().any(|item| name_of(item).is_some_and(|own| own == name)) {
            return Some(Named::Item(module.clone(), name.to_owned()));
        }
        let mut found = Vec::new();
        for item in items {
            if let Item::Use(import) = item {
                imports(&import.tree, &Vec::new(), &mut found);
            }
        }
        let exact = found.iter().find(|(alias, path)| alias == name && path != &[name.to_owned()]);
        match exact {
            Some((_, path)) => self.resolve(module, path),
            // A crate is not found by an import from it.
            None => found
                .iter()
                .filter(|(alias, path)| alias == "*" && path.first().is_none_or(|of| of != name))
                .find_map(|(_, path)| match self.resolve(module, path)? {
                    Named::Module(inside) if inside != *module => self.lookup(&inside, name),
                    _ => None,
                }),
        }
    }
}
