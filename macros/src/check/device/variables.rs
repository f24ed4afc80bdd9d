//! Facts about variables that the tokens of a function show, for messages and helps.

use std::collections::HashMap;

use syn::{
    Block, Expr, FnArg, Lit, Local, Pat, Signature, Type, UnOp,
    visit::{self, Visit},
};

use crate::{
    facts::operations,
    parse::{
        syntax::{self, bare},
        types,
    },
};

/// Collections and strings of the standard library.
const COLLECTIONS: [&str; 9] =
    ["Vec", "VecDeque", "String", "HashMap", "HashSet", "BTreeMap", "BTreeSet", "BinaryHeap", "LinkedList"];

/// The known facts about a variable.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Tensor,
    /// A number or a `bool` of the host; as an argument of `ops::full`, if it begins with a literal.
    Number(Option<String>),
    /// A number of the host that has no element type, such as a `usize`.
    Count,
    /// A collection or a string of the host.
    Collection,
    /// A function's parameter or a variable of which nothing is known.
    Other,
}

/// The variables of a function.
pub(super) struct Variables {
    /// Those whose name stands for one variable in all of the function.
    known: HashMap<String, Kind>,
    /// Parameters, which are references if they are tensors.
    params: Vec<String>,
    /// Those that are written as references to tensors, and whose name stands for nothing else.
    lent: Vec<String>,
    /// Whether the function may change fields of `self`: it takes `mut self` or `&mut self`.
    pub(super) changes_self: bool,
}

impl Variables {
    pub(super) fn of(sig: &Signature, block: &Block) -> Self {
        let mut found = Found { times: HashMap::new(), kinds: HashMap::new() };
        let (mut params, mut lent) = (Vec::new(), Vec::new());
        for argument in &sig.inputs {
            if let FnArg::Typed(typed) = argument {
                found.bind(&typed.pat);
                found.typed(&typed.pat, &typed.ty);
                if let (Pat::Ident(p), Type::Reference(_)) = (&*typed.pat, types::plain(&typed.ty))
                    && types::is_tensor(&typed.ty)
                {
                    lent.push(p.ident.to_string());
                }
                params.extend(syntax::bound_always(&typed.pat).into_iter().map(|b| b.ident.to_string()));
            }
        }
        found.visit_block(block);
        let Found { times, mut kinds } = found;
        kinds.retain(|name, _| times.get(name) == Some(&1));
        lent.retain(|name| kinds.contains_key(name));
        let changes_self = sig.receiver().is_some_and(|r| {
            r.mutability.is_some() || matches!(&*r.ty, Type::Reference(to) if to.mutability.is_some())
        });
        Self { known: kinds, params, lent, changes_self }
    }

    pub(super) fn kind(&self, name: &syn::Ident) -> &Kind {
        self.known.get(&name.to_string()).unwrap_or(&Kind::Other)
    }

    /// Returns whether an expression is the name of a reference to a tensor.
    pub(super) fn is_lent(&self, expr: &Expr) -> bool {
        syntax::plain_name(expr).is_some_and(|name| self.lent.iter().any(|lent| name == lent))
    }

    pub(super) fn is_param(&self, name: &str) -> bool {
        self.params.iter().any(|param| param == name)
    }
}

struct Found {
    /// The number of times that a name is bound.
    times: HashMap<String, usize>,
    kinds: HashMap<String, Kind>,
}

impl Found {
    fn bind(&mut self, pat: &Pat) {
        for bound in syntax::bound_always(pat) {
            *self.times.entry(bound.ident.to_string()).or_default() += 1;
        }
    }

    fn know(&mut self, pat: &Pat, kind: Kind) {
        if let Pat::Ident(p) = pat
            && kind != Kind::Other
        {
            self.kinds.insert(p.ident.to_string(), kind);
        }
    }

    fn typed(&mut self, pat: &Pat, ty: &Type) {
        self.know(pat, of_type(ty));
    }

    fn of_value(&self, value: &Expr) -> Kind {
        match bare(value) {
            Expr::Path(_) => {
                let name = syntax::plain_name(value).map(ToString::to_string);
                name.and_then(|name| self.kinds.get(&name).cloned()).unwrap_or(Kind::Other)
            }
            Expr::Try(t) if operations::gives_tensor(&t.expr) => Kind::Tensor,
            Expr::MethodCall(m) if m.method == "clone" => self.of_value(&m.receiver),
            Expr::MethodCall(m) if ["to_owned", "to_string"].iter().any(|n| m.method == n) => {
                match bare(&m.receiver) {
                    Expr::Lit(syn::ExprLit { lit: Lit::Str(_), .. }) => Kind::Collection,
                    _ => Kind::Other,
                }
            }
            Expr::MethodCall(m) if ["rank", "len", "is_empty"].iter().any(|n| m.method == n) => Kind::Count,
            Expr::Cast(c) => number(&c.ty).unwrap_or(Kind::Other),
            Expr::Binary(b) => match (self.of_value(&b.left), self.of_value(&b.right)) {
                (Kind::Tensor, _) | (_, Kind::Tensor) => Kind::Other,
                (Kind::Count, _) | (_, Kind::Count) => Kind::Count,
                (Kind::Number(_), _) | (_, Kind::Number(_)) => Kind::Number(None),
                _ => Kind::Other,
            },
            Expr::Macro(m) if ["vec", "format"].iter().any(|n| m.mac.path.is_ident(n)) => Kind::Collection,
            Expr::Call(call) => of_call(call),
            other => literal(other).map_or(Kind::Other, |text| Kind::Number(Some(text))),
        }
    }
}

/// `Vec::new()`, `String::from("…")`.
fn of_call(call: &syn::ExprCall) -> Kind {
    const MAKE: [&str; 4] = ["new", "with_capacity", "from", "default"];
    let Expr::Path(path) = bare(&call.func) else { return Kind::Other };
    let mut segments = path.path.segments.iter().rev();
    match (segments.next(), segments.next()) {
        (Some(function), Some(owner))
            if MAKE.iter().any(|n| function.ident == n) && COLLECTIONS.iter().any(|n| owner.ident == n) =>
        {
            Kind::Collection
        }
        _ => Kind::Other,
    }
}

/// What a number of this type is.
fn number(ty: &Type) -> Option<Kind> {
    types::scalar(ty)?;
    Some(if types::is_element(ty) { Kind::Number(None) } else { Kind::Count })
}

fn of_type(ty: &Type) -> Kind {
    if types::is_tensor(ty) {
        return Kind::Tensor;
    }
    if let Some(number) = number(ty) {
        return number;
    }
    let target = match types::plain(ty) {
        Type::Reference(r) => types::plain(&r.elem),
        other => other,
    };
    match target {
        Type::Path(path)
            if path.path.segments.last().is_some_and(|s| COLLECTIONS.iter().any(|n| s.ident == n)) =>
        {
            Kind::Collection
        }
        _ => Kind::Other,
    }
}

/// A literal as a value of the device: its type is written out, and one that devices have.
fn literal(value: &Expr) -> Option<String> {
    match bare(value) {
        Expr::Unary(u) if matches!(u.op, UnOp::Neg(_)) => Some(format!("-{}", literal(&u.expr)?)),
        Expr::Lit(l) => match &l.lit {
            Lit::Int(n) => {
                let ty: Type = syn::parse_str(if n.suffix().is_empty() { "i32" } else { n.suffix() }).ok()?;
                Some(format!("{}{}", n.base10_digits(), types::scalar(&ty)?))
            }
            Lit::Float(n) => {
                let ty = if n.suffix().is_empty() { "f32" } else { n.suffix() };
                Some(format!("{}{ty}", n.base10_digits()))
            }
            Lit::Bool(b) => Some(b.value.to_string()),
            _ => None,
        },
        _ => None,
    }
}

impl<'a> Visit<'a> for Found {
    fn visit_pat(&mut self, pat: &'a Pat) {
        self.bind(pat);
    }

    fn visit_local(&mut self, local: &'a Local) {
        visit::visit_local(self, local);
        let value = local.init.as_ref().map_or(Kind::Other, |init| self.of_value(&init.expr));
        match (&local.pat, value) {
            // A type says what a number is, and a literal where it begins.
            (Pat::Type(t), Kind::Number(Some(text))) => {
                let begins = types::scalar(&t.ty).map(|element| format!("{}{element}", digits(&text)));
                self.know(&t.pat, Kind::Number(begins.or(Some(text))));
            }
            (Pat::Type(t), _) => self.typed(&t.pat, &t.ty),
            (pat, kind) => self.know(pat, kind),
        }
    }

    fn visit_item(&mut self, _: &'a syn::Item) {}
}

/// A literal without its type.
fn digits(text: &str) -> &str {
    let types = ["i32", "u32", "f32", "i64", "f64", "u8", "i8", "bf16", "f16"];
    types.iter().find_map(|ty| text.strip_suffix(ty)).unwrap_or(text)
}
