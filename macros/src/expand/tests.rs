//! Expansions of bodies, as text and by their plan.

use proc_macro2::{Ident, Span};
use quote::quote;

use super::host_code::body;
use crate::{
    analyze,
    check::{host_code, misplaced},
    diag::Errors,
    facts::uses,
    model::Header,
};

/// Returns the host code of a function, the number of entries in its plan, and its errors.
pub(crate) fn host_code_of(item: &str) -> (String, usize, String) {
    let f: syn::ItemFn = syn::parse_str(item).unwrap();
    let syn::ReturnType::Type(_, ret) = &f.sig.output else { panic!("a return type is needed") };
    let step: syn::Lifetime = syn::parse_quote!('s);
    let this = Ident::new("self", Span::call_site());
    let params = f
        .sig
        .inputs
        .iter()
        .filter_map(|a| match a {
            syn::FnArg::Typed(t) => match &*t.pat {
                syn::Pat::Ident(p) => Some(&p.ident),
                _ => None,
            },
            syn::FnArg::Receiver(_) => Some(&this),
        })
        .collect();
    let holding = f.sig.inputs.iter().filter_map(|a| match a {
        syn::FnArg::Typed(t) => match &*t.pat {
            syn::Pat::Ident(p) if !quote!(#t).to_string().contains("Tensor") => Some(&p.ident),
            _ => None,
        },
        syn::FnArg::Receiver(_) => Some(&this),
    });
    let host = f.sig.inputs.iter().filter_map(|a| match a {
        syn::FnArg::Typed(t) => match (&*t.pat, &*t.ty) {
            (syn::Pat::Ident(p), syn::Type::Path(ty)) if ty.path.is_ident("usize") => Some(&p.ident),
            _ => None,
        },
        syn::FnArg::Receiver(_) => None,
    });
    let header = Header {
        name: f.sig.ident.to_string(),
        ret,
        step: &step,
        params,
        mutable: Vec::new(),
        holding: holding.collect(),
        owned: Vec::new(),
        references: Vec::new(),
        host: host.collect(),
    };
    let mut errors = Errors::default();
    let misplaced = misplaced::check(&f.block, &header.params, &mut errors);
    let made = crate::device_flow::made_in_arms(&f.block, &header);
    let code = analyze::host_code(made.as_ref().unwrap_or(&f.block), &header, misplaced, &mut errors);
    host_code::check(&code, &header.params, &mut errors);
    let body = body(&code, &header);
    let file: syn::File = syn::parse2(quote!(fn host_code() { #body })).expect("host code is Rust");
    (prettyplease::unparse(&file), code.plan.len(), errors.finish().to_string())
}

/// Without the `Site` expressions, which fill the page.
pub(crate) fn readable(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("&::graphable::__private::Site {") {
        out.push_str(&rest[..at]);
        out.push_str("SITE");
        let end = rest[at..].find('}').unwrap();
        rest = &rest[at + end + 1..];
    }
    out.push_str(rest);
    out
}

#[test]
fn a_move_closure_over_a_changing_variable_is_refused() {
    let (_, _, messages) = host_code_of(
        "fn f(x: &Tensor<f32>) -> Result<Tensor<f32>> {
            let mut n = 1.0;
            let by_n = move |t: &Tensor<f32>| ops::scale(t, n);
            n += 1.0;
            let a = #[eager] g(x)?;
            ops::scale(&by_n(&a)?, n)
        }",
    );
    assert!(
        messages.contains("a `move` closure keeps the value that the `mut` variable `n` has here"),
        "{messages}"
    );
}

#[test]
fn a_closure_whose_variable_is_assigned_out_of_sight_is_refused() {
    let messages = |closure: &str, between: &str, call: &str| {
        host_code_of(&format!(
            "fn f(#[key] n: usize, x: &Tensor<f32>) -> Result<Tensor<f32>> {{
                let mut h = neg(x)?;
                let other = neg(x)?;
                let kept = {closure};
                let a = #[eager] g(x)?;
                {between}
                let b = #[eager] g(&a)?;
                {call}
                add(&a, &b)
            }}"
        ))
        .2
    };
    let is_refused = |closure: &str, between: &str, call: &str| {
        messages(closure, between, call).contains("the closure `kept` may take the value that `h` has here")
    };
    for between in [
        "if n > 1 { h = neg(x)?; }",
        "match n { 0 => h = neg(x)?, _ => {} }",
        "for _ in 0..n { h = neg(x)?; }",
        "(h, _) = (neg(x)?, 1);",
        "replace!(h);",
        "if n > 1 { if n > 2 { return neg(x); } h = neg(x)?; }",
        // Another closure calls it.
        "let again = || kept(); if n > 1 { h = neg(x)?; } again()?;",
    ] {
        let call = if between.contains("again") { "" } else { "kept()?;" };
        assert!(is_refused("|| taken(h)", between, call), "{between}");
    }
    // The closure changes what it takes, or a macro names it.
    assert!(is_refused("|| { let t = taken(h); h = neg(&t)?; t }", "h = neg(x)?;", "kept()?;"));
    assert!(is_refused("|| taken!(h)", "h = neg(x)?;", "kept()?;"));
    // In a loop, what comes before in the text comes after.
    assert!(is_refused("|| taken(h)", "for i in 0..n { kept()?; h = neg(x)?; }", ""));
    for (closure, between, call) in [
        // It only borrows, and the path leaves.
        ("|| neg(&h)", "if n > 1 { h = neg(x)?; return neg(&h); }", "kept()?;"),
        ("|| taken(h)", "if n > 1 { h = neg(x)?; return neg(&h); }", "kept()?;"),
        // It is called before.
        ("|| taken(h)", "let c = kept()?; if n > 1 { h = neg(x)?; }", ""),
        ("|| taken(h)", "if n > 1 { let c = kept()?; h = neg(x)?; }", ""),
        // The statement of the block: it keeps what it took.
        ("|| taken(h)", "h = neg(x)?;", "kept()?;"),
        ("|| taken(other)", "if n > 1 { h = neg(x)?; }", "kept()?;"),
    ] {
        assert!(!is_refused(closure, between, call), "{closure}: {between}");
    }
}

#[test]
fn a_pointer_that_is_replaced_is_refused_behind_a_boundary_alone() {
    let is_refused = |before: &str, behind: &str| {
        let (_, _, messages) = host_code_of(&format!(
            "fn f(#[key] n: usize, x: &Tensor<f32>) -> Result<Tensor<f32>> {{
                let mut p: fn(&Tensor<f32>) -> Result<Tensor<f32>> = |t| neg(t);
                let a = p(x)?;
                {before}
                let b = #[eager] g(&a)?;
                {behind}
                add(&a, &b)
            }}"
        ));
        messages.contains("`p` is used behind a boundary after it was replaced")
    };
    for before in [
        "p = |t| exp(t);",
        "if n > 1 { p = exp; }",
        "match n { 0 => p = exp, _ => {} }",
        "for _ in 0..n { p = exp; }",
        "(p, _) = (exp, 1);",
        "std::mem::replace(&mut p, exp);",
        "set!(p);",
        "let mut set = || p = exp; set();",
        "macro_rules! set { () => { p = exp } } set!();",
    ] {
        assert!(is_refused(before, "let c = p(&b)?;"), "{before}");
        assert!(!is_refused(before, ""), "{before}");
        assert!(!is_refused(before, "let p = exp; let c = p(&b)?;"), "{before}");
    }
    assert!(is_refused("p = exp;", "let q = |t| p(t); let c = q(&b)?;"));
    assert!(is_refused("p = exp;", "let c = #[eager] p(&b)?;"));
    // In a loop, what comes before in the text comes after.
    assert!(is_refused("", "for _ in 0..n { let c = p(&b)?; p = exp; let d = #[eager] g(&c)?; }"));
    // In the segment that replaces it.
    assert!(!is_refused("", "p = exp; let c = p(&b)?;"));
    assert!(!is_refused("", "if n > 1 { p = exp; } else { p = neg; } let c = p(&b)?;"));
    assert!(!is_refused("p = exp;", "p = neg; let c = p(&b)?;"));
}

#[test]
fn a_macro_that_names_a_variable_is_refused_in_a_segment_where_that_is_certain() {
    let is_refused = |rules: &str, behind: &str| {
        let (_, _, messages) = host_code_of(&format!(
            "fn f(#[key] n: usize, x: &Tensor<f32>) -> Result<Tensor<f32>> {{
                let k = n + 1;
                macro_rules! m {{ {rules} }}
                let a = #[eager] g(x)?;
                {behind}
                add(&a, x)
            }}"
        ));
        messages.contains("names the variable `k` of the function")
    };
    let call = "let b = scale(&a, m!(2) as f32)?;";
    for rules in [
        "($v:expr) => { $v + k }",
        "($v:expr) => {{ let l = k; $v * l }}",
        "(1) => { k }; ($v:expr) => { $v + k }",
    ] {
        assert!(is_refused(rules, call), "{rules}");
        // Host code may call it.
        assert!(!is_refused(rules, "let b = #[eager] scale(&a, m!(2) as f32)?;"), "{rules}");
        // Another variable has the name.
        assert!(!is_refused(rules, &format!("let k = 3; {call}")), "{rules}");
        // It is another macro.
        assert!(!is_refused(
            rules,
            "let b = { macro_rules! m { ($v:expr) => { $v } } scale(&a, m!(2) as f32)? };"
        ));
    }
    for rules in [
        "($v:expr) => { matches!($v, Some(k) if k > 0) }",
        "($v:expr) => { format!(\"{k}\", k = $v) }",
        "($v:expr) => { stringify!(k) }",
        "($v:expr) => { other!(k = $v) }",
        "($v:expr) => { k($v) }",
        "($v:expr) => {{ let _ = k; $v }}",
        "($v:expr) => {{ let k = $v; k }}",
        "($v:expr) => { S { k: $v } }",
        "(1) => { 1 }; ($v:expr) => { $v + k }",
    ] {
        assert!(!is_refused(rules, call), "{rules}");
    }
    // A macro of an inner block is not in scope behind it.
    let inner = "let b = { macro_rules! o { () => { k } } #[eager] scale(&a, o!() as f32)? }; let c = scale(&b, o!())?;";
    assert!(!is_refused("() => { 1 }", inner));
}

#[test]
fn a_closure_whose_captures_are_shadowed_keeps_them() {
    let closure = |between: &str| {
        host_code_of(&format!(
            "fn f(x: &Tensor<f32>, l: &Layer) -> Result<Tensor<f32>> {{
                let by = &l.a;
                let project = |t: &Tensor<f32>| ops::mul(t, by);
                let a = #[eager] g(x)?;
                {between}
                let b = project(&a)?;
                ops::mul(&b, by)
            }}"
        ))
        .2
    };
    assert_eq!(closure(""), "");
    // It keeps the captured value under a name of its own.
    assert_eq!(closure("let by = &l.b;"), "");
}

#[test]
fn a_boundary_before_else_is_no_bare_block() {
    // rustc: "right curly brace `}` before `else` in a `let...else` statement not allowed".
    let (body, _, messages) = host_code_of(
        "fn f(x: &Tensor<f32>) -> Result<Tensor<f32>> {
            let Some(y) = #[eager] g(x)? else { return Err(e) };
            ops::neg(&y)
        }",
    );
    assert_eq!(messages, "");
    assert!(body.contains("else {"), "{body}");
    // In a segment, rustc would not know that the `return` leaves.
    assert!(!body.contains("return Err(e);\n            ::core"), "{body}");
    assert_eq!(body.matches("::segment(").count(), 1, "{body}");
}

#[test]
fn a_closure_over_self_is_made_again_with_the_segments_own() {
    let (body, _, messages) = host_code_of(
        "fn f(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> {
            let norm = |t: &Tensor<f32>| ops::mul(t, &self.w);
            let h = #[eager] g(&norm(x)?)?;
            ops::mul(&norm(&h)?, &self.head)
        }",
    );
    assert_eq!(messages, "");
    let again = body.rsplit_once("let norm").map(|(_, rest)| rest).unwrap_or_default();
    assert!(again.contains("&__self.w") && !again.contains("self.w, "), "{body}");
}

#[test]
fn a_closure_over_one_of_its_own_name_is_refused_behind_a_boundary() {
    let closures = |behind: &str| {
        host_code_of(&format!(
            "fn f(x: &Tensor<f32>) -> Result<Tensor<f32>> {{
                let f = |t: &Tensor<f32>| ops::scale(t, 2.0);
                let f = |t: &Tensor<f32>| f(&f(t)?);
                let h = f(x)?;
                let a = #[eager] g(&h)?;
                {behind}
            }}"
        ))
        .2
    };
    assert_eq!(closures("ops::neg(&a)"), "");
    let messages = closures("f(&a)");
    assert!(messages.contains("the closure `f` captures `f`, which is shadowed here"), "{messages}");
}

#[test]
fn a_changing_closure_of_host_code_and_segments_is_refused() {
    let calls = |host: &str| {
        host_code_of(&format!(
            "fn f(x: &Tensor<f32>) -> Result<Tensor<f32>> {{
                let mut i = 0usize;
                let mut next = || {{ i += 1; i }};
                let a = #[eager] g(x)?;
                let b = ops::scale(&a, next() as f32)?;
                #[host] let j = {host};
                ops::scale(&b, j as f32)
            }}"
        ))
        .2
    };
    assert_eq!(calls("i + 1"), "");
    let messages = calls("next()");
    assert!(
        messages.contains("the closure `next` changes `i`, and both a segment and host code"),
        "{messages}"
    );
}

#[test]
fn an_assigned_value_of_eager_code_enters_segments_as_one() {
    for assignment in ["k = n;", "[k, i] = [n, 0.0];", "(k, i) = #[eager(cx)] pair(x)?;", "k += n;"] {
        let (body, _, messages) = host_code_of(&format!(
            "fn f(x: &Tensor<f32>) -> Result<Tensor<f32>> {{
                let (mut k, mut i) = (0.0, 0.0);
                let n = #[eager(cx)] cx.item(x)?;
                {assignment}
                ops::scale(x, k)
            }}"
        ));
        assert_eq!(messages, "");
        assert!(body.contains("EagerEntersSegment::enter(&k)"), "{assignment}: {body}");
    }
}

#[test]
fn a_call_by_a_path_takes_the_executor_last() {
    let call = |path: &str| {
        host_code_of(&format!(
            "fn f(x: &Tensor<f32>, l: &Layer) -> Result<Tensor<f32>> {{
                let a = #[piecewise] {path}(l, x)?;
                ops::neg(&a)
            }}"
        ))
        .0
    };
    for (path, twin) in [
        ("Layer::run", "Layer::__graphable_run_piecewise(l, x, __cx)"),
        ("net::Layer::run::<2>", "net::Layer::__graphable_run_piecewise::<2>(l, x, __cx)"),
        ("<Layer>::run", "<Layer>::__graphable_run_piecewise(l, x, __cx)"),
        ("net::run", "net::run(::graphable::__private::OnlyForFunctionsWithBoundaries(__cx, l), x)"),
        ("run", "run(::graphable::__private::OnlyForFunctionsWithBoundaries(__cx, l), x)"),
    ] {
        let body = call(path).split_whitespace().collect::<String>().replace(",)", ")");
        let twin = twin.split_whitespace().collect::<String>();
        assert!(body.contains(&twin), "{path}: {body}");
    }
}

/// The questions that a run asks of its statements grow with the run; they are not asked of all statements
/// again at each one.
#[test]
fn the_work_is_linear_in_the_statements_of_a_run() {
    let visits = |n: usize| {
        let lets: String =
            (1..=n).map(|i| format!("let h{i} = ops::add(&h{}, helper(x, h0)?)?; ", i - 1)).collect();
        let item = format!(
            "fn f(x: &Tensor<f32>) -> Result<Tensor<'s, f32>> {{ let h0 = ops::neg(x)?; {lets} \
             let e = #[eager] mix(&h{n})?; ops::add(&e, &h{}) }}",
            n / 2
        );
        uses::VISITED.with(|v| v.set(0));
        host_code_of(&item);
        uses::VISITED.with(std::cell::Cell::get)
    };
    let (one, four) = (visits(50), visits(200));
    assert!(four < 5 * one, "{one} visits of 50 statements, {four} of 200");
}
