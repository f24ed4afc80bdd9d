//! Mutable references that live across boundaries: written through by segments, by host code and by functions that get them, given
//! other names, that of their referent among them, and chosen by a condition.

use std::mem;

use graphable::{Mode, graphable, prelude::*};

use super::{Model, gives, mix};

/// Adds to what it refers to, and returns the value from before.
fn add_to<'s>(t: &mut Tensor<'s, f32>, other: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    let sum = ops::add(t, other)?;
    Ok(mem::replace(t, sum))
}

/// What a function is given writes to the variable, in loops over lists and in blocks.
#[graphable]
fn passed_on(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut list = vec![ops::neg(x)?, ops::scale(x, 2.0)?];
    let mut sum = ops::neg(x)?;
    for t in &mut list {
        let h = #[eager]
        mix(t)?;
        let t = add_to(t, &h)?;
        let h = #[eager]
        mix(&t)?;
        sum = ops::add(&sum, &h)?;
    }
    for (t, layer) in list.iter_mut().zip(&model.layers) {
        let h = ops::add(t, &layer.a)?;
        let h = #[eager]
        mix(&h)?;
        add_to(t, &h)?;
    }
    let mut other = ops::neg(x)?;
    {
        let (one, two) = (&mut list[0], &mut other);
        let h = #[eager]
        mix(two)?;
        *two = ops::add(two, &h)?;
        mem::swap(one, two);
        let h = #[eager]
        mix(two)?;
        add_to(one, &h)?;
    }
    let h = ops::add(&ops::scale(&list[0], 100.0)?, &ops::scale(&list[1], 10.0)?)?;
    ops::add(&ops::add(&h, &other)?, &sum)
}

/// The name of the referent, other names, one of two variables, and a pattern.
#[graphable]
fn renamed(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let mut h = ops::neg(x)?;
    {
        h = ops::scale(&h, 3.0)?;
        let h = &mut h;
        *h = ops::add(h, x)?;
        let t = #[eager]
        mix(h)?;
        *h = ops::sub(h, &t)?;
    }
    let mut list = vec![h.clone()];
    {
        list.push(ops::neg(x)?);
        let list = &mut list;
        list.push(x.clone());
        let t = #[eager]
        mix(&list[0])?;
        list.push(t);
    }
    {
        let r = &mut h;
        *r = ops::neg(r)?;
        let s = r;
        *s = ops::add(s, &list[3])?;
        let t = #[eager]
        mix(s)?;
        *s = ops::add(s, &t)?;
    }
    let mut pair = (ops::neg(x)?, list.swap_remove(3));
    {
        pair.0 = ops::scale(&pair.0, 2.0)?;
        let (l, r) = &mut pair;
        *l = ops::add(l, &*r)?;
        let t = #[eager]
        mix(r)?;
        *r = ops::sub(&*l, &t)?;
        let one = if n > 0 { l } else { &mut h };
        *one = ops::neg(one)?;
        let t = #[eager]
        mix(one)?;
        *one = ops::add(one, &t)?;
    }
    ops::add(&h, &ops::add(&ops::scale(&pair.0, 10.0)?, &ops::scale(&pair.1, 100.0)?)?)
}

/// A second and a third name, of which code behind the boundary has the last.
#[graphable]
fn renamed_twice(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut h = ops::neg(x)?;
    let r = &mut h;
    *r = ops::scale(r, 2.0)?;
    let s = r;
    let t = s;
    *t = ops::add(t, x)?;
    let twice = #[eager]
    mix(t)?;
    *t = ops::add(t, &twice)?;
    ops::neg(&h)
}

fn missing(reason: &str) -> Error {
    Error::Argument { op: "layer", reason: reason.into() }
}

/// References that `?` gives, and failures in their order.
#[graphable]
fn behind_question_marks(x: &Tensor<f32>, model: &Model, #[key] n: usize) -> Result<Tensor<f32>> {
    let layer = model.layers.get(n).ok_or_else(|| missing("the first"))?;
    let last =
        model.layers.iter().last().ok_or(Error::Argument { op: "layer", reason: "the second".into() })?;
    if n > 5 {
        return Err(missing("never"));
    }
    let h = #[eager]
    mix(x)?;
    let h = ops::add(&h, &layer.a)?;
    let h = #[eager]
    mix(&h)?;
    ops::add(&ops::add(&h, &layer.b)?, &last.a)
}

/// A host number that segments change through its reference, also where a replay runs no host code.
#[graphable]
fn counted(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let mut calls = n;
    let counter = &mut calls;
    let h = #[eager]
    mix(x)?;
    *counter += ops::scale(&h, 1.0)?.rank();
    let h = ops::scale(&h, *counter as f32)?;
    let h = #[eager]
    mix(&h)?;
    *counter *= 10;
    ops::scale(&h, calls as f32)
}

#[test]
fn a_reference_with_a_third_name_is_written_through_behind_a_boundary() {
    // h -2, -1; twice -2, h -3.
    gives!(RenamedTwiceGraph, 3.0, |g, step, x, _m| g.call(&step, &x));
}

#[test]
fn what_functions_write_through_a_reference() {
    // list -1, 2, sum -1: h -2, t -1, list -3, h -2, sum -3; h 4, t 2, list 6, h 4, sum 1.
    // h -4, list -7; h 16, list 22. other -1: h -2, other -3; swapped: list -3, other -7; h -14, list -17.
    gives!(PassedOnGraph, -1700.0 + 220.0 - 7.0 + 1.0, |g, step, x, m| g.call(&step, &x, &m));
}

#[test]
fn references_under_other_names_are_written_through() {
    // h -3, -2, t -4, h 2; list 2, -1, 1, 4; h -2, 2, 6. pair -2, 4: l 2, t 8, r -6.
    // With n: l -2, -6; without: h -6, -18.
    gives!(RenamedGraph, 6.0 - 60.0 - 600.0, |g, step, x, m| g.call(&step, &x, 1));
    gives!(RenamedGraph, -18.0 + 20.0 - 600.0, |g, step, x, m| g.call(&step, &x, 0));
}

#[test]
fn numbers_that_segments_change_through_references() {
    // h 2, calls n + 1, h 4 (n + 1), calls 10 (n + 1).
    gives!(CountedGraph, 360.0, |g, step, x, m| g.call(&step, &x, 2));
    gives!(CountedGraph, 40.0, |g, step, x, m| g.call(&step, &x, 0));
}

#[test]
fn references_that_question_marks_give() {
    // Layer 2: h 2, 4, 8, and 20 and 3.
    gives!(BehindQuestionMarksGraph, 31.0, |g, step, x, m| g.call(&step, &x, &m, 1));
}

#[test]
fn failures_come_in_their_order() {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = crate::support::runtime();
        let model = super::model(&rt);
        let graph = BehindQuestionMarksGraph::builder().mode(mode).build(&mut rt).unwrap();
        for _ in 0..4 {
            let step = rt.step().unwrap();
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let error = graph.call(&step, &x, &model, 7).unwrap_err();
            assert!(error.to_string().contains("the first"), "{mode}: {error}");
        }
    }
}
