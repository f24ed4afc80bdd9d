//! Types that only rustc knows, and numbers of each type, by the two texts of a kernel.

use super::expand;

/// A kernel's expansion, and its text for GPUs.
fn texts(args: &str, item: &str) -> (String, String) {
    struct Text(Option<String>);
    impl<'ast> syn::visit::Visit<'ast> for Text {
        fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
            if let (syn::Member::Named(name), syn::Expr::Lit(lit)) = (&field.member, &field.expr)
                && let (true, syn::Lit::Str(text)) = (name == "text", &lit.lit)
            {
                self.0 = Some(text.value());
            }
            syn::visit::visit_field_value(self, field);
        }
    }
    let tokens = expand(&args.parse().unwrap(), item.parse().unwrap());
    let file: syn::File = syn::parse2(tokens).expect("the expansion is Rust");
    let mut text = Text(None);
    syn::visit::Visit::visit_file(&mut text, &file);
    (prettyplease::unparse(&file), text.0.expect("a kernel has a text"))
}

#[track_caller]
fn has(text: &str, part: &str) {
    assert!(text.contains(part), "no `{part}` in\n{text}");
}

/// The one error of a kernel.
#[track_caller]
fn refused(item: &str, message: &str, help: &str) {
    let text = expand(&"".parse().unwrap(), item.parse().unwrap()).to_string();
    assert_eq!(text.matches("compile_error").count(), 1, "{text}");
    has(&text, message);
    has(&text, help);
}

#[test]
fn a_method_of_several_types_leaves_a_type_open() {
    let (rust, cuda) = texts("", "fn f(a: f64) -> bool { let s = wide(a); let r = s.sqrt(); r.is_nan() }");
    has(&rust, "let r = (s).sqrt();");
    has(&cuda, "${r0} s_1 = ${c0}(a_0);");
    has(&cuda, "${r0} r_2 = lang::sqrt(s_1);");
    let (rust, cuda) = texts("", "fn f(a: f64) -> f64 { let s = wide(a); s.exp().atan2(s.powi(2)) }");
    has(&rust, "kernel::lang::exp(s)");
    has(&cuda, "return lang::atan2(lang::exp(s_1), lang::powi(s_1, 2));");
    let choice = "(match k { 0 => wide(x), _ => wide(y) }).is_negative()";
    let (rust, cuda) = texts("", &format!("fn f(k: i32, x: i64, y: i64) -> bool {{ {choice} }}"));
    has(&cuda, "${r0} t1;");
    // Not the method of floats.
    has(&rust, "kernel::lang::shl(");
    let (_, cuda) = texts("", "fn f(_x: f32) -> bool { let n = crate::LIMIT; n.is_negative() }");
    has(&cuda, "${t0} n_1 = ${k0};");
}

#[test]
fn the_result_of_a_method_is_of_the_open_type() {
    let (_, cuda) = texts("", "fn f(a: f64) -> f64 { let r = wide(a).sqrt(); r }");
    has(&cuda, "f64 r_1 = lang::sqrt(${c0}(a_0));");
}

#[test]
fn rustc_checks_a_method_of_one_type() {
    let (rust, cuda) = texts("", "fn f(a: f64) -> bool { let (b, c) = two(a); b.to_bits() == 0 }");
    has(&rust, "let __value: ::core::primitive::f32 = b;");
    has(&cuda, "f32 b_1 = t1.v0;");
    let (rust, _) = texts("", "fn f(a: i64) -> bool { wide(a).unsigned_abs() == wide(-a).unsigned_abs() }");
    has(&rust, "let __value: ::core::primitive::i32 = Callee0::scalar(a);");
    let (rust, _) = texts("", "fn f(a: f64) -> bool { f32::is_nan(wide(a)) }");
    has(&rust, "let __value: ::core::primitive::f32 = Callee0::scalar(a);");
    let (rust, _) = texts("", "fn f(a: f32) -> f32 { a.sin() }");
    assert!(!rust.contains("__value"), "{rust}");
}

#[test]
fn an_index_of_the_type_of_a_parameter_is_not_cut() {
    let item =
        "fn f(x: View<f32, 1>, [i]: [i32; 1]) -> f32 { let n = 3; if wide(n) { x.at([n]) } else { 0.0 } }";
    let (_, cuda) = texts("index", item);
    has(&cuda, "((i64)(n_2) < 0ll || (i64)(n_2) > 4294967295ll ? 0xffffffffu : (u32)(n_2))");
}

#[test]
fn a_float_has_the_range_of_its_type() {
    let (rust, cuda) = texts("", "fn f(x: f64) -> f64 { x.min(1e300).max(-1e300) }");
    has(&rust, "1e300f64");
    has(&cuda, "lang::min(x_0, 1e300)");
    refused("fn f(x: f32) -> f32 { x.min(1e39) }", "too large for an `f32`", "`f32::MAX`");
    refused("fn f(x: f32) -> f32 { x.min(-1e39f32) }", "too large for an `f32`", "`f32::MAX`");
    refused("fn f(x: f32) -> bool { wide(1e300) }", "too large for an `f32`", "`1e300f64`");
    refused("fn f(x: f64) -> f64 { x.min(1e400) }", "too large for an `f64`", "`f64::MAX`");
    refused("fn f(x: u32) -> u32 { let _limit = 1e400; x }", "is not known", "0.5f32");
}
