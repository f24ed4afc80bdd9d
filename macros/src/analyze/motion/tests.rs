//! The regions that move, the direction, and the obstacles.

use crate::expand::tests::{host_code_of, readable};

/// Returns the order in which the host code of a body runs: `S` for a segment, otherwise the number in a
/// region's call.
fn order(body: &str) -> String {
    let (text, _, messages) = function(body);
    assert_eq!(messages, "", "{text}");
    let text = readable(&text);
    // The second form is for bodies that write their outputs to a place.
    let segments = ["segment(", "segment_into("].into_iter().flat_map(|call| text.match_indices(call));
    let mut places: Vec<(usize, String)> = segments.map(|(at, _)| (at, "S".into())).collect();
    places.extend(text.match_indices("eager").filter_map(|(at, _)| {
        let digit = text[at + 5..].chars().next().filter(char::is_ascii_digit)?;
        Some((at, digit.to_string()))
    }));
    places.sort();
    places.into_iter().map(|(_, what)| what).collect()
}

/// The errors about a body.
fn errors(body: &str) -> String {
    function(body).2
}

fn function(body: &str) -> (String, usize, String) {
    host_code_of(&format!(
        "fn f(x: &Tensor<f32>, y: &Tensor<f32>, model: &Model, kv: &Kv) -> Result<Tensor<f32>> {{ {body} }}"
    ))
}

#[track_caller]
fn blocked(body: &str, reason: &str) {
    let messages = errors(body);
    assert!(messages.contains("[G069]"), "nothing is wrong with {body}: {messages}");
    assert_eq!(messages.matches("compile_error").count(), 1, "{messages}");
    assert!(messages.contains(reason), "{messages}");
    assert!(messages.contains("help: "), "{messages}");
}

#[track_caller]
fn without_effect(body: &str, reason: &str) {
    let messages = errors(body);
    assert!(messages.contains("[G009]"), "nothing is wrong with {body}: {messages}");
    assert_eq!(messages.matches("compile_error").count(), 1, "{messages}");
    assert!(messages.contains(reason), "{messages}");
}

#[test]
fn early_regions_leave_one_segment_behind_them() {
    let body = |edge: &str| {
        format!(
            "let a = ops::exp(x)?;
             let b = #[eager{edge}] eager1(y)?;
             let c = ops::add(&a, &b)?;
             #[eager{edge}] eager2(y)?;
             ops::neg(&c)"
        )
    };
    assert_eq!(order(&body("")), "S1S2S");
    assert_eq!(order(&body("(early)")), "12S");
}

#[test]
fn late_regions_have_one_segment_before_them() {
    let body = |edge: &str| {
        format!(
            "let a = ops::exp(x)?;
             let b = #[eager{edge}] eager1(&a)?;
             let c = ops::neg(&a)?;
             #[eager{edge}] eager2(&c)?;
             let d = ops::exp(&c)?;
             Ok((d, b))"
        )
    };
    assert_eq!(order(&body("")), "S1S2S");
    assert_eq!(order(&body("(late)")), "S12");
}

#[test]
fn a_late_region_stands_behind_the_blocks_value() {
    for value in ["ops::exp(&a)", "Ok(ops::exp(&a)?)", "a.twice()"] {
        assert_eq!(order(&format!("let a = ops::neg(x)?; #[eager(late)] eager1(&a)?; {value}")), "S1");
    }
    // The same inside, if the value is not a result.
    let inner = "let b = { let a = ops::neg(x)?; #[eager(late)] eager1(&a)?; ops::exp(&a)? }; #[eager] eager2(&b)?; ops::neg(&b)";
    assert_eq!(order(inner), "S12S");
}

#[test]
fn other_arguments_of_the_region_stay() {
    let (text, _, messages) = function(
        "let a = ops::exp(x)?;
         #[key] let n: usize = #[eager(cx, early)] cx.item(y)? as usize;
         let b = #[eager(early, support = Always)] eager1(y)?;
         ops::scale(&ops::add(&a, &b)?, n)",
    );
    assert_eq!(messages, "");
    let text = readable(&text);
    assert!(text.contains("let cx: &::graphable::Eager<'s> = &__region"), "{text}");
    assert!(text.contains("Support::Always"), "{text}");
    assert_eq!(text.matches("::segment(").count(), 1, "{text}");
}

#[test]
fn boundaries_keep_their_order() {
    // The second stops after the first, which does not move.
    assert_eq!(
        order(
            "let a = ops::exp(x)?; #[eager] eager1(&a)?; let b = ops::neg(&a)?; #[eager(early)] eager2(y)?; ops::exp(&b)"
        ),
        "S12S"
    );
    assert_eq!(
        order(
            "let a = ops::exp(x)?; #[eager(late)] eager1(&a)?; let b = ops::neg(&a)?; #[eager] eager2(y)?; ops::exp(&b)"
        ),
        "S12S"
    );
}

#[test]
fn jumps_and_host_lets_are_not_passed() {
    for stop in [
        "if model.on { return Ok(a); }",
        "#[host] let n = count();",
        "#[key] let n = count(&a);",
        "let b = #[piecewise] layer(&a)?;",
        "if model.on { #[eager] eager0(x)?; }",
    ] {
        let (text, _, messages) = function(&format!(
            "let a = ops::exp(x)?; {stop} let c = ops::neg(x)?; #[eager(early)] eager1(y)?; ops::exp(&c)"
        ));
        assert_eq!(messages, "", "{stop}");
        let text = readable(&text);
        let (first, region) = (text.find("ops::exp(x)"), text.find("eager1"));
        let (stop, last) = (
            text.find("return").or(text.find("count")).or(text.find("layer")).or(text.find("eager0")),
            text.find("ops::neg(x)"),
        );
        assert!(first < stop && stop < region && region < last, "{text}");
    }
    // One that needs nothing of the work above goes along, in its order.
    let host = |edge: &str| {
        format!(
            "let a = ops::exp(x)?; #[key] let eager1 = eager1(y); let b = ops::neg(&a)?; #[eager({edge})] eager2(y)?; let c = ops::exp(&b)?; Ok(c)"
        )
    };
    assert_eq!(order(&host("early")), "112S");
    assert_eq!(order(&host("late")), "11S2");
    let turns = "let mut h = ops::exp(x)?;
        for layer in &model.layers {
            let a = ops::neg(&h)?;
            #[eager(early)] eager1(y)?;
            h = ops::mul(&a, &layer.w)?;
        }
        ops::exp(&h)";
    assert_eq!(order(turns), "S1SS");
}

#[test]
fn host_statements_go_along_where_they_are_needed() {
    let early =
        "let a = ops::exp(x)?; let w = &model.w; let b = #[eager(early)] eager1(y, w)?; ops::add(&a, &b)";
    assert_eq!(order(early), "1S");
    let late = "let a = ops::exp(x)?; let (b, c) = #[eager(late)] eager1(y)?; let d = &b; let e = ops::neg(&a)?; Ok((e, c, d))";
    assert_eq!(order(late), "S1");
    let closure = "let a = ops::exp(x)?; let f = |t| eager1(t); #[eager(early)] f(y)?; ops::neg(&a)";
    assert!(errors(closure).is_empty());
}

#[test]
fn data_flow_keeps_a_region() {
    blocked(
        "let a = ops::exp(x)?; #[eager(early)] g(&a)?; ops::neg(&a)",
        "`a` has its value from the code that `early`",
    );
    blocked("let a = ops::exp(x)?; let b = #[eager(late)] g(y)?; ops::add(&a, &b)", "this needs `b`");
    // Through a host statement that cannot go along.
    blocked(
        "let a = ops::exp(x)?; let r = &a; #[eager(early)] g(r)?; ops::neg(&a)",
        "`a` has its value from",
    );
    // Through a closure.
    blocked(
        "let a = ops::exp(x)?; let f = |t| ops::add(t, &a); #[eager(early)] g(f(y)?)?; ops::neg(&a)",
        "`a` has its value from",
    );
    blocked(
        "let mut h = ops::exp(x)?; let a = #[eager] g(x)?; h = ops::neg(&h)?; #[eager(early)] g(&h)?; ops::add(&h, &a)",
        "`h` changes",
    );
}

#[test]
fn names_with_two_meanings_keep_a_region() {
    blocked(
        "let a = ops::exp(y)?; let y = #[eager(early)] g(x)?; ops::add(&a, &y)",
        "`y` is also what a region calls its value",
    );
    blocked(
        "let a = ops::exp(x)?; #[eager(late)] g(x)?; let x = ops::neg(&a)?; Ok(x)",
        "`x` means something else after",
    );
}

#[test]
fn a_value_that_is_taken_keeps_a_region() {
    blocked(
        "let a = ops::exp(x)?; let z = #[eager] g(y)?; let b = ops::add(&a, &z)?; #[eager(early)] g(a)?; ops::neg(&b)",
        "`a` is taken by value",
    );
    blocked("let a = ops::exp(x)?; #[eager(late)] g(&a)?; drop(a); ops::neg(x)", "`a` is taken by value");
    // References and numbers are not.
    assert_eq!(
        order("let n = 2; let a = ops::scale(x, n)?; #[eager(early)] eager1(x, n)?; ops::neg(&a)"),
        "1S"
    );
}

#[test]
fn state_keeps_a_region() {
    blocked("ops::store(&kv.k, x)?; let a = #[eager(early)] g(x, kv)?; ops::neg(&a)", "`kv` may hold state");
    blocked(
        "let c = &kv.k; ops::store(&kv.k, x)?; let a = #[eager(early)] g(x, c)?; ops::neg(&a)",
        "`c` may lead to state, and so may `kv`",
    );
    blocked(
        "for (l, k) in model.layers.iter().zip(&kv.layers) { ops::store(k, x)?; #[eager(early)] g(x, kv)?; } ops::neg(x)",
        "`kv` may lead to state, and so may `k`",
    );
    blocked(
        "let k = ops::cache_view(&kv.k).narrow(0, 1, 2)?; let a = ops::read(&k)?; #[eager(early)] g(kv)?; ops::neg(&a)",
        "",
    );
    // Two fields are two states, as are two parameters; a tensor never changes.
    assert_eq!(order("ops::store(&kv.k, x)?; #[eager(early)] eager1(&kv.v)?; ops::neg(x)"), "1S");
    assert_eq!(order("let a = ops::mul(x, &model.w)?; #[eager(early)] eager1(kv)?; ops::neg(&a)"), "1S");
    assert_eq!(
        order("let h = layer(x, kv)?; #[eager(late)] eager1(&h)?; let b = ops::read(&h, &kv.k)?; Ok(b)"),
        "S1"
    );
}

#[test]
fn checks_and_guards_keep_a_region() {
    let ends = "this may end the function";
    blocked("ensure!(model.on); let a = ops::exp(x)?; #[eager(early)] g(y)?; ops::neg(&a)", ends);
    blocked("if model.on { return Err(e); } let a = ops::exp(x)?; #[eager(early)] g(y)?; ops::neg(&a)", ends);
    blocked("#[eager(late)] g(y)?; let a = ops::exp(x)?; assert!(model.on); ops::neg(&a)", ends);
    blocked("check(y)?; #[eager(early)] g(y)?; ops::neg(x)", ends);
    blocked("let _ = check(y)?; #[eager(early)] g(y)?; ops::neg(x)", ends);
    blocked(
        "let a = ops::neg(x)?; #[eager(late)] g(y)?; let _g = enter(); Ok(ops::exp(&a)?)",
        "`_g` is held until the end of its block",
    );
    blocked(
        "let _g = enter(); #[eager(early)] g(y)?; let a = ops::neg(x)?; Ok(a)",
        "`_g` is held until the end of its block",
    );
    blocked(
        "let a = ops::exp(x)?; let _g = #[eager(early)] enter(y)?; ops::neg(&a)",
        "`_g` is held until the end of its block, and `early` changes what runs",
    );
    blocked(
        "let a = ops::exp(x)?; #[eager(early)] { if on() { return Ok(a0); } }; ops::neg(&a)",
        "leaves by `return`",
    );
    blocked(
        "let a = ops::exp(x)?; let Some(b) = #[eager(early)] g(y)? else { return Err(e) }; ops::add(&a, &b)",
        "leaves by `return`",
    );
    // Another's check is nothing to a region that it does not name.
    assert_eq!(order("check(x)?; #[eager(early)] eager1(y)?; ops::neg(x)"), "1S");
}

#[test]
fn macros_of_the_function_keep_a_region() {
    blocked(
        "macro_rules! look { () => { g(&h)? } } let h = ops::exp(x)?; let a = #[eager(early)] look!(); ops::add(&h, &a)",
        "a macro of this function",
    );
    // What is moved along with it is a host value, which may name what would be overtaken.
    blocked(
        "let mut k = n; macro_rules! read { () => { k } } let a = ops::neg(x)?; k = next(k); #[key] let v = read!(); \
         let b = #[eager(early)] g(x, v)?; ops::add(&a, &b)",
        "a macro of this function",
    );
}

#[test]
fn a_move_without_an_effect_is_an_error() {
    without_effect("#[eager(early)] g(x)?; ops::neg(x)", "it is at the beginning of its block");
    without_effect(
        "let a = ops::exp(x)?; #[eager] g(x)?; #[eager(early)] g(y)?; ops::neg(&a)",
        "another boundary is directly above",
    );
    without_effect(
        "let a = ops::exp(x)?; #[eager(late)] g(x)?; Ok(a)",
        "no device work of its block is directly below",
    );
    without_effect(
        "#[eager(late)] g(x)?; if model.on { ops::neg(x) } else { ops::exp(x) }",
        "no device work of its block is directly below",
    );
    without_effect(
        "let a = ops::exp(x)?; if model.on { return Ok(a); } #[eager(early)] g(y)?; ops::neg(&a)",
        "may leave by `return`",
    );
}

#[test]
fn a_region_that_is_a_part_of_a_statement_stays() {
    let part = "this region is a part of one";
    without_effect("let a = ops::exp(x)?; #[eager(early)] g(&a)", part);
    without_effect(
        "let a = ops::exp(x)?; if #[eager(early)] g(y)? { ops::neg(&a) } else { ops::exp(&a) }",
        part,
    );
    without_effect(
        "let a = ops::exp(x)?; let b = if model.on { #[eager(early)] g(y)? } else { h() }; ops::add(&a, &b)",
        part,
    );
}

#[test]
fn misspelt_edges_are_found() {
    let messages = errors("let a = ops::exp(x)?; #[eager(erly)] g(y)?; ops::neg(&a)");
    assert!(messages.contains("[G001]") && messages.contains("did you mean `early`?"), "{messages}");
    assert_eq!(errors("let n: f32 = #[eager(lat)] lat.item(x)?; #[eager] g(n)?; ops::neg(x)"), "");
    let both = errors("let a = ops::exp(x)?; #[eager(early, late)] g(y)?; ops::neg(&a)");
    assert!(both.contains("[G003] a region goes to one place"), "{both}");
}

/// Tests the referents and mutability of names, however they are bound.
#[test]
fn changes_and_state_that_come_in_by_other_ways() {
    for body in [
        "let mut pair = (1usize, 2usize); let r = &mut pair; let a = ops::scale(x, r.1 as f32)?;
         r.1 = #[eager(early)] three(); ops::scale(&a, r.0 as f32)",
        "let mut pair = (1usize, 2usize); let r = &mut pair; let a = ops::scale(x, r.1 as f32)?;
         #[eager(early)] bump(r)?; ops::scale(&a, 1.0)",
        "let mut n = 1usize; let a = ops::scale(x, n as f32)?; #[eager(early)] { bump!(n); }
         ops::scale(&a, n as f32)",
    ] {
        let messages = errors(body);
        assert!(messages.contains("[G069]"), "nothing is wrong with {body}: {messages}");
    }
    blocked(
        "let mut slot: (Option<&State<f32>>,) = (None,); slot.0 = Some(&kv.keys); let a = #[eager] ops::exp(x)?;
         if let Some(keys) = slot.0 { ops::store(keys, &a)?; }
         let old = #[eager(early)] ops::load(x.scope(), &kv.keys)?; ops::add(&a, &old)",
        "state",
    );
    blocked(
        "#[host] let all = { let mut v = Vec::new(); v.push(&kv.keys); v }; ops::store(all[0], x)?;
         let old = #[eager(early)] ops::load(x.scope(), &kv.keys)?; ops::add(x, &old)",
        "state",
    );
    blocked(
        "#[host] let l = kv.layers.get(0).context(1)?; ops::store(l, x)?;
         let old = #[eager(early)] ops::load(x.scope(), &kv.layers)?; ops::add(x, &old)",
        "state",
    );
    // Macros that read do not change anything.
    assert_eq!(
        order(
            "let mut n = 1usize; n += 1; let a = ops::scale(x, n as f32)?;
               #[eager(early)] eager1(&format!(\"{}\", n))?; ops::scale(&a, n as f32)"
        ),
        "1S"
    );
}

/// Statements that move along with a region remain after the check that protects them.
#[test]
fn what_goes_along_is_checked_as_well() {
    let messages = errors(
        "let a = ops::neg(x)?; check(&model.sizes, 3)?; let size = model.sizes[3];
         let b = #[eager(early)] ops::scale(y, size as f32)?; ops::add(&a, &b)",
    );
    assert!(messages.contains("[G069]"), "{messages}");
}
