//! Methods by which a module needs another without a path that says so.
//!
//! The inherent methods of a type may stand in any module, and whoever calls one needs the module of its impl. The compiler
//! knows the type of every receiver; here it is known if it is written: for `self`, parameters, and their fields, through
//! references and smart pointers. Of another receiver, such as the result of a call, the name alone decides if all methods
//! of that name in the crate are of one type; if they are of several types or traits, the call is ignored. So are impls and
//! methods that a macro makes, and what a type alias or `Deref` leads to, unless the name decides.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    FnArg, GenericArgument, ImplItem, Item, ItemImpl, ItemStruct, Pat, PathArguments, Signature, TraitItem,
    Type,
};

use super::scan::{Module, is_test};

/// A path to a type, by the module that it is written in.
#[derive(Clone)]
pub(crate) struct Written {
    pub(crate) module: Module,
    pub(crate) path: Module,
}

/// A method that is called.
struct Call {
    /// Where.
    module: Module,
    /// The type of the receiver's first name, if it is known, and the fields that follow.
    receiver: Option<(Written, Vec<String>)>,
    name: String,
}

/// The methods of a crate, and its calls.
#[derive(Default)]
pub(crate) struct Methods {
    /// The impls that are of no trait: the type, and the names of the methods.
    inherent: Vec<(Written, Vec<String>)>,
    /// The names of methods of traits and of their impls.
    of_traits: BTreeSet<String>,
    /// The types of the fields of a struct, by the module that defines it, and its name.
    fields: BTreeMap<(Module, String), BTreeMap<String, Written>>,
    calls: Vec<Call>,
}

/// The types that are written for the names in a function.
#[derive(Default)]
struct Scope {
    names: BTreeMap<String, Written>,
}

impl Methods {
    /// Reads an item that is no module and no import.
    pub(crate) fn read(&mut self, item: &Item, module: &Module) {
        match item {
            Item::Impl(item) => self.read_impl(item, module),
            Item::Trait(item) => {
                for item in &item.items {
                    if let TraitItem::Fn(method) = item {
                        self.of_traits.insert(method.sig.ident.to_string());
                    }
                }
                self.calls(item.to_token_stream(), module, &Scope::default());
            }
            Item::Fn(item) => {
                self.calls(item.block.to_token_stream(), module, &Scope::of(&item.sig, None, module))
            }
            Item::Struct(item) => self.read_struct(item, module),
            item => self.calls(item.to_token_stream(), module, &Scope::default()),
        }
    }

    fn read_struct(&mut self, item: &ItemStruct, module: &Module) {
        let named = item.fields.iter().enumerate().filter_map(|(at, field)| {
            let name = field.ident.as_ref().map_or_else(|| at.to_string(), ToString::to_string);
            Some((name, Written { module: module.clone(), path: path_of(&field.ty)? }))
        });
        self.fields.insert((module.clone(), item.ident.to_string()), named.collect());
    }

    fn read_impl(&mut self, item: &ItemImpl, module: &Module) {
        let of = path_of(&item.self_ty).map(|path| Written { module: module.clone(), path });
        let mut names = Vec::new();
        for item in &item.items {
            match item {
                ImplItem::Fn(method) if !is_test(&method.attrs) => {
                    names.push(method.sig.ident.to_string());
                    let scope = Scope::of(&method.sig, of.as_ref(), module);
                    self.calls(method.block.to_token_stream(), module, &scope);
                }
                ImplItem::Fn(_) => {}
                item => self.calls(item.to_token_stream(), module, &Scope::default()),
            }
        }
        match (&item.trait_, of) {
            (None, Some(of)) => self.inherent.push((of, names)),
            _ => self.of_traits.extend(names),
        }
    }

    /// The methods that tokens call, those of a macro's too.
    fn calls(&mut self, tokens: TokenStream, module: &Module, scope: &Scope) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => self.calls(group.stream(), module, scope),
                TokenTree::Ident(name) if is_called(&tokens[at + 1..]) => {
                    let before = &tokens[..at];
                    let receiver = match before {
                        [.., TokenTree::Ident(of), a, b] if is(a, ':') && is(b, ':') && of == "Self" => {
                            scope.names.get("self").map(|of| (of.clone(), Vec::new()))
                        }
                        // A range.
                        [.., a, b] if is(a, '.') && is(b, '.') => continue,
                        [before @ .., dot] if is(dot, '.') => scope.receiver(before),
                        _ => continue,
                    };
                    self.calls.push(Call { module: module.clone(), receiver, name: name.to_string() });
                }
                _ => {}
            }
        }
    }
}

impl Scope {
    /// For the body of a function of an impl for `of`, if it is in one.
    fn of(signature: &Signature, of: Option<&Written>, module: &Module) -> Self {
        let mut names = BTreeMap::new();
        for input in &signature.inputs {
            let (name, path) = match input {
                FnArg::Receiver(_) => continue,
                FnArg::Typed(typed) => match &*typed.pat {
                    Pat::Ident(name) => (name.ident.to_string(), path_of(&typed.ty)),
                    _ => continue,
                },
            };
            let path = path.map(|path| Written { module: module.clone(), path });
            let path =
                path.map(|path| if path.path == ["Self"] { of.cloned().unwrap_or(path) } else { path });
            names.extend(path.map(|path| (name, path)));
        }
        names.extend(of.map(|of| ("self".to_owned(), of.clone())));
        Self { names }
    }

    /// What stands before the point of a call: a name whose type is known, and fields.
    fn receiver(&self, before: &[TokenTree]) -> Option<(Written, Vec<String>)> {
        let mut fields = Vec::new();
        let mut before = before;
        loop {
            let (name, rest) = before.split_last()?;
            match rest {
                [rest @ .., dot] if is(dot, '.') && !rest.last().is_some_and(|last| is(last, '.')) => {
                    fields.push(match name {
                        TokenTree::Ident(field) => field.to_string(),
                        TokenTree::Literal(field) => field.to_string(),
                        _ => return None,
                    });
                    before = rest;
                }
                [.., colon] if is(colon, ':') => return None,
                _ => {
                    let TokenTree::Ident(name) = name else { return None };
                    fields.reverse();
                    return Some((self.names.get(&name.to_string())?.clone(), fields));
                }
            }
        }
    }
}

/// A type of the crate: the module that defines it, and its name.
pub(crate) type TypeName = (Module, String);

/// The methods of a crate by their names and types.
pub(crate) struct Table<'m, R> {
    methods: &'m Methods,
    /// Finds a type, if it is one of the crate.
    resolve: R,
    /// The module of the impl.
    impls: BTreeMap<&'m str, BTreeMap<TypeName, Module>>,
}

impl<'m, R: Fn(&Written) -> Option<TypeName>> Table<'m, R> {
    pub(crate) fn new(methods: &'m Methods, resolve: R) -> Self {
        let mut impls: BTreeMap<&str, BTreeMap<_, _>> = BTreeMap::new();
        for (of, names) in &methods.inherent {
            let Some(defined) = resolve(of) else { continue };
            for name in names {
                impls.entry(name).or_default().insert(defined.clone(), of.module.clone());
            }
        }
        Self { methods, resolve, impls }
    }

    /// The module of the impl that a type has a method of this name in, if it stands outside of the root module that
    /// defines the type.
    pub(crate) fn outside(&self, of: &TypeName, name: &str) -> Option<&Module> {
        let module = self.impls.get(name)?.get(of)?;
        Some(module).filter(|module| module.first() != of.0.first())
    }

    /// The calls of such methods: where, what is called, and the module of the impl.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (&'m Module, String, &Module)> {
        self.methods.calls.iter().filter_map(|call| {
            let of = match &call.receiver {
                // A type of another crate has no such method.
                Some((of, fields)) => self.field(of, fields)?,
                None => None,
            };
            let has_it = |of: &TypeName| {
                self.impls.get(call.name.as_str()).is_some_and(|of_name| of_name.contains_key(of))
            };
            let of = of.filter(has_it).or_else(|| self.only(&call.name))?;
            let module = self.outside(&of, &call.name)?;
            Some((&call.module, format!("{}::{}", of.1, call.name), module))
        })
    }

    /// The type of a field, `Some(None)` if it is not known. `None` if it is not one of the crate.
    fn field(&self, of: &Written, fields: &[String]) -> Option<Option<TypeName>> {
        let mut at = (self.resolve)(of)?;
        for field in fields {
            let Some(of) = self.methods.fields.get(&at).and_then(|fields| fields.get(field)) else {
                return Some(None);
            };
            at = (self.resolve)(of)?;
        }
        Some(Some(at))
    }

    /// The only type with a method of this name.
    fn only(&self, name: &str) -> Option<TypeName> {
        let of_name = self.impls.get(name).filter(|_| !self.methods.of_traits.contains(name))?;
        if of_name.len() == 1 { of_name.keys().next().cloned() } else { None }
    }
}

/// The path of a type, behind references and smart pointers.
fn path_of(ty: &Type) -> Option<Module> {
    match ty {
        Type::Reference(reference) => path_of(&reference.elem),
        Type::Paren(paren) => path_of(&paren.elem),
        Type::Path(path) if path.qself.is_none() => {
            let last = path.path.segments.last()?;
            let inner = match &last.arguments {
                PathArguments::AngleBracketed(arguments) => {
                    arguments.args.iter().find_map(|argument| match argument {
                        GenericArgument::Type(ty) => Some(ty),
                        _ => None,
                    })
                }
                _ => None,
            };
            match (last.ident.to_string().as_str(), inner) {
                ("Arc" | "Box" | "Rc" | "Ref" | "RefMut", Some(inner)) => path_of(inner),
                _ => Some(path.path.segments.iter().map(|segment| segment.ident.to_string()).collect()),
            }
        }
        _ => None,
    }
}

fn is(token: &TokenTree, c: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == c)
}

/// If what follows a name are arguments, or `::<`.
fn is_called(next: &[TokenTree]) -> bool {
    match next {
        [TokenTree::Group(group), ..] => group.delimiter() == Delimiter::Parenthesis,
        [a, b, c, ..] => is(a, ':') && is(b, ':') && is(c, '<'),
        _ => false,
    }
}
