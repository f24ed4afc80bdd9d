//! The body of an arm: code that is described once, whatever the predicate is. It cannot be left, and nothing in it runs
//! on the host.

use syn::{
    Attribute, Block, Expr, Lifetime, Stmt,
    visit::{self, Visit},
};

use crate::{
    analyze::macros,
    diag::{Code, Errors},
    parse::{attributes, device},
};

/// Checks a block of an `if` or a `while`.
pub(super) fn of_block(block: &Block, word: &str, errors: &mut Errors) {
    let mut body = Body::of(word, errors);
    body.always(block);
    body.visit_block(block);
}

/// Checks an arm of a `match`.
pub(super) fn of_arm(expr: &Expr, errors: &mut Errors) {
    let mut body = Body::of("match", errors);
    match expr {
        Expr::Block(b) => body.always(&b.block),
        other => body.fails(other),
    }
    // Its own attribute makes it an arm inside the arm.
    if !device::is_flow(expr) {
        body.visit_expr(expr);
    }
}

struct Body<'e> {
    word: &'e str,
    errors: &'e mut Errors,
    loops: usize,
    labels: Vec<String>,
    closures: usize,
}

impl<'e> Body<'e> {
    fn of(word: &'e str, errors: &'e mut Errors) -> Self {
        Self { word, errors, loops: 0, labels: Vec::new(), closures: 0 }
    }

    /// Reports statements that end the call wherever the device goes.
    fn always(&mut self, block: &Block) {
        for stmt in &block.stmts {
            match stmt {
                Stmt::Macro(m) if macros::never_returns(&m.mac) => self.ends(&m.mac.path),
                Stmt::Expr(expr, _) => self.fails(expr),
                _ => {}
            }
        }
    }

    fn fails(&mut self, expr: &Expr) {
        match expr {
            Expr::Return(r) if r.expr.as_deref().is_some_and(is_err) => self.ends(r),
            Expr::Macro(m) if macros::never_returns(&m.mac) => self.ends(&m.mac.path),
            Expr::Block(b) => self.always(&b.block),
            _ => {}
        }
    }

    fn ends(&mut self, at: impl quote::ToTokens) {
        let word = self.word;
        self.errors.push(
            Code::DeviceJump,
            at,
            format!(
                "all of a `#[device] {word}` is described on the host, whatever the device will choose: this would end every call"
            ),
            "give the arm a value, and read after the call which one it was; what the host knows decides before: `if n == 0 { return Err(…); }`",
        );
    }

    fn leaves(&mut self, at: impl quote::ToTokens, what: &str) {
        let word = self.word;
        let help = match word {
            "while" => {
                "end it by its predicate: `while ops::logical_and(&go_on, &p)? { … }`, and change `go_on` in the body"
            }
            _ => {
                "give every arm a value, `let y = #[device] if … { … } else { … };`, and go on with it below"
            }
        };
        self.errors.push(
            Code::DeviceJump,
            at,
            format!("`{what}` would leave a `#[device] {word}`, and the device cannot jump"),
            help,
        );
    }

    fn target(&mut self, label: Option<&Lifetime>, at: impl quote::ToTokens, what: &str) {
        let inside = match label {
            Some(label) => self.labels.contains(&label.ident.to_string()),
            None => self.loops > 0,
        };
        if !inside {
            self.leaves(at, what);
        }
    }

    fn within(&mut self, label: Option<&syn::Label>, is_loop: bool, f: impl FnOnce(&mut Self)) {
        let labelled = label.map(|l| self.labels.push(l.name.ident.to_string()));
        self.loops += usize::from(is_loop);
        f(self);
        self.loops -= usize::from(is_loop);
        if labelled.is_some() {
            self.labels.pop();
        }
    }

    fn boundary(&mut self, a: &Attribute) {
        let name = a.path().get_ident().map(ToString::to_string).unwrap_or_default();
        let word = self.word;
        self.errors.push(
            Code::DeviceBoundary,
            a,
            format!(
                "`#[{name}]` runs on every call, and the device decides whether a `#[device] {word}` does"
            ),
            "move it before or after: `let v = #[eager] f(&x)?;`, and use `v` in the body",
        );
    }
}

/// `Err(…)`.
fn is_err(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(c) if matches!(&*c.func, Expr::Path(p) if p.path.segments.last().is_some_and(|s| s.ident == "Err")))
}

impl<'a> Visit<'a> for Body<'_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        for a in attributes::of(expr).iter().filter(|a| attributes::is_ours(a)) {
            self.boundary(a);
        }
        // What leaves an inner arm is reported there. Its predicate belongs to this one.
        if device::is_flow(expr) {
            match expr {
                Expr::If(e) => self.visit_expr(&e.cond),
                Expr::While(e) => self.visit_expr(&e.cond),
                Expr::Match(e) => self.visit_expr(&e.expr),
                _ => {}
            }
            return;
        }
        match expr {
            Expr::Return(r) if self.closures == 0 => {
                if !r.expr.as_deref().is_some_and(is_err) {
                    self.leaves(r, "return");
                }
                visit::visit_expr(self, expr);
            }
            Expr::Break(b) => {
                self.target(b.label.as_ref(), b, "break");
                visit::visit_expr(self, expr);
            }
            Expr::Continue(c) => self.target(c.label.as_ref(), c, "continue"),
            Expr::ForLoop(e) => self.within(e.label.as_ref(), true, |s| visit::visit_expr(s, expr)),
            Expr::While(e) => self.within(e.label.as_ref(), true, |s| visit::visit_expr(s, expr)),
            Expr::Loop(e) => self.within(e.label.as_ref(), true, |s| visit::visit_expr(s, expr)),
            Expr::Block(e) => self.within(e.label.as_ref(), false, |s| visit::visit_expr(s, expr)),
            Expr::Closure(_) => {
                self.closures += 1;
                visit::visit_expr(self, expr);
                self.closures -= 1;
            }
            other => visit::visit_expr(self, other),
        }
    }

    fn visit_local(&mut self, local: &'a syn::Local) {
        for a in local.attrs.iter().filter(|a| a.path().is_ident("host")) {
            self.boundary(a);
        }
        visit::visit_local(self, local);
    }

    fn visit_attribute(&mut self, _: &'a Attribute) {}
    fn visit_item(&mut self, _: &'a syn::Item) {}
}
