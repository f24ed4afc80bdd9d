//! Side effects: in a segment they would happen when the segment is recorded, and not in a replay.

use proc_macro2::Span;
use syn::{
    Expr, ExprCall, ExprMethodCall, Ident, Path, Stmt,
    visit::{self, Visit},
};

use crate::parse::syntax::{self, bare};

/// An effect outside the computation, recognised by the names of functions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outside {
    Clock,
    Randomness,
    Threads,
    Environment,
    InputOutput,
    Synchronises,
}

/// One thing that code does besides computing.
pub(crate) enum Effect<'a> {
    /// It calls a function of a known kind.
    Calls(Outside, &'a Path),
    /// It waits for the device by a function or method of this name.
    Waits(Waits<'a>),
    /// It calls a method of a static, a cell or an atomic: the place and the method.
    CallsAmbient(&'a Path, &'a Ident),
    /// It assigns to a static.
    AssignsAmbient(&'a Path),
    /// It writes through a parameter: the place, and the parameter.
    WritesThrough(&'a Expr, &'a Path),
    Awaits(Span),
}

/// A place where code waits for the device.
pub(crate) enum Waits<'a> {
    Function(&'a Path),
    Method(&'a Ident),
}

/// The effects of statements, in order; `params` are the parameters of their function.
pub(crate) fn of<'a>(stmts: impl IntoIterator<Item = &'a Stmt>, params: &[&Ident]) -> Vec<Effect<'a>> {
    let mut effects = Effects { params, found: Vec::new() };
    stmts.into_iter().for_each(|s| effects.visit_stmt(s));
    effects.found
}

/// Returns whether an expression has side effects.
pub(crate) fn has_effects(expr: &Expr, params: &[&Ident]) -> bool {
    let mut effects = Effects { params, found: Vec::new() };
    effects.visit_expr(expr);
    !effects.found.is_empty()
}

/// Names of functions that wait for the device.
const SYNCHRONISES: [&str; 9] = [
    "synchronize",
    "device_synchronize",
    "block_until_ready",
    "wait_idle",
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cuCtxSynchronize",
    "cuStreamSynchronize",
    "cuEventSynchronize",
];

/// Methods that nothing but cells, locks and atomics have.
const INTERIOR: [&str; 15] = [
    "fetch_add",
    "fetch_sub",
    "fetch_and",
    "fetch_or",
    "fetch_xor",
    "fetch_max",
    "fetch_min",
    "compare_exchange",
    "compare_exchange_weak",
    "lock",
    "try_lock",
    "borrow_mut",
    "try_borrow_mut",
    "with_borrow",
    "with_borrow_mut",
];

/// Methods that show a static to have a changing inside.
const INTERIOR_OF_STATIC: [&str; 7] = ["load", "store", "swap", "set", "replace", "with", "read"];

/// Functions of one kind, by the module or type before them. `*` stands for every function there.
struct Calls {
    of: Outside,
    paths: &'static [(&'static str, &'static [&'static str])],
}

const CALLS: [Calls; 6] = [
    Calls {
        of: Outside::Clock,
        paths: &[("Instant", &["now"]), ("SystemTime", &["now"]), ("Utc", &["now"]), ("Local", &["now"])],
    },
    Calls {
        of: Outside::Randomness,
        paths: &[
            ("rand", &["*"]),
            ("fastrand", &["*"]),
            ("getrandom", &["*"]),
            ("StdRng", &["from_os_rng", "from_entropy"]),
            ("SmallRng", &["from_os_rng", "from_entropy"]),
        ],
    },
    Calls {
        of: Outside::Threads,
        paths: &[
            ("thread", &["spawn", "sleep", "scope", "park", "yield_now", "current"]),
            ("rayon", &["spawn", "join", "scope"]),
            ("mpsc", &["channel", "sync_channel"]),
            ("runtime", &["block_on"]),
            ("executor", &["block_on"]),
        ],
    },
    Calls {
        of: Outside::Environment,
        paths: &[
            (
                "env",
                &[
                    "var",
                    "var_os",
                    "vars",
                    "vars_os",
                    "args",
                    "args_os",
                    "current_dir",
                    "set_var",
                    "remove_var",
                    "temp_dir",
                ],
            ),
            ("process", &["id"]),
        ],
    },
    Calls {
        of: Outside::InputOutput,
        paths: &[
            ("File", &["open", "create", "create_new", "options"]),
            ("OpenOptions", &["new"]),
            (
                "fs",
                &[
                    "read",
                    "read_to_string",
                    "write",
                    "create_dir",
                    "create_dir_all",
                    "remove_file",
                    "remove_dir",
                    "remove_dir_all",
                    "rename",
                    "copy",
                    "metadata",
                    "read_dir",
                    "canonicalize",
                ],
            ),
            ("TcpStream", &["connect"]),
            ("TcpListener", &["bind"]),
            ("UdpSocket", &["bind"]),
            ("UnixStream", &["connect"]),
            ("io", &["stdin", "stdout", "stderr"]),
            ("process", &["exit", "abort"]),
            ("reqwest", &["*"]),
            ("ureq", &["*"]),
        ],
    },
    Calls { of: Outside::Synchronises, paths: &[("cuda", &["synchronize"]), ("driver", &["synchronize"])] },
];

struct Effects<'p, 'a> {
    params: &'p [&'p Ident],
    found: Vec<Effect<'a>>,
}

impl<'a> Effects<'_, 'a> {
    fn path(&mut self, path: &'a Path) {
        let segments: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        let [.., owner, function] = segments.as_slice() else { return };
        // A path of the user's own crate is the user's own function.
        if matches!(segments[0].as_str(), "crate" | "self" | "super" | "Self") {
            return;
        }
        if SYNCHRONISES.contains(&function.as_str()) && function.starts_with("cu") {
            return self.found.push(Effect::Waits(Waits::Function(path)));
        }
        let named = |(o, functions): &(&str, &[&str])| {
            owner == o && functions.iter().any(|f| *f == "*" || f == function)
        };
        if let Some(calls) = CALLS.iter().find(|calls| calls.paths.iter().any(named)) {
            self.found.push(Effect::Calls(calls.of, path));
        }
    }

    fn assigned(&mut self, place: &'a Expr) {
        match self.outside(place, false) {
            Some((path, true)) => self.found.push(Effect::AssignsAmbient(path)),
            // `x = …` of a parameter itself is rustc's: parameters are not `mut`.
            Some((path, false)) if !matches!(bare(place), Expr::Path(_)) => {
                self.found.push(Effect::WritesThrough(place, path));
            }
            _ => {}
        }
    }

    /// Returns the receiver of a method if it is a static or a parameter. If the method is one of cells and
    /// atomics, a single capital letter counts as a static as well.
    fn outside<'x>(&self, receiver: &'x Expr, calls: bool) -> Option<(&'x Path, bool)> {
        match bare(receiver) {
            Expr::Field(f) => self.outside(&f.base, calls),
            Expr::Reference(r) => self.outside(&r.expr, calls),
            Expr::Index(i) => self.outside(&i.expr, calls),
            Expr::Path(p) => {
                let last = &p.path.segments.last()?.ident;
                let name = last.to_string();
                let is_static = is_static_name(&name) || calls && is_one_capital(&name);
                let is_param = p.path.get_ident().is_some_and(|i| i == "self" || self.params.contains(&i));
                (is_static || is_param).then_some((&p.path, is_static))
            }
            _ => None,
        }
    }
}

impl<'a> Visit<'a> for Effects<'_, 'a> {
    fn visit_expr_call(&mut self, call: &'a ExprCall) {
        if let Expr::Path(p) = bare(&call.func)
            && p.qself.is_none()
        {
            self.path(&p.path);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'a ExprMethodCall) {
        let method = call.method.to_string();
        if SYNCHRONISES.contains(&method.as_str()) {
            self.found.push(Effect::Waits(Waits::Method(&call.method)));
        } else if let Some((path, is_static)) = self.outside(&call.receiver, true)
            && (INTERIOR.contains(&method.as_str())
                || is_static && INTERIOR_OF_STATIC.contains(&method.as_str()))
        {
            self.found.push(Effect::CallsAmbient(path, &call.method));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_assign(&mut self, e: &'a syn::ExprAssign) {
        self.assigned(&e.left);
        visit::visit_expr_assign(self, e);
    }

    fn visit_expr_binary(&mut self, e: &'a syn::ExprBinary) {
        if syntax::is_assign(&e.op) {
            self.assigned(&e.left);
        }
        visit::visit_expr_binary(self, e);
    }

    fn visit_expr_await(&mut self, e: &'a syn::ExprAwait) {
        self.found.push(Effect::Awaits(e.await_token.span));
        visit::visit_expr_await(self, e);
    }

    fn visit_expr_async(&mut self, _: &'a syn::ExprAsync) {}
    fn visit_item(&mut self, _: &'a syn::Item) {}
}

/// `N`, which may be a variable or a parameter of the function as well.
fn is_one_capital(name: &str) -> bool {
    name.len() == 1 && name.starts_with(|c: char| c.is_ascii_uppercase())
}

/// `SCREAMING_CASE`.
fn is_static_name(name: &str) -> bool {
    name.len() > 1
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}
