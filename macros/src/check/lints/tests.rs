//! The messages of the lints, and cases in which they must be silent.

use crate::entry;

/// The codes of the errors of an item, in order.
fn codes(item: &str) -> Vec<String> {
    let tokens = entry::expand(Default::default(), item.parse().expect("tokens")).to_string();
    tokens.split("\"[G").skip(1).map(|t| format!("G{}", &t[..3])).collect()
}

/// The codes of a body with `x: &Tensor<f32>`, `by: &Scalar<f32>`, `mask: &Tensor<bool>` and `n: usize`.
fn body(body: &str) -> Vec<String> {
    codes(&format!(
        "fn f(#[dims(B, 8)] x: &Tensor<f32>, by: &Scalar<f32>, mask: &Tensor<bool>, model: &Model, #[key] n: usize) \
         -> Result<Tensor<f32>> {{ {body} }}"
    ))
}

#[track_caller]
fn silent(text: &str) {
    assert_eq!(body(text), [""; 0], "{text}");
}

#[track_caller]
fn reports(text: &str, code: &str) {
    assert_eq!(body(text), [code], "{text}");
}

#[test]
fn device_data_on_the_host() {
    reports("let v = x.to_vec(); g(v)", "G040");
    reports("g(by.item())", "G040");
    reports("let y = ops::neg(x)?; g(y.clone().iter())", "G040");
    reports("g(format!(\"{x}\"))", "G041");
    reports("g(format!(\"{:>3} {0:?} {}\", n, x))", "G041");
    reports("g(x.to_string())", "G041");
    reports("g(*by as f32)", "G042");
    reports("let v: Vec<f32> = x.try_into()?; g(v)", "G042");
    reports("g(x + x)", "G043");
    reports("g(2.0 * x)", "G043");
    reports("let y = &x[0..n]; g(y)", "G044");
    reports("g(&x[mask])", "G044");
    reports("if by > 1.0 { g(x) } else { h(x) }", "G045");
    reports("while ops::gt(x, by)? {} g(x)", "G045");
    reports("if let Some(v) = h(n) && x > v { g(v) } else { h(n) }", "G045");
    reports("if x > 1.0 && let Some(x) = h(n) { g(x) } else { h(n) }", "G045");
    reports("if let Some(x) = h(n) && x > 1.0 { g(x) } else if x > 1.0 { h(n) } else { h(x) }", "G045");
    reports("match by { 0.0 => g(x), _ => h(x) }", "G045");
    reports("for v in x { g(v); } h(x)", "G045");
    reports("g(x.nonzero())", "G046");
    reports("g(ops::unique(x)?)", "G046");
    reports("x.add_(by); g(x)", "G047");
}

#[test]
fn what_only_looks_like_it() {
    silent("let x = x.rank(); if x > n { g(x + 1) } else { h(x as f32) }");
    silent("let f = |x: f32| x * 2.0; g(f(n as f32))");
    silent("for x in 0..n { assert!(x > 0, \"{x}\"); } g(by)");
    silent("if let Some(x) = h(n) { return g(x[0], x.iter()); } g(x)");
    silent("if let Some(x) = h(n) && x > 1.0 { return g(x + 1.0); } g(x)");
    silent("while let Some(x) = h(n) && x > 1.0 && !(x < 2.0) { k(x + 1.0); } g(by)");
    silent("let f = |v: usize| if n > 1 && let Some(x) = h(v) && x > 1.0 { x } else { 2.0 }; g(f(n))");
    silent("match n { 0 if n > 2 => if let (x, _) = h(n) && x == 1 { g(x + 1) } else { g(n) }, _ => g(by) }");
    silent("match h(n) { x if x > 1 => g(x + 1), _ => g(x) }");
    silent("g(format!(\"{x:?} {n} {{x}}\"), x.shape()[0], x.dim(1) > 4)");
    silent("let y = ops::split(x, 1, n)?; for t in y.iter() { g(t); } g(&y[0])");
    silent("let y = match x { t if n > 1 => ops::neg(t)?, t => t.clone() }; g(y)");
    silent("let v = #[eager(cx)] cx.read(x)?; if v[0] > 1.0 { return Ok(x.clone()); } g(x)");
    silent("model.layers.iter().map(|l| l.item).sum::<usize>(); g(crate::fs::read(n), NAMES.get(n))");
    silent("let v: Wrapped = x.into(); g(v)");
}

#[test]
fn effects() {
    reports("let t = Instant::now(); g(x)", "G073");
    reports("let t = std::time::SystemTime::now(); g(x)", "G073");
    reports("g(rand::random())", "G074");
    reports("std::thread::sleep(d); g(x)", "G075");
    reports("g(std::env::var(\"A\"))", "G076");
    reports("g(fs::read_to_string(\"a\")?)", "G072");
    reports("CALLS.fetch_add(1, o); g(x)", "G077");
    reports("TOTAL += 1; g(x)", "G077");
    reports("model.cache.borrow_mut().push(n); g(x)", "G077");
    reports("model.calls = n; g(x)", "G078");
    reports("gpu().synchronize(); g(x)", "G048");
    reports("g(h().await)", "G079");
    silent("let mut c = h(n); c.borrow_mut().push(1); c.lock(); g(c)");
    silent("#[eager] { println!(\"{n}\"); CALLS.fetch_add(1, o); } g(x)");
    silent("#[host] let t = Instant::now().elapsed().as_secs(); g(x, t)");
}

#[test]
fn sizes() {
    reports("g(ops::sum(x, 2)?)", "G032");
    reports("g(ops::narrow(x, 1, 6, 3)?)", "G032");
    reports("g(B * 2)", "G033");
    silent("g(ops::sum(x, 1)?, ops::narrow(x, 0, 6, 3)?, ops::narrow(x, 1, 6, 2)?)");
    silent("let x = ops::unsqueeze(x, 2)?; g(ops::sum(&x, 2)?)");
    silent("let B = n; g(B)");
}

#[test]
fn all_kinds_at_once() {
    let found = body("println!(\"{n}\"); let a = x.item(); let t = Instant::now(); g(x + x)");
    assert_eq!(found.len(), 4, "{found:?}");
}
