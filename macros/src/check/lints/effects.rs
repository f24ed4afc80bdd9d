//! What a segment does besides computing: it would happen when the segment is recorded, and in no replay.

use quote::ToTokens;
use syn::{
    Expr, ExprCall, ExprMethodCall, Ident, Path, Stmt,
    visit::{self, Visit},
};

use super::{bare, tables};
use crate::diag::{Code, Errors};

/// Functions by the module or type in front of them. `*` stands for every function there.
struct Calls {
    code: Code,
    /// What it does, after "in a segment".
    what: &'static str,
    help: &'static str,
    paths: &'static [(&'static str, &'static [&'static str])],
}

const REGION: &str =
    "do it in an `#[eager] { … }` region, or take what it gives with `#[host] let`: both run on every call";

const CALLS: [Calls; 6] = [
    Calls {
        code: Code::Clock,
        what: "reads a clock",
        help: "take the time with `#[host] let`, or in an `#[eager] { … }` region: both run on every call",
        paths: &[("Instant", &["now"]), ("SystemTime", &["now"]), ("Utc", &["now"]), ("Local", &["now"])],
    },
    Calls {
        code: Code::Randomness,
        what: "draws from the host's randomness",
        help: "draw in an `#[eager] { … }` region, or pass a seed as `#[host] seed: &Scalar<u32>`",
        paths: &[
            ("rand", &["*"]),
            ("fastrand", &["*"]),
            ("getrandom", &["*"]),
            ("StdRng", &["from_os_rng", "from_entropy"]),
            ("SmallRng", &["from_os_rng", "from_entropy"]),
        ],
    },
    Calls {
        code: Code::Threads,
        what: "deals with threads",
        help: "do it in an `#[eager] { … }` region, which runs on every call; the device works by itself",
        paths: &[
            ("thread", &["spawn", "sleep", "scope", "park", "yield_now", "current"]),
            ("rayon", &["spawn", "join", "scope"]),
            ("mpsc", &["channel", "sync_channel"]),
            ("runtime", &["block_on"]),
            ("executor", &["block_on"]),
        ],
    },
    Calls {
        code: Code::Environment,
        what: "looks at the environment of the process",
        help: "read it before the graph is built and pass it as `#[key]`, or with `#[host] let` on every call",
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
        code: Code::InputOutput,
        what: "reads or writes outside the program",
        help: REGION,
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
    Calls {
        code: Code::Synchronises,
        what: "waits for the device",
        help: "remove it: a replay needs no wait, and reads wait for exactly what they read",
        paths: &[("cuda", &["synchronize"]), ("driver", &["synchronize"])],
    },
];

/// Looks at the statements of a segment.
pub(crate) fn check<'a>(stmts: impl IntoIterator<Item = &'a Stmt>, params: &[&Ident], errors: &mut Errors) {
    let mut effects = Effects { params, errors };
    stmts.into_iter().for_each(|s| effects.visit_stmt(s));
}

struct Effects<'p, 'e> {
    params: &'p [&'p Ident],
    errors: &'e mut Errors,
}

impl Effects<'_, '_> {
    fn path(&mut self, path: &Path) {
        let segments: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        let [.., owner, function] = segments.as_slice() else { return };
        // A path of the user's own crate is the user's own function.
        if matches!(segments[0].as_str(), "crate" | "self" | "super" | "Self") {
            return;
        }
        if tables::SYNCHRONISES.contains(&function.as_str()) && function.starts_with("cu") {
            return self.synchronises(path, function);
        }
        for calls in &CALLS {
            let found = calls
                .paths
                .iter()
                .any(|(o, functions)| owner == o && functions.iter().any(|f| *f == "*" || f == function));
            if found {
                let text = path_text(path);
                self.errors.push(
                    calls.code,
                    path,
                    format!(
                        "`{text}` in a segment {} when the segment is recorded, and never in a replay",
                        calls.what
                    ),
                    calls.help,
                );
                return;
            }
        }
    }

    fn synchronises(&mut self, at: impl ToTokens, name: &str) {
        self.errors.push(
            Code::Synchronises,
            at,
            format!(
                "`{name}` waits for the device, and a segment is only recorded: there is nothing to wait for"
            ),
            "remove it: a replay needs no wait, and reads wait for exactly what they read",
        );
    }

    fn ambient(&mut self, at: impl ToTokens, name: &str, action: &str) {
        self.errors.push(
            Code::Ambient,
            at,
            format!("`{name}` is {action} when the segment is recorded, and never in a replay"),
            "keep what changes on the device in a `State`, pass it as `#[host]` or `#[key]`, or do it in an `#[eager] { … }` region",
        );
    }

    /// The place in front of a method, when it is a static or a parameter. Where a method of cells and atomics is
    /// called, one capital is a static as well.
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

impl<'a> Visit<'a> for Effects<'_, '_> {
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
        if tables::SYNCHRONISES.contains(&method.as_str()) {
            self.synchronises(&call.method, &method);
        } else if let Some((path, is_static)) = self.outside(&call.receiver, true)
            && (tables::INTERIOR.contains(&method.as_str())
                || is_static && tables::INTERIOR_OF_STATIC.contains(&method.as_str()))
        {
            self.ambient(&call.method, &format!("{}.{method}()", path_text(path)), "called");
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_assign(&mut self, e: &'a syn::ExprAssign) {
        self.assigned(&e.left);
        visit::visit_expr_assign(self, e);
    }

    fn visit_expr_binary(&mut self, e: &'a syn::ExprBinary) {
        if crate::analyze::uses::is_assign(&e.op) {
            self.assigned(&e.left);
        }
        visit::visit_expr_binary(self, e);
    }

    fn visit_expr_await(&mut self, e: &'a syn::ExprAwait) {
        self.errors.push_span(
            Code::Await,
            e.await_token.span,
            "a graph function cannot `await`: a recording runs to its end",
            "await before the call and pass the value, or block on it in an `#[eager] { … }` region",
        );
        visit::visit_expr_await(self, e);
    }

    fn visit_expr_async(&mut self, _: &'a syn::ExprAsync) {}
    fn visit_item(&mut self, _: &'a syn::Item) {}
}

impl Effects<'_, '_> {
    fn assigned(&mut self, place: &Expr) {
        let Some((path, is_static)) = self.outside(place, false) else { return };
        if is_static {
            return self.ambient(path, &path_text(path), "assigned");
        }
        // `x = …` of a parameter itself is rustc's: parameters are not `mut`.
        if !matches!(bare(place), Expr::Path(_)) {
            let name = path_text(path);
            self.errors.push(
                Code::WritesThrough,
                place,
                format!("a segment writes through `{name}`: a replay would not do it again"),
                format!(
                    "hold what changes on the device in a `State` field of `{name}`, or return the new value"
                ),
            );
        }
    }
}

fn path_text(path: &Path) -> String {
    path.segments.iter().map(|s| s.ident.to_string()).collect::<Vec<_>>().join("::")
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
