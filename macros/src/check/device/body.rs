//! The body of an arm: code that is described once, whatever the predicate is. It cannot be left, and nothing in it runs
//! on the host.

use syn::{
    Attribute, Block, Expr, Stmt,
    visit::{self, Visit},
};

use crate::{
    diag::{Code, Errors},
    facts::{
        jumps::{self, Jumps},
        macros,
    },
    parse::{attributes, device},
};

/// Checks a block of an `if` or a `while`.
pub(super) fn of_block(block: &Block, word: &str, errors: &mut Errors) {
    let mut body = Body::of(word, errors);
    body.always(block);
    let mut jumps = Jumps::default();
    jumps.visit_block(block);
    body.cannot_jump(&jumps);
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
        let mut jumps = Jumps::default();
        jumps.visit_expr(expr);
        body.cannot_jump(&jumps);
        body.visit_expr(expr);
    }
}

struct Body<'e> {
    word: &'e str,
    errors: &'e mut Errors,
}

impl<'e> Body<'e> {
    fn of(word: &'e str, errors: &'e mut Errors) -> Self {
        Self { word, errors }
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
            Expr::Return(r) if jumps::returns_error(r) => self.ends(r),
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

    /// Reports the jumps out of the body.
    fn cannot_jump(&mut self, jumps: &Jumps<'_>) {
        let word = self.word;
        let help = match word {
            "while" => {
                "end it by its predicate: `while ops::logical_and(&go_on, &p)? { … }`, and change `go_on` in the body"
            }
            _ => {
                "give every arm a value, `let y = #[device] if … { … } else { … };`, and go on with it below"
            }
        };
        for jump in &jumps.found {
            let what = match jump {
                Expr::Return(_) => "return",
                Expr::Break(_) => "break",
                _ => "continue",
            };
            self.errors.push(
                Code::DeviceJump,
                jump,
                format!("`{what}` would leave a `#[device] {word}`, and the device cannot jump"),
                help,
            );
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

impl<'a> Visit<'a> for Body<'_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        for a in attributes::of(expr).iter().filter(|a| attributes::is_ours(a)) {
            self.boundary(a);
        }
        // What is wrong in an inner arm is reported there. Its predicate belongs to this one.
        match device::predicate(expr) {
            Some(predicate) => self.visit_expr(predicate),
            None => visit::visit_expr(self, expr),
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
