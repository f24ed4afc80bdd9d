//! The conversion in both directions, without rustc in between: conditions remain unchanged.

use super::*;

fn there(text: &str) -> TokenStream {
    let item: Item = syn::parse_str(text).unwrap();
    assert!(has_conditions(&item), "{text}");
    defer(&TokenStream::new(), item)
}

#[test]
fn what_is_carried_comes_back() {
    for text in [
        "fn f(x: u8) { #[cfg(a)] let y = #[eager] g(x)?; #[cfg(b)] #[eager(cx)] { h(cx) } #[eager] k()?; y }",
        "fn f(#[cfg_attr(a, dims(B))] #[host] x: u8) { let y = (#[eager] a) + b; if #[eager] c()? {} match #[piecewise] d() { _ => #[eager] e() } }",
        "impl A { #[cfg(a)] fn f(&self) { let Some(y) = #[eager] g() else { return #[eager] h() }; #[allow(unused)] #[eager] k(y); } }",
        "fn f() { #[cfg(a)] m! { #[eager] x, , y } #[eager] m!(); #[eagr] f(); { plain } }",
        "fn f() { #[cfg(a)] if #[eager] let Some(y) = #[eager] g() && #[piecewise(cx)] let Ok(z) = y && #[eager] h(z) {} else if #[allow(unused)] #[eager] let x = { y } {} }",
        "fn f() { #[cfg(a)] while #[device] let Some(y) = #[key] (g()) { match y { x if #[eager] let 1 = x => {} x if #[eager] x => #[eager] {}, _ => {} } } }",
        "fn f() { #[cfg(a)] g([#[eager] 1; #[eager] 2], S { a: #[eager] 3, ..#[eager] s }, -#[eager] 4, &#[eager] x, h[#[eager] n], #[eager] 1..#[eager] 2); break 'a #[eager] t; }",
    ] {
        let (_, item) = configured(there(text)).unwrap().unwrap();
        let given: Item = syn::parse_str(&text.replace("#[cfg(a)] ", "").replace("#[cfg(b)] ", "")).unwrap();
        assert_eq!(item.to_token_stream().to_string(), given.to_token_stream().to_string());
    }
}

#[test]
fn a_condition_can_say_that_something_is_a_region() {
    let text = there("fn f() { let x = #[cfg_attr(a, eager)] g(); }").to_string();
    assert!(text.contains("# [cfg (a)] __graphable_mark ! { # [eager] }"), "{text}");
    // As if the condition did not hold.
    let text = text.replace("# [cfg (a)] __graphable_mark ! { # [eager] }", "");
    let (_, item) = configured(text.parse().unwrap()).unwrap().unwrap();
    assert_eq!(item.to_token_stream().to_string(), "fn f () { let x = g () ; }");
}

#[test]
fn items_without_conditions_inside_stay() {
    for text in [
        "#[cfg(a)] fn f() { g() }",
        "fn f(#[cfg(a)] x: u8) { #[cfg(a)] g() }",
        "fn f() { if cfg!(a) { g() } m! { #[cfg(a)] x } }",
        "struct S;",
    ] {
        assert!(!has_conditions(&syn::parse_str(text).unwrap()), "{text}");
    }
}

#[test]
fn nothing_comes_of_an_item_that_is_not_there() {
    assert!(configured("enum E { Item = { 0 } }".parse().unwrap()).unwrap().is_none());
    assert!(configured("struct S;".parse().unwrap()).is_err());
}

#[test]
fn semicolons_of_what_is_not_there_go() {
    let text = there("fn f() { #[cfg(a)] (g())?; h(); }").to_string();
    let text = text.replace("# [cfg (a)] (g ()) ?", "");
    let (_, item) = configured(text.parse().unwrap()).unwrap().unwrap();
    assert_eq!(item.to_token_stream().to_string(), "fn f () { h () ; }");
}

#[test]
fn commas_of_what_is_not_there_go() {
    let text = there("fn f(y: u8) { g([#[cfg(a)] 1, #[cfg(a)] 2, 3]); m!(a, , b) }").to_string();
    let text = text.replace("# [cfg (a)] 1 ", "").replace("# [cfg (a)] 2 ", "");
    let (_, item) = configured(text.parse().unwrap()).unwrap().unwrap();
    assert_eq!(item.to_token_stream().to_string(), "fn f (y : u8) { g ([3]) ; m ! (a , , b) }");
}
