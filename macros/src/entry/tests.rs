//! Errors about signatures, and the items that are emitted nevertheless.

use quote::quote;

use super::*;

fn expansion(args: &str, item: &str) -> String {
    let tokens = expand(args.parse().unwrap(), item.parse().unwrap());
    let file: syn::File = syn::parse2(quote!(#tokens)).expect("the expansion is Rust");
    prettyplease::unparse(&file)
}

/// The messages, each on one line.
fn errors(args: &str, item: &str) -> Vec<String> {
    let tokens = expand(args.parse().unwrap(), item.parse().unwrap());
    let file: syn::File = syn::parse2(tokens).expect("the expansion is Rust");
    let message = |item: &Item| match item {
        Item::Macro(m) if m.mac.path.segments.last().is_some_and(|s| s.ident == "compile_error") => {
            Some(m.mac.parse_body::<syn::LitStr>().unwrap().value())
        }
        _ => None,
    };
    file.items.iter().filter_map(message).collect()
}

/// One error, which begins and helps as given.
#[track_caller]
fn refused(item: &str, message: &str, help: &str) {
    let all = errors("", item);
    assert_eq!(all.len(), 1, "{all:#?}");
    let (what, how) = all[0].split_once("\n\nhelp: ").expect("every error has a help");
    assert!(what.contains(message), "{what}");
    assert!(how.contains(help), "{how}");
}

#[test]
fn bare_host_scalars() {
    refused(
        "fn f(#[host] x: &Tensor<f32>, n: usize) -> Result<Tensor<f32>> { g(x) }",
        "`n` is a host value",
        "`#[key] n: usize` for one recording per value, or `#[host] n: &Scalar<u32>`",
    );
    refused(
        "fn f(#[host] x: &Tensor<f32>, t: f64) -> Result<Tensor<f32>> { g(x) }",
        "`t` is a host value",
        "`#[host] t: &Scalar<f64>`",
    );
    refused(
        "fn f(#[host] x: &Tensor<f32>, n: i64) -> Result<Tensor<f32>> { g(x) }",
        "`n` is a host value",
        "`#[key] n: i64` for one recording per value, or `#[host] n: &Scalar<i64>`",
    );
    refused(
        "fn f(x: &Tensor<f32>, n: usize) -> Result<Tensor<f32>> { let y = #[eager] g(x)?; g(&y) }",
        "`n` is a host value",
        "#[key]",
    );
}

#[test]
fn references_that_change_and_values_that_move() {
    let f = |params: &str| format!("fn f({params}, #[key] n: usize) -> Result<Tensor<f32>> {{ g(x) }}");
    refused(&f("x: &mut Tensor<f32>"), "tensors never change", "return the new tensor");
    refused(&f("x: &Tensor<f32>, kv: &mut Cache"), "a replay runs no host code", "`State` field");
    refused(&f("x: Tensor<f32>"), "`x` is passed by value", "`x: &Tensor<f32>`");
    refused(&f("x: &Tensor<f32>, m: Model"), "cannot be part of a key", "`m: &Model`");
    refused(&f("x: &Tensor<f32>, g: impl Fn()"), "cannot have an `impl Trait` parameter", "type parameter");
    refused(&f("(x, y): &Both"), "plain names", "in the body");
    refused(&f("x: &Tensor<f32>, #[cfg(a)] y: &Tensor<f32>"), "`#[cfg]`", "twice");
}

#[test]
fn attributes_of_parameters() {
    let f = |params: &str| format!("fn f({params}) -> Result<Tensor<f32>> {{ g(x) }}");
    refused(&f("#[host] x: Tensor<f32>"), "arrives in a tensor or scalar", "&Tensor<…>");
    refused(&f("#[host] n: u32"), "arrives in a tensor or scalar", "`#[host] n: &Scalar<u32>`");
    refused(&f("#[host] #[key] x: &Tensor<f32>"), "`#[host]` or `#[key]`", "refreshed on every call");
    refused(&f("#[host] #[host] x: &Tensor<f32>"), "given twice", "remove one");
    refused(&f("#[host(a)] x: &Tensor<f32>"), "takes no arguments", "`#[host]`");
    refused(&f("#[key] x: &Tensor<f32>"), "not a `#[key]`", "compared anyway");
    refused(&f("#[key] t: f64, x: &Tensor<f32>"), "a float is not", "`#[host] t: &Scalar<f64>`");
    refused(&f("#[key] t: Vec<f64>, x: &Tensor<f32>"), "a float is not", "`#[host] t: &Tensor<f64>`");
    refused(&f("#[key] n: &usize, x: &Tensor<f32>"), "by value", "`#[key] n: usize`");
    refused(&f("#[host] x: &Tensor<f32>, #[dims(B)] #[key] n: usize"), "only tensors", "remove it");
    refused(&f("#[hots] x: &Tensor<f32>"), "no attribute `#[hots]`", "`#[host]`");
    refused(&f("#[host] x: &Tensor<f32>, #[dim(B)] y: &Tensor<f32>"), "`#[dim]`", "`#[dims]`");
    refused(&f("#[eager] x: &Tensor<f32>"), "belongs on an expression", "`#[host]`");
}

#[test]
fn dimensions() {
    let f = |dims: &str| format!("fn f(#[host] {dims} x: &Tensor<f32>) -> Result<Tensor<f32>> {{ g(x) }}");
    refused(&f("#[dims]"), "names the dimensions", "one entry per dimension");
    refused(&f("#[dims(_, 2)]"), "`_` is not a dimension", "symbol");
    refused(&f("#[dims(1.5)]"), "number of elements", "integer");
    refused(&f("#[dims(B, 2u8)]"), "number of elements", "integer");
    refused(&f("#[dims(B 2)]"), "`#[dims]`", "one entry per dimension");
    refused(&f("#[dims(0..2)]"), "is not a dimension", "symbol");
    assert_eq!(errors("", &f("#[dims(B, 2, {WIDTH}, a::HEIGHT, 2 * K)]")), [""; 0]);
}

#[test]
fn functions_that_are_no_graphs() {
    let f = |f: &str| format!("{f} f(#[host] x: &Tensor<f32>) -> Result<Tensor<f32>> {{ g(x) }}");
    refused(&f("async fn"), "`async`", "remove");
    refused(&f("const fn"), "`const`", "remove");
    refused(&f("unsafe fn"), "`unsafe`", "remove");
    refused(&f("extern \"C\" fn"), "`extern`", "remove");
    refused("fn f(#[host] x: &Tensor<f32>) { g(x) }", "returns a `Result<…>`", "-> Result<Tensor<f32>>");
    refused(
        "fn f(#[host] x: &Tensor<f32>) -> Tensor<f32> { g(x) }",
        "returns a `Result<…>`",
        "Result<Tensor<",
    );
    refused("fn f(#[host] x: &Tensor<f32>) -> Result<&Tensor<f32>> { g(x) }", "not references", "clone");
    refused("struct S;", "goes on a function", "derive(Params)");
    let many: Vec<String> = (0..33).map(|i| format!("#[key] k{i}: u32")).collect();
    refused(&format!("fn f({}) -> Result<()> {{ g() }}", many.join(", ")), "at most 32", "struct");
}

#[test]
fn arguments_of_the_attribute() {
    let f = "fn f(x: &Tensor<f32>) -> Result<Tensor<f32>> { g(x) }";
    assert_eq!(errors("helper", f), [""; 0]);
    assert_eq!(
        errors("helpr", f),
        ["[G001] `#[graphable]` has no argument `helpr`\n\nhelp: did you mean `helper`?"]
    );
    assert!(errors("full", f)[0].ends_with("help: it takes `helper` (fill lifetimes only), or nothing"));
    assert_eq!(errors("a = 1", f).len(), 1);
    assert_eq!(errors("helper, helper", f).len(), 1);
    assert_eq!(errors("helper", "fn f(#[host] x: &Tensor<f32>) -> Result<()> { g(x) }").len(), 1);
    assert_eq!(errors("helper", "fn f(x: &Tensor<f32>) -> Result<()> { #[eager] g(x) }").len(), 1);
    assert_eq!(errors("helper", "trait T {}").len(), 1);
}

#[test]
fn methods_and_traits() {
    refused(
        "impl A { fn f(&mut self, #[host] x: &Tensor<f32>) -> Result<()> { g(x) } }",
        "takes `&self`",
        "`State` field",
    );
    refused(
        "impl A { fn f(self, #[host] x: &Tensor<f32>) -> Result<()> { g(x) } }",
        "takes `&self`",
        "`&self`",
    );
    refused(
        "impl T for A { fn f(&self, x: &Tensor<f32>) -> Result<()> { #[eager] g(x)?; Ok(()) } }",
        "cannot carry what its host code needs",
        "#[piecewise]",
    );
    refused("trait T { fn f(&self, #[host] x: &Tensor<f32>) -> Result<()>; }", "is not a graph", "remove it");
    refused(
        "trait T { fn f(&self) -> Result<()> { #[eager] g() } }",
        "cannot carry what its host code needs",
        "inherent",
    );
}

#[test]
fn all_errors_at_once_and_no_cascade() {
    let item =
        "pub fn f(#[host] x: Tensor<f32>, n: usize, m: &mut Model, #[hots] y: &Tensor<f32>) -> u32 { g(x) }";
    assert_eq!(errors("", item).len(), 5);
    let text = expansion("", item);
    assert!(text.contains("pub fn f<'s>("), "{text}");
    for sibling in ["struct FGraph", "struct FBuffers", "type FGraphBuilder", "pub fn call"] {
        assert!(text.contains(sibling), "{sibling} is missing:\n{text}");
    }
    assert!(!text.contains("g(x)"), "the body of a wrong function is not compiled:\n{text}");
}

#[test]
fn lifetimes() {
    let text = |item| expansion("helper", item);
    let all = text(
        "fn f(a: &Tensor<f32>, b: Pair<'_>, s: Scope, r: &[Ragged<u32>], c: Cow<'_, str>) -> Result<Scalar<f32>> {
            let f = |t: &Tensor<f32>| g(t);
            fn inner(t: &Tensor<f32>) {}
        }",
    );
    for part in [
        "fn f<'s>(",
        "a: &Tensor<'s, f32>",
        "Pair<'s>",
        "Scope<'s>",
        "Ragged<'s, u32>",
        "Cow<'_, str>",
        "Scalar<'s, f32>",
        "|t: &Tensor<'s, f32>|",
        "inner(t: &Tensor<f32>)",
    ] {
        assert!(all.contains(part), "{part}:\n{all}");
    }
    // The user's own lifetime is the step's.
    let own = text("fn f<'a>(a: &Tensor<'a, f32>, b: &Tensor<f32>) -> Result<Tensor<f32>> {}");
    assert!(
        own.contains("fn f<'a>(a: &Tensor<'a, f32>, b: &Tensor<'a, f32>) -> Result<Tensor<'a, f32>>"),
        "{own}"
    );
    // Nothing to fill, nothing declared; a step of the body's own is not the function's.
    let none = text("fn f(n: usize) -> usize { let t: Tensor<f32> = g(); n }");
    assert!(none.contains("fn f(n: usize)") && none.contains("let t: Tensor<f32>"), "{none}");
    let header = expansion(
        "",
        "impl Layer for Wrapper<Tensor<f32>> { fn f(&self, x: &Tensor<f32>) -> Tensor<f32> {} }",
    );
    assert!(header.contains("impl<'s> Layer for Wrapper<Tensor<'s, f32>>"), "{header}");
    assert!(header.contains("fn f(&self, x: &Tensor<'s, f32>) -> Tensor<'s, f32>"), "{header}");
}

#[test]
fn helpers_are_no_graphs() {
    for item in [
        "fn f(x: &Tensor<f32>, n: usize) -> Result<Tensor<f32>> { g(x) }",
        "fn f(x: &Tensor<f32>) -> Tensor<f32> { g(x) }",
        "fn f(m: &Model) -> Result<usize> { g(m) }",
        "fn f(x: &mut Tensor<f32>) -> Result<()> { g(x) }",
        "fn f<T: ?Sized>(x: &Tensor<f32>, t: &T) -> Result<()> { g(x) }",
        "const fn f(x: &Tensor<f32>) -> Result<()> { g(x) }",
    ] {
        let text = expansion("", item);
        assert!(!text.contains("FGraph") && text.contains("g("), "{text}");
        assert_eq!(errors("", item), [""; 0]);
    }
}

/// A parameter that borrows may lead to state as well as one that owns.
#[test]
fn state_behind_a_borrowing_parameter_keeps_regions_in_place() {
    refused(
        "fn f(x: &Tensor<f32>, view: &View<'_>) -> Result<Tensor<f32>> {
             ops::store(view.keys, x)?;
             let old = #[eager(early)] ops::load(x.scope(), view.keys)?;
             ops::add(x, &old)
         }",
        "`view` may hold state",
        "remove `early`",
    );
}

/// The code of a help, followed to the letter.
#[track_caller]
fn accepted(item: &str) {
    assert_eq!(errors("", item), Vec::<String>::new());
}

#[test]
fn attributes_beside_the_own_one() {
    let body = "{ ops::scale(x, n as f32) }";
    for (attribute, message, help) in [
        ("#[graphable]", "`#[graphable]` is given twice", "remove one"),
        ("#[graphable::graphable]", "`#[graphable]` is given twice", "remove one"),
        ("#[eager]", "`#[eager]` marks an expression", "`#[eager] f(x)?`"),
        ("#[piecewise]", "`#[piecewise]` marks a call", "`#[piecewise] f(…)`"),
        ("#[host]", "`#[host]` marks a parameter or a `let`", "`#[host] x: &Tensor<f32>`"),
        ("#[key]", "`#[key]` marks a parameter or a `let`", "`#[key] n: usize`"),
        ("#[dims(n, 4)]", "`#[dims]` marks a parameter", "`#[dims(n, 4)] x: &Tensor<f32>`"),
        (
            "#[target_feature(enable = \"avx2\")]",
            "cannot have `#[target_feature]`",
            "remove `#[target_feature]`",
        ),
    ] {
        let function =
            format!("{attribute} fn f(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {body}");
        refused(&function, message, help);
    }
    // A graph only if it is called as one: the processor's extensions do not matter to a helper.
    accepted(
        "#[target_feature(enable = \"avx2\")] fn f(x: &Tensor<f32>) -> Result<Tensor<f32>> { ops::neg(x) }",
    );
    accepted("#[inline] fn f(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> { ops::neg(x) }");
    refused(
        "#[graphable] impl M { fn f(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> { g(x) } }",
        "twice",
        "one",
    );
    let method = "fn f(&self, #[host] x: &Tensor<f32>) -> Result<Tensor<f32>> { g(x) }";
    refused(&format!("impl M {{ #[graphable] {method} }}"), "`#[graphable]` is given twice", "remove one");
    accepted(&format!("impl M {{ {method} }}"));
}

#[test]
fn parameters_without_a_name() {
    refused(
        "fn f(x: &Tensor<f32>, #[key] _: usize) -> Result<Tensor<f32>> { ops::neg(x) }",
        "parameters are plain names",
        "give it a name, such as `_unused`",
    );
    accepted("fn f(x: &Tensor<f32>, #[key] _unused: usize) -> Result<Tensor<f32>> { ops::neg(x) }");
}

#[test]
fn tensors_for_ever() {
    for (ty, help) in [
        ("&Tensor<'static, f32>", "write `x: &Tensor<f32>`"),
        ("&[Tensor<'static, f32>]", "write `x: &[Tensor<f32>]`"),
    ] {
        let function =
            |ty: &str| format!("fn f(x: {ty}, y: &Tensor<f32>) -> Result<Tensor<f32>> {{ g(x, y) }}");
        refused(&function(ty), "`x` is said to live for `'static`", help);
        accepted(&function(&ty.replace("'static, ", "")));
    }
}

#[test]
fn functions_of_an_impl() {
    let (message, help) = ("`f` is a function of an `impl`", "write `#[graphable] impl …` instead");
    refused("fn f(x: &Self, #[key] n: usize) -> Result<Tensor<f32>> { g(x) }", message, help);
    refused("fn f(#[host] x: &Tensor<f32>) -> Result<Tensor<f32>> { g(x, Self::K) }", message, help);
    // Nothing says that it is a graph.
    accepted("fn f(x: &Tensor<f32>) -> Result<Tensor<f32>> { ops::scale(x, Self::K) }");
    accepted("fn f(#[host] x: &Tensor<f32>) -> Result<Tensor<f32>> { impl I for S { type T = Self; } g(x) }");
    accepted(
        "fn f(#[host] x: &Tensor<f32>) -> Result<Tensor<f32>> { { impl I for S { type T = Self; } } g(x) }",
    );
}
