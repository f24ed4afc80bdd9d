//! Misplaced attributes: ours in places where they have no meaning, or a different meaning than they seem to.

use syn::{
    Attribute, Block, Expr, ExprMethodCall, Ident, Local,
    visit::{self, Visit},
};

use crate::{
    diag::{Code, Errors, nearest, shortened},
    parse::{attributes, instrument, parameter_kind, syntax},
};

const KNOWN: [&str; 5] = ["eager", "piecewise", "host", "key", "device"];

/// Checks every attribute of a body; whether one is wrong.
pub(crate) fn check(block: &Block, params: &[&Ident], errors: &mut Errors) -> bool {
    let before = errors.count();
    let instrumented = instrument::in_a_closure(block);
    let mut check = Check { errors, params, depth: 0, instrumented };
    check.visit_block(block);
    errors.count() > before
}

struct Check<'e> {
    errors: &'e mut Errors,
    /// Names of the function's parameters.
    params: &'e [&'e Ident],
    /// Inside closures, async blocks and eager regions.
    depth: usize,
    /// Set inside a closure that `#[instrument]` made, until that was reported.
    instrumented: bool,
}

impl Check<'_> {
    fn unknown(&mut self, a: &Attribute) {
        let Some(name) = a.path().get_ident().map(ToString::to_string) else { return };
        if KNOWN.contains(&name.as_str()) || attributes::is_builtin(&name) {
            return;
        }
        if let Some(near) = nearest(&name, &KNOWN) {
            self.errors.push(
                Code::UnknownAttribute,
                a,
                format!("there is no attribute `{name}` here"),
                format!("did you mean `#[{near}]`?"),
            );
        }
    }

    fn nested(&mut self, a: &Attribute) {
        if std::mem::take(&mut self.instrumented) {
            self.errors.push(
                Code::NestedBoundary,
                a,
                "`#[instrument]` with `err` or `ret` has put the function's statements into a closure, where no boundary can stand",
                "write `#[instrument]` below `#[graphable]`",
            );
            return;
        }
        self.errors.push(
            Code::NestedBoundary,
            a,
            "a boundary inside a closure, an async block or another eager region",
            "a boundary must be in the function's own statements; make the closure a loop, or a function of its own",
        );
    }

    /// Reports attributes that repeat or exclude each other.
    fn repeated(&mut self, all: &[Attribute], names: &[&str]) {
        let mut first: Option<&Attribute> = None;
        for a in all.iter().filter(|a| names.iter().any(|n| a.path().is_ident(n))) {
            if let Some(first) = first {
                let [one, two] = [first, a].map(|a| a.path().segments[0].ident.to_string());
                let message = if one == two {
                    format!("`#[{two}]` is given twice")
                } else {
                    format!("this is `#[{one}]` already, and cannot be `#[{two}]` as well")
                };
                self.errors.push(Code::RepeatedAttribute, a, message, "remove one");
            }
            first.get_or_insert(a);
        }
    }

    /// A capability that hides a value: it was meant as an argument, most likely.
    fn capability(&mut self, expr: &Expr) {
        let Some(cx) = attributes::eager_capability(expr) else { return };
        if self.params.contains(&&cx) {
            self.errors.push(
                Code::ConfusingName,
                &cx,
                format!(
                    "`{cx}` names the capability to read device data here, and hides the parameter `{cx}`"
                ),
                "write `#[eager(cx)]`: the name is new, and a region sees every variable anyway",
            );
        }
    }

    /// A region that may be captured, and reads.
    fn reads_when_captured(&mut self, expr: &Expr) {
        let Some(cx) = attributes::capturable(expr) else { return };
        let mut reads = Reads { cx: &cx, found: Vec::new() };
        reads.visit_expr(expr);
        for method in reads.found {
            self.errors.push(
                Code::CapturableReader,
                method,
                format!("`{method}` is for eager code only, and a region with `support` may be captured"),
                "write `#[eager(cx)]`, without `support`",
            );
        }
    }

    /// Reports boundaries on a `let`, which belong on its value; `right` begins the code that was meant.
    fn on_let(&mut self, attrs: &[Attribute], right: impl Fn() -> String, end: &str) {
        for a in attrs.iter().filter(|a| attributes::is_ours(a)) {
            let name = &a.path().segments[0].ident;
            self.errors.push(
                Code::MisplacedAttribute,
                a,
                format!("`#[{name}]` marks an expression, not a `let`"),
                format!("write `{} = #[{name}] …{end}`", right()),
            );
        }
    }

    fn left_operand(&mut self, operand: &Expr, whole: &str, example: &str) {
        // One on a `let` is wrong whatever follows.
        if matches!(operand, Expr::Let(_)) {
            return;
        }
        for a in attributes::of(operand) {
            if attributes::is_ours(a) {
                self.errors.push(
                    Code::BoundaryPosition,
                    a,
                    format!("this attribute belongs to the left operand of the {whole}, not to all of it"),
                    format!("write `{example}`"),
                );
            }
        }
    }
}

/// Methods of `Eager` that a captured region cannot have: what they return is of one call.
const READS: [&str; 18] = [
    "read",
    "read_later",
    "item",
    "size",
    "tensor",
    "synchronize",
    "keep",
    "record_event",
    "nonzero",
    "masked_select",
    "unique",
    "repeat_interleave",
    "bincount",
    "cuda_stream",
    "cuda_view",
    "cuda_view_mut",
    "cuda_output",
    "tensor_of_cuda",
];

/// The reads of a region through its capability.
struct Reads<'a> {
    cx: &'a Ident,
    found: Vec<&'a Ident>,
}

impl<'a> Visit<'a> for Reads<'a> {
    fn visit_expr_method_call(&mut self, call: &'a ExprMethodCall) {
        let is_of_cx = matches!(&*call.receiver, Expr::Path(path) if path.path.is_ident(self.cx));
        if is_of_cx && READS.iter().any(|read| call.method == read) {
            self.found.push(&call.method);
        }
        visit::visit_expr_method_call(self, call);
    }
}

impl<'a> Visit<'a> for Check<'_> {
    fn visit_attribute(&mut self, a: &'a Attribute) {
        self.unknown(a);
        if self.depth > 0 && attributes::is_ours(a) {
            self.nested(a);
        }
    }

    fn visit_local(&mut self, local: &'a Local) {
        self.repeated(&local.attrs, &["host", "key"]);
        if let (Some(key), syn::Pat::Type(typed)) =
            (local.attrs.iter().find(|a| a.path().is_ident("key")), &local.pat)
            && let Some(float) = parameter_kind::float(&typed.ty)
        {
            self.errors.push(
                Code::FloatKey,
                key,
                format!("a `{float}` is not a `#[key]`: every value would need a new recording"),
                "keep it on the device as a tensor, or convert it to an integer or a `bool` in the region",
            );
        }
        let name = || syntax::bound(&local.pat).first().map_or("x".to_owned(), |b| b.ident.to_string());
        self.on_let(&local.attrs, || format!("let {}", name()), ";");
        visit::visit_local(self, local);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Let(condition) = expr
            && attributes::boundary(expr).is_some()
            && self.depth == 0
        {
            self.on_let(&condition.attrs, || format!("let {}", shortened(&condition.pat)), "");
            return visit::visit_expr_let(self, condition);
        }
        match expr {
            Expr::Assign(e) => self.left_operand(&e.left, "assignment", "a = #[eager] f(&x)?"),
            Expr::Binary(e) => self.left_operand(&e.left, "operator", "let v = #[eager] f(&x)?; … v + 1"),
            Expr::Range(e) => {
                if let Some(start) = &e.start {
                    self.left_operand(start, "range", "let n = #[eager] f(&x)?; … 0..n");
                }
            }
            _ => {}
        }
        self.repeated(attributes::of(expr), &["eager", "piecewise"]);
        self.capability(expr);
        self.reads_when_captured(expr);
        for a in attributes::of(expr) {
            for wrong in ["host", "key"] {
                if a.path().is_ident(wrong) {
                    self.errors.push(
                        Code::MisplacedAttribute,
                        a,
                        format!("`#[{wrong}]` marks a parameter or a `let`, not an expression"),
                        format!("write `#[{wrong}] let n = …;`"),
                    );
                }
            }
        }
        let closed =
            matches!(expr, Expr::Closure(_) | Expr::Async(_)) || attributes::boundary(expr).is_some();
        if closed {
            // The expression's own attribute is in place; those inside are not.
            let own = attributes::boundary(expr).is_some();
            if own && self.depth > 0 {
                if let Some(a) = attributes::of(expr).iter().find(|a| attributes::is_ours(a)) {
                    self.nested(a);
                }
                return;
            }
            let stripped = attributes::without_ours(expr);
            let mut inner = Check {
                errors: &mut *self.errors,
                params: self.params,
                depth: self.depth + 1,
                instrumented: self.instrumented,
            };
            visit::visit_expr(&mut inner, &stripped);
        } else {
            visit::visit_expr(self, expr);
        }
    }

    fn visit_macro(&mut self, mac: &'a syn::Macro) {
        self.in_tokens(mac.tokens.clone());
    }

    fn visit_item(&mut self, _: &'a syn::Item) {}
}

impl Check<'_> {
    /// Reports `#[eager]` among the tokens of a macro call, where it is not recognised.
    fn in_tokens(&mut self, tokens: proc_macro2::TokenStream) {
        use proc_macro2::TokenTree;
        let mut hash = false;
        for token in tokens {
            if let TokenTree::Group(g) = &token {
                let first = g.stream().into_iter().next();
                let ours = matches!(&first, Some(TokenTree::Ident(i)) if i == "eager" || i == "piecewise");
                if hash && ours {
                    self.errors.push(
                        Code::NestedBoundary,
                        first,
                        "a boundary inside a macro call",
                        "bind it before: `let v = #[eager] …;`, and use `v` in the macro call",
                    );
                }
                self.in_tokens(g.stream());
            }
            hash = matches!(&token, TokenTree::Punct(p) if p.as_char() == '#');
        }
    }
}
