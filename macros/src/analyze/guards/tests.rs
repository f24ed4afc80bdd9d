//! What is asked about values that end before a boundary.

use crate::expand::tests::host_code_of;

/// Returns the questions that the statements before a boundary lead to, each as it is written, without spaces.
fn asked(statements: &str) -> Vec<String> {
    let (body, _, messages) = host_code_of(&format!(
        "fn f(x: &Tensor<f32>) -> Result<Tensor<f32>> {{
            {statements}
            let h = lin(x)?;
            let e = #[eager] mix(&h)?;
            lin(&e)
        }}"
    ));
    assert_eq!(messages, "", "{statements}");
    let body: String = body.split_whitespace().collect();
    let questions = body.split("EndsWithSegment::ends((").skip(1);
    let questions = questions.map(|q| q.split(".what()").next().unwrap_or_default());
    let path = "::graphable::__private::";
    questions.map(|q| q.trim_start_matches('&').replace(path, "").trim_end_matches(",)").to_owned()).collect()
}

fn assert_asked(statements: &str, expected: &[&str]) {
    let asked: Vec<String> = asked(statements).iter().map(|q| q.trim_end_matches(')').to_owned()).collect();
    let expected: Vec<&str> = expected.iter().map(|q| q.trim_end_matches(')')).collect();
    assert_eq!(asked, expected, "{statements}");
}

#[test]
fn a_pattern_that_moves_nothing_leaves_the_variable() {
    for pattern in ["let ref q = g;", "let _ = g;", "_ = g;", "let ref mut q = g;", ""] {
        assert_asked(&format!("let g = autocast(2.0); {pattern}"), &["Ends(&g)"]);
    }
    assert_asked("let w = pair(); let (ref a, _) = w;", &["EndsIn(&w,__part0)", "EndsIn(&w,__part1)"]);
    // It is moved afterwards.
    assert_asked("let g = autocast(2.0); let _ = g; drop(g);", &[]);
}

#[test]
fn a_pattern_that_moves_a_part_leaves_the_rest() {
    assert_asked("let w = pair(); let (_, t) = w; drop(t);", &["EndsIn(&w,__part0)"]);
    assert_asked("let w = pair(); let ((_, a), t) = w; drop((a, t));", &["EndsIn(&w,__part0)"]);
    let named = "let w = wrap(); let Wrap { n, g: _ } = w; drop(n);";
    assert_asked(named, &["EndsItself(&w)", "EndsIn(&w,__part0)"]);
    // What `..` stands for has no names.
    assert_asked("let w = wrap(); let Wrap { n, .. } = w; drop(n);", &["Ends(&w)"]);
    assert_asked("let w = pair(); let (t, ..) = w; drop(t);", &["Ends(&w)"]);
    assert_asked("let t; let w = pair(); (_, t) = w; drop(t);", &["Ends(&w)"]);
}

#[test]
fn a_pattern_that_moves_everything_leaves_nothing() {
    assert_asked("let w = pair(); let (a, b) = w; drop(a); drop(b);", &[]);
    assert_asked("let w = pair(); let [a, b] = w; drop(a); drop(b);", &[]);
    // But for an effect of a type whose fields are copied.
    assert_asked("let w = wrap(); let Wrap { g, n } = w; drop(g); drop(n);", &["EndsItself(&w)"]);
    // What it moves to is asked.
    assert_asked("let w = pair(); let (a, b) = w; drop(b);", &["Ends(&a)"]);
    assert_asked("let w = pair(); let held = w;", &["Ends(&held)"]);
}

#[test]
fn a_value_made_of_others_is_asked_for_them() {
    assert_asked("let g = autocast(2.0); let all = [g];", &["Ends(&g)", "EndsItself(&all)"]);
    assert_asked(
        "let g = autocast(2.0); let all = [g]; let [ref q] = all;",
        &["Ends(&g)", "EndsItself(&all)"],
    );
    let wrapped = "let g = autocast(2.0); let w = Wrap { g, n: 1 };";
    assert_asked(&format!("{wrapped} let Wrap {{ n, .. }} = w; drop(n);"), &["Ends(&g)", "EndsItself(&w)"]);
    assert_asked(&format!("{wrapped} drop(w);"), &[]);
    assert_asked(&format!("{wrapped} let Wrap {{ n, g }} = w; drop((n, g));"), &["EndsItself(&w)"]);
    // Nothing that a call made is in it.
    assert_asked("let w = (1, 2); let (_, n) = w;", &[]);
    assert_asked("let h = ops::neg(x)?; let w = (h, 2); let (ref t, _) = w;", &[]);
}

#[test]
fn a_temporary_that_a_pattern_borrows_from_has_a_name() {
    let ends = &["EndsIn(&__held0,__part0)", "Ends(&n)"];
    assert_asked("let (ref g, n) = (autocast(2.0), 1);", ends);
    assert_asked("let Wrap { ref n, .. } = wrap();", &["Ends(&__held0)"]);
    assert_asked("let Wrap { n, .. } = &wrap();", &["Ends(&__v1)"]);
    assert_asked("let Wrap { n, .. } = &make.wrap();", &["Ends(&__held0)"]);
    assert_asked("let n = &wrap().n;", &["Ends(&__held0)"]);
    assert_asked("let data = &*lock();", &["Ends(&__held0)"]);
    assert_asked("let _ = &autocast(2.0);", &["Ends(&__v1)"]);
    assert_asked("let _ = &scopes.autocast(2.0);", &["Ends(&__held0)"]);
    assert_asked("let g = &scopes.autocast(2.0);", &["Ends(&*g)"]);
    // The type of the list is known at its last use.
    let list = "let (ref mut list, t) = (Vec::new(), lin(x)?); list.push(t); list.sort();";
    assert_asked(list, &["Ends(&*list)"]);
    // Nothing lives on.
    assert_asked("let _ = autocast(2.0);", &[]);
    assert_asked("let (_, n) = (autocast(2.0), 1); drop(n);", &[]);
    assert_asked("let Layer { w, .. } = &layer;", &[]);
}

#[test]
fn a_value_that_is_written_out_is_asked() {
    // Nothing uses it, so it is in host code.
    assert_asked("let g = Literal { by: 4.0 };", &[]);
    assert_asked("let g = Literal { by: 4.0 }; let _r = &g;", &["EndsItself(&g)"]);
    assert_asked(
        "let g = Holds { it: Unit }; let _b = n & 1 == 0 && { drop(g); true };",
        &["EndsItself(&g)", "EndsItself(&*__part0)", "Ends(&_b)"],
    );
}

#[test]
fn a_move_closure_has_what_it_captures() {
    let seen = "let all = list(autocast(2.0)); let f = move || seen(&all);";
    // Asked before it goes, unless the closure ends.
    assert_asked(&format!("{seen} f();"), &["Ends(&all)"]);
    assert_asked(&format!("{seen} f(); drop(f);"), &[]);
    assert_asked(&format!("{seen} let g = [f]; end(g);"), &[]);
    assert_asked(&format!("{seen} let g = [f];"), &["Ends(&all)", "EndsItself(&g)"]);
    assert_asked(&format!("{seen} if n & 1 == 0 {{ drop(f); }}"), &["Ends(&all)"]);
    assert_asked("let g = autocast(2.0); { let f = move || seen(&g); f(); }", &[]);
    assert_asked("let g = autocast(2.0); with(move || seen(&g));", &[]);
    assert_asked("let g = autocast(2.0); let k = with(move || seen(&g));", &["Ends(&k)"]);
    assert_asked("let g = autocast(2.0); let f = Some(move || seen(&g));", &["Ends(&f)"]);
    assert_asked("let g = autocast(2.0); if n & 1 == 0 { with(move || seen(&g)); }", &["Ends(&g)"]);
    // It may have a field alone.
    assert_asked("let w = wrap(); { let f = move || seen(&w.g); f(); }", &["Ends(&w)"]);
    // One that nothing calls is left out.
    assert_asked("let g = autocast(2.0); let f = move || seen(&g);", &["Ends(&g)"]);
    assert_asked("let g = autocast(2.0); let f = || drop(g);", &["Ends(&g)"]);
    // One that takes a value ends it where it is called.
    let takes = "let g = autocast(2.0); let f = || drop(g);";
    assert_asked(&format!("{takes} f();"), &[]);
    assert_asked(&format!("{takes} assert!(f());"), &[]);
    assert_asked(&format!("{takes} end(f);"), &[]);
    assert_asked(&format!("{takes} seen(&f);"), &["Ends(&g)"]);
    let inner = "let g = autocast(2.0); let f = || { let i = move || seen(&g); i(); };";
    assert_asked(&format!("{inner} f();"), &[]);
    assert_asked(&format!("{inner} seen(&f);"), &["Ends(&g)"]);
    // A borrow moves nothing.
    assert_asked("let g = autocast(2.0); let f = || seen(&g); f();", &["Ends(&g)"]);
}

#[test]
fn what_takes_over_host_values_stays_in_host_code() {
    let (body, _, messages) = host_code_of(
        "fn f(x: &Tensor<f32>, n: usize) -> Result<Tensor<f32>> {
            let h = lin(x)?;
            let g = if n & 1 == 0 { Some(autocast(n)) } else { None };
            let kept = if n & 1 == 0 { Some(g) } else { None };
            let e = #[eager] mix(&h)?;
            lin(&e)
        }",
    );
    assert_eq!(messages, "");
    let (_, host_code) = body.split_once("let g = ").expect(&body);
    let (before, _) = host_code.split_once("mix(&h)").expect(&body);
    assert!(before.contains("if n & 1 == 0 { Some(g) } else { None }"), "{body}");
}

#[test]
fn what_nothing_uses_is_made_before_the_last_segment() {
    let body_of = |statements: &str| {
        let (body, _, messages) = host_code_of(&format!(
            "fn f(x: &Tensor<f32>, n: usize) -> Result<Tensor<f32>> {{
                let g = Literal {{ by: 4.0 }};
                let e = #[eager] mix(&x)?;
                {statements}
                lin(&e)
            }}"
        ));
        assert_eq!(messages, "");
        body
    };
    let body = body_of("let kept = Holds { it: autocast(n) };");
    assert!(body.contains("let __kept0 = Holds { it: autocast(n) };"), "{body}");
    // The closure is left out, so host code has the literal.
    let body = body_of("let f = || drop(g);");
    assert!(body.contains("let __kept0 = Literal { by: 4.0 };"), "{body}");
}

#[test]
fn what_an_uncalled_closure_takes_is_kept_to_the_end() {
    let (body, _, messages) = host_code_of(
        "fn f(x: &Tensor<f32>) -> Result<Tensor<f32>> {
            let h = lin(x)?;
            let g = Literal { by: 4.0 };
            let f = || drop(g);
            let e = #[eager] mix(&h)?;
            lin(&e)
        }",
    );
    assert_eq!(messages, "");
    assert_eq!(body.matches("= Literal { by: 4.0 };").count(), 1, "{body}");
}

#[test]
fn a_pattern_in_a_block_leaves_what_it_does_not_bind() {
    assert_asked("let g = autocast(2.0); { let _ = g; }", &["Ends(&g)"]);
    assert_asked("let w = pair(); { let (_, k) = w; end(k); }", &["Ends(&w)"]);
    assert_asked("let w = pair(); { let (a, b) = w; end((a, b)); }", &[]);
    assert_asked("let g = [Unit]; { let _ = g; }", &["EndsItself(&g)", "EndsItself(&*__part0)"]);
    assert_asked("let g = [Unit]; { let _ = g; let _moved = g; }", &[]);
}

#[test]
fn a_reference_that_is_moved_leaves_what_it_borrows_from() {
    assert_asked("let g = Holds { it: &Unit }; { let _moved = g; }", &["EndsItself(&**__part0)"]);
    assert_asked(
        "let g = (Unit, &Holds { it: Unit }); end(g);",
        &["EndsItself(&*__part0)", "EndsItself(&**__part1)"],
    );
    assert_asked("let g = (Unit, 1usize); end(g);", &[]);
}

#[test]
fn a_value_that_each_segment_makes_lives_where_another_one_ends_it() {
    let before = "let g = Literal { by: 4.0 }; let e = #[eager] mix(&x)?;";
    assert_asked(&format!("{before} let _r = &g; drop(g);"), &["EndsItself(&g)"]);
    let returns =
        |ends: &str| format!("let g = Literal {{ by: 4.0 }}; if n == 0 {{ {ends} return lin(x); }}");
    assert_asked(&returns("drop(g);"), &["EndsItself(&g)"]);
    assert_asked(&format!("{} drop(g);", returns("")), &[]);
}

#[test]
fn a_closure_that_takes_a_value_may_be_called_under_another_name() {
    let takes = "let g = list(autocast(2.0)); let f = || drop(g);";
    for calls in [
        "let r = f; r();",
        "let w = (f, 1usize); (w.0)();",
        "let (r, k) = (f, 1usize); r();",
        "let r; r = f; r();",
    ] {
        assert_asked(&format!("{takes} {calls}"), &[]);
    }
    assert_asked("let g = autocast(2.0); let r = boxed(|| drop(g)); r();", &["Ends(&r)"]);
}

#[test]
fn a_value_that_is_moved_into_an_assigned_variable_ends_with_it() {
    let o = "let mut o = none(); let g = autocast(2.0);";
    assert_asked(&format!("{o} o = Some(g); seen(&o);"), &["Ends(&g)", "Ends(&o)", "EndsItself(&o)"]);
    assert_asked(&format!("{o} o = Some(move || seen(&g)); seen(&o);"), &["Ends(&o)", "Ends(&o)"]);
    let w = "let g = autocast(2.0); let w;";
    assert_asked(&format!("{w} {{ w = g; }} seen(&w);"), &["Ends(&g)"]);
    assert_asked(&format!("{w} {{ w = g; }} drop(w);"), &[]);
    let tuple = "let a; let b; { (a, b) = (autocast(2.0), 1.0); } seen(&a); seen(&b);";
    assert_asked(tuple, &["EndsItself(&__given0_0)"]);
    assert_asked(
        &format!("{w} if n == 0 {{ w = Some(move || seen(&g)); }} else {{ w = None; }} seen(&w);"),
        &["Ends(&g)"],
    );
    assert_asked(
        &format!("{w} if n == 0 {{ w = Some(g); }} else {{ w = None; }} let all = (w, 1usize);"),
        &["Ends(&g)", "EndsItself(&w)", "EndsItself(&all)"],
    );
}

#[test]
fn a_macro_in_a_closure_may_ignore_what_it_names() {
    assert_asked("let g = autocast(2.0); { let f = move || stringify!(g).len(); f(); }", &["Ends(&g)"]);
    assert_asked("let g = autocast(2.0); { let f = move || { let _ = g; }; f(); }", &["Ends(&g)"]);
    assert_asked("let g = autocast(2.0); { _ = g; }", &["Ends(&g)"]);
}

#[test]
fn a_value_that_is_made_of_one_of_the_same_name_is_asked_for_it() {
    for again in ["let mut g = g;", "let g = (g);", "let g: Guard = g;"] {
        assert_asked(&format!("let g = autocast(2.0); {again}"), &["Ends(&g)"]);
        assert_asked(&format!("let g = autocast(2.0); {again} drop(g);"), &[]);
    }
    assert_asked("let g = autocast(2.0); let g = (g, 1usize);", &["Ends(&g)", "EndsItself(&g)"]);
    assert_asked("let g = Literal { by: 4.0 }; let g = g;", &["Ends(&g)"]);
    assert_asked("let g = pair(); let (g, k) = g; end(k);", &["Ends(&g)"]);
    let swapped = "let (a, b) = (autocast(1.0), autocast(2.0)); let (a, b) = (b, a);";
    assert_asked(swapped, &["Ends(&a)", "Ends(&b)"]);
}

#[test]
fn what_is_moved_without_a_call_is_moved() {
    for moves in [
        "let k = r?;",
        "let (a, k) = r?;",
        "end(r?);",
        "r?.len();",
        "let all = vec![r]; drop(all);",
        "r.into_iter().for_each(end);",
        "r.into_iter().try_for_each(end)?;",
        "r.finish();",
        "r.check()?;",
        "let k = *r;",
    ] {
        let asked = asked(&format!("let r = pair(); {moves}"));
        let (body, _, _) = host_code_of(&format!(
            "fn f(x: &Tensor<f32>) -> Result<Tensor<f32>> {{ let r = pair(); {moves} let e = #[eager] mix(x)?; lin(&e) }}"
        ));
        let body: String = body.split_whitespace().collect();
        let moved = body.find(&moves.split_whitespace().collect::<String>());
        let question = body.find("Ends(&r)");
        assert!(question.is_none_or(|at| Some(at) < moved), "{moves}: {asked:?} {body}");
    }
    // The type of a list is known from what is done with it.
    assert_asked("let mut r = list(); r.push(1);", &["Ends(&r)"]);
}

#[test]
fn nothing_is_asked_where_only_a_value_follows() {
    let (body, _, messages) = host_code_of(
        "fn f(x: &Tensor<f32>) -> Result<Tensor<f32>> {
            let h = #[eager] mix(x)?;
            let g = autocast(2.0);
            let h = lin(&h)?;
            Ok(h)
        }",
    );
    assert_eq!(messages, "");
    assert!(!body.contains("Ends"), "{body}");
}

#[test]
fn a_tuple_struct_in_capitals_is_no_constant() {
    assert_asked("let g = AMP(1); seen(&g);", &["EndsItself(&g)"]);
    assert_asked("let g = LIMIT; seen(&g);", &[]);
}
