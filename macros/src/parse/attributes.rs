//! Our attributes on expressions and statements.

use proc_macro2::Ident;
use syn::{
    Attribute, Expr, Token,
    parse::{Parse, ParseStream},
    visit_mut::{self, VisitMut},
};

use crate::diag::{Code, Errors, nearest};

/// The arguments of an `#[eager…]`.
#[derive(Default)]
pub(crate) struct EagerArgs {
    /// `cx` of `#[eager(cx)]`.
    pub(crate) capability: Option<Ident>,
    /// `support = …`
    pub(crate) support: Option<Ident>,
    /// `early` or `late`.
    pub(crate) edge: Option<(Edge, Ident)>,
}

/// The direction in which a region may be moved.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    /// Before the device work directly above it.
    Early,
    /// After the device work directly below it.
    Late,
}

impl Edge {
    fn of(name: &Ident) -> Option<Self> {
        match name.to_string().as_str() {
            "early" => Some(Self::Early),
            "late" => Some(Self::Late),
            _ => None,
        }
    }

    /// As the attribute spells it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Late => "late",
        }
    }
}

/// `early` or `late` of an `#[eager(…)]`.
pub(crate) fn edge(attr: &Attribute) -> Option<(Edge, Ident)> {
    eager_args(attr, &mut Errors::default()).edge
}

/// A boundary: its kind, and the attribute that makes it one.
pub(crate) enum Boundary<'a> {
    Eager(&'a Attribute),
    Piecewise(&'a Attribute),
}

/// The help with the valid forms.
const EAGER_FORMS: &str = "write `#[eager]`, `#[eager(cx)]`, `#[eager(support = UniformBatch)]` or `#[eager(cx, support = UniformBatch)]`";

const SUPPORTS: [&str; 4] = ["Never", "UniformSingleTokenDecode", "UniformBatch", "Always"];

pub(crate) fn is_eager(a: &Attribute) -> bool {
    a.path().is_ident("eager")
}

pub(crate) fn is_piecewise(a: &Attribute) -> bool {
    a.path().is_ident("piecewise")
}

pub(crate) fn is_ours(a: &Attribute) -> bool {
    is_eager(a) || is_piecewise(a)
}

/// The attributes of an expression.
pub(crate) fn of(expr: &Expr) -> &[Attribute] {
    macro_rules! each {
        ($($v:ident),*) => { match expr { $(Expr::$v(e) => &e.attrs,)* _ => &[] } };
    }
    each!(
        Array, Assign, Async, Await, Binary, Block, Break, Call, Cast, Closure, Const, Continue, Field,
        ForLoop, Group, If, Index, Infer, Let, Lit, Loop, Macro, Match, MethodCall, Paren, Path, Range,
        RawAddr, Reference, Repeat, Return, Struct, Try, TryBlock, Tuple, Unary, Unsafe, While, Yield
    )
}

fn of_mut(expr: &mut Expr) -> Option<&mut Vec<Attribute>> {
    macro_rules! each {
        ($($v:ident),*) => { match expr { $(Expr::$v(e) => Some(&mut e.attrs),)* _ => None } };
    }
    each!(
        Array, Assign, Async, Await, Binary, Block, Break, Call, Cast, Closure, Const, Continue, Field,
        ForLoop, Group, If, Index, Infer, Let, Lit, Loop, Macro, Match, MethodCall, Paren, Path, Range,
        RawAddr, Reference, Repeat, Return, Struct, Try, TryBlock, Tuple, Unary, Unsafe, While, Yield
    )
}

/// The boundary that this expression itself is.
pub(crate) fn boundary(expr: &Expr) -> Option<Boundary<'_>> {
    of(expr).iter().find_map(|a| {
        if is_eager(a) {
            Some(Boundary::Eager(a))
        } else if is_piecewise(a) {
            Some(Boundary::Piecewise(a))
        } else {
            None
        }
    })
}

/// `#[allow(…)]` and its like.
pub(crate) fn is_lint_level(a: &Attribute) -> bool {
    ["allow", "expect", "warn", "deny", "forbid"].iter().any(|level| a.path().is_ident(level))
}

/// Takes the attributes off an expression.
pub(crate) fn take(expr: &mut Expr) -> Vec<Attribute> {
    of_mut(expr).map(std::mem::take).unwrap_or_default()
}

/// Sets the attributes of an expression.
pub(crate) fn put(expr: &mut Expr, attrs: Vec<Attribute>) {
    if let Some(own) = of_mut(expr) {
        *own = attrs;
    }
}

/// The expression without our attributes.
pub(crate) fn without_ours(expr: &Expr) -> Expr {
    let mut expr = expr.clone();
    if let Some(attrs) = of_mut(&mut expr) {
        attrs.retain(|a| !is_ours(a));
    }
    expr
}

/// `cx` of an `#[eager(cx, support = …)]` expression that may be captured.
pub(crate) fn capturable(expr: &Expr) -> Option<Ident> {
    match boundary(expr)? {
        Boundary::Eager(a) => {
            let args = eager_args(a, &mut Errors::default());
            let may_be_captured = args.may_be_captured();
            args.capability.filter(|_| may_be_captured)
        }
        Boundary::Piecewise(_) => None,
    }
}

/// `cx` of an `#[eager(cx)]` expression.
pub(crate) fn eager_capability(expr: &Expr) -> Option<Ident> {
    match boundary(expr)? {
        Boundary::Eager(a) => eager_args(a, &mut Errors::default()).capability,
        Boundary::Piecewise(_) => None,
    }
}

/// Reads `#[eager]`, `#[eager(cx)]`, `#[eager(support = Level)]`, `#[eager(early)]`, `#[eager(late)]`.
pub(crate) fn eager_args(attr: &Attribute, errors: &mut Errors) -> EagerArgs {
    let mut args = EagerArgs::default();
    if matches!(attr.meta, syn::Meta::Path(_)) {
        return args;
    }
    let Ok(found) = attr.parse_args_with(named_values::<Ident>) else {
        errors.push(
            Code::AttributeArguments,
            attr,
            "these arguments of `#[eager]` cannot be read",
            EAGER_FORMS,
        );
        return args;
    };
    for (name, value) in found {
        match value {
            None => args.word(name, errors),
            Some(level) if name == "support" => args.level(level, errors),
            Some(_) => {
                let help = match nearest(&name.to_string(), &["support"]) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => EAGER_FORMS.to_owned(),
                };
                errors.push(
                    Code::UnknownArgument,
                    &name,
                    format!("`#[eager]` has no argument `{name}`"),
                    help,
                );
            }
        }
    }
    args
}

impl EagerArgs {
    /// Set if a graph of the whole call may contain the region.
    pub(crate) fn may_be_captured(&self) -> bool {
        self.support.as_ref().is_some_and(|level| level != "Never")
    }
}

/// Names, with commas between, each alone or as in `name = value`: `cx`, `support = Level`, `limit = 1000`.
pub(super) fn named_values<V: Parse>(input: ParseStream<'_>) -> syn::Result<Vec<(Ident, Option<V>)>> {
    let mut found = Vec::new();
    while !input.is_empty() {
        let name: Ident = input.parse()?;
        let value = if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            Some(input.parse::<V>()?)
        } else {
            None
        };
        found.push((name, value));
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(found)
}

impl EagerArgs {
    /// `early`, `late`, or the name of a capability.
    fn word(&mut self, name: Ident, errors: &mut Errors) {
        if let Some(edge) = Edge::of(&name) {
            if self.edge.is_some() {
                errors.push(
                    Code::RepeatedAttribute,
                    &name,
                    "a region goes to one place",
                    "keep one of `early` and `late`",
                );
            } else {
                self.edge = Some((edge, name));
            }
        } else if self.capability.is_some() {
            errors.push(
                Code::RepeatedAttribute,
                &name,
                "`#[eager]` takes one capability name",
                "remove the second name",
            );
        } else if SUPPORTS.contains(&name.to_string().as_str()) {
            errors.push(
                Code::AttributeArguments,
                &name,
                format!("`{name}` is a support level"),
                format!("write `support = {name}`"),
            );
        } else {
            self.capability = Some(name);
        }
    }

    /// The `Level` of `support = Level`.
    fn level(&mut self, level: Ident, errors: &mut Errors) {
        let text = level.to_string();
        if SUPPORTS.contains(&text.as_str()) {
            self.support = Some(level);
            return;
        }
        let help = match nearest(&text, &SUPPORTS) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("levels are {}", SUPPORTS.join(", ")),
        };
        errors.push(Code::UnknownArgument, &level, format!("there is no support level `{text}`"), help);
    }
}

/// `#[host]` or `#[key]` on a `let`.
pub(crate) fn let_flag(attrs: &[Attribute], name: &str) -> bool {
    attrs.iter().any(|a| a.path().is_ident(name))
}

/// Removes `#[key]` from `let`s that host code does not see: their values are keyed there in any case.
pub(crate) struct Keys;

impl VisitMut for Keys {
    fn visit_local_mut(&mut self, local: &mut syn::Local) {
        local.attrs.retain(|a| !a.path().is_ident("key"));
        visit_mut::visit_local_mut(self, local);
    }
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

/// Returns whether rustc knows the attribute, and allows it on statements.
pub(crate) fn is_builtin(name: &str) -> bool {
    matches!(
        name,
        "allow" | "warn" | "deny" | "expect" | "forbid" | "cfg" | "cfg_attr" | "doc" | "rustfmt" | "inline"
    )
}
