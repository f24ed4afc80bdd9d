//! Rejects side effects of a segment: they would happen when the segment is recorded, and not in a replay.

use quote::ToTokens;
use syn::{Ident, Path, Stmt};

use crate::{
    diag::{Code, Errors},
    facts::effects::{self, Effect, Outside, Waits},
};

const REGION: &str =
    "do it in an `#[eager] { … }` region, or take its result with `#[host] let`: both run on every call";

/// Looks at the statements of a segment.
pub(crate) fn check<'a>(stmts: impl IntoIterator<Item = &'a Stmt>, params: &[&Ident], errors: &mut Errors) {
    effects::of(stmts, params).into_iter().for_each(|effect| refuse(effect, errors));
}

fn refuse(effect: Effect<'_>, errors: &mut Errors) {
    match effect {
        Effect::Calls(of, path) => {
            let (code, what, help) = diagnosis(of);
            let text = path_text(path);
            errors.push(
                code,
                path,
                format!("`{text}` in a segment {what} when the segment is recorded, and never in a replay"),
                help,
            );
        }
        Effect::Waits(Waits::Function(path)) => {
            let name = path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
            waits(path, &name, errors);
        }
        Effect::Waits(Waits::Method(method)) => waits(method, &method.to_string(), errors),
        Effect::CallsAmbient(path, method) => {
            ambient(method, &format!("{}.{method}()", path_text(path)), "called", errors);
        }
        Effect::AssignsAmbient(path) => ambient(path, &path_text(path), "assigned", errors),
        Effect::WritesThrough(place, path) => {
            let name = path_text(path);
            errors.push(
                Code::WritesThrough,
                place,
                format!("a segment writes through `{name}`: a replay would not repeat it"),
                format!(
                    "hold what changes on the device in a `State` field of `{name}`, or return the new value"
                ),
            );
        }
        Effect::Awaits(span) => errors.push_span(
            Code::Await,
            span,
            "a graph function cannot `await`: a recording runs to its end",
            "await before the call and pass the value, or block on it in an `#[eager] { … }` region",
        ),
    }
}

/// Returns the code, the effect of such a function (after "in a segment"), and the remedy.
fn diagnosis(of: Outside) -> (Code, &'static str, &'static str) {
    match of {
        Outside::Clock => (
            Code::Clock,
            "reads a clock",
            "take the time with `#[host] let`, or in an `#[eager] { … }` region: both run on every call",
        ),
        Outside::Randomness => (
            Code::Randomness,
            "draws from the host's randomness",
            "take an `rng: &Rng` and draw on the device, `ops::uniform(rng, …)`, or draw in an `#[eager] { … }` region",
        ),
        Outside::Threads => (
            Code::Threads,
            "uses threads",
            "do it in an `#[eager] { … }` region, which runs on every call; the device works by itself",
        ),
        Outside::Environment => (
            Code::Environment,
            "reads the environment of the process",
            "read it before the graph is built and pass it as `#[key]`, or with `#[host] let` on every call",
        ),
        Outside::InputOutput => (Code::InputOutput, "reads or writes outside the program", REGION),
        Outside::Synchronises => (
            Code::Synchronises,
            "waits for the device",
            "remove it: a replay needs no wait, and reads wait for exactly what they read",
        ),
    }
}

fn waits(at: impl ToTokens, name: &str, errors: &mut Errors) {
    errors.push(
        Code::Synchronises,
        at,
        format!(
            "`{name}` waits for the device, and a segment is only recorded: there is nothing to wait for"
        ),
        "remove it: a replay needs no wait, and reads wait for exactly what they read",
    );
}

fn ambient(at: impl ToTokens, name: &str, action: &str, errors: &mut Errors) {
    errors.push(
        Code::Ambient,
        at,
        format!("`{name}` is {action} when the segment is recorded, and never in a replay"),
        "keep what changes on the device in a `State`, pass it as `#[host]` or `#[key]`, or do it in an `#[eager] { … }` region",
    );
}

fn path_text(path: &Path) -> String {
    path.segments.iter().map(|s| s.ident.to_string()).collect::<Vec<_>>().join("::")
}
