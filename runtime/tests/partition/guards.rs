//! Values that nothing behind their segment uses, and that are no guards: they end with it.

#![allow(clippy::toplevel_ref_arg, reason = "a pattern that borrows from a value without a name")]

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap, VecDeque},
    rc::Rc,
};

use graphable::{graphable, prelude::*};

use crate::support::{Model, attention, check, model};

/// Neither `Copy` nor of a derive of ours.
struct Span {
    start: usize,
}

fn spans(n: usize) -> Vec<Span> {
    (0..n).map(|start| Span { start }).collect()
}

struct Counter<'a>(&'a RefCell<f32>);

impl Drop for Counter<'_> {
    fn drop(&mut self) {
        *self.0.borrow_mut() += 1.0;
    }
}

#[graphable]
fn harmless(x: &Tensor<f32>, model: &Model, #[key] n: usize) -> Result<Tensor<f32>> {
    let all = spans(n);
    let first = Span { start: all[0].start + n };
    let map: HashMap<usize, usize> = (0..n).map(|i| (i, i + 1)).collect();
    let tree: BTreeMap<usize, &str> = BTreeMap::from([(1, "a")]);
    let queue = VecDeque::from([1.0f32, 2.0]);
    let shared = Rc::new(3usize);
    let mut layers = model.layers.iter();
    let names = vec![String::from("a"); n];
    let _unused = attention(x)?;
    let temporary = &attention(x)?;
    let scale =
        map[&0] + tree.len() + queue.len() + *shared + layers.by_ref().count() + names.len() + first.start;
    let h = ops::scale(temporary, scale as f32)?;
    // A guard that ends where the program says, and one that is moved.
    let count = RefCell::new(0.0);
    let h = {
        let _guard = Counter(&count);
        ops::scale(&h, 2.0)?
    };
    let guard = Counter(&count);
    drop(guard);
    let h = ops::scale(&h, *count.borrow())?;
    let a = #[eager]
    attention(&h)?;
    ops::add(&a, x)
}

#[test]
fn what_is_no_guard() {
    check!(
        HarmlessGraph,
        |rt| model(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let _ = n;
            g.call(&step, &x, &m, 2)
        },
        // (1 + 1 + 2 + 3 + 2 + 2 + 2) * 2 * 2 + 1
        vec![53.0]
    );
}

struct Options {
    repeat: usize,
    names: Vec<String>,
}

struct Held<'a> {
    guard: Counter<'a>,
    factor: f32,
}

fn options(repeat: usize) -> Options {
    Options { repeat, names: Vec::new() }
}

fn two<'s>(x: &Tensor<'s, f32>) -> Result<(Tensor<'s, f32>, Tensor<'s, f32>)> {
    Ok((ops::scale(x, 2.0)?, ops::scale(x, 3.0)?))
}

#[graphable]
fn taken_apart(x: &Tensor<f32>, model: &Model, #[key] n: usize) -> Result<Tensor<f32>> {
    // What a pattern leaves holds nothing but memory.
    let pair = two(x)?;
    let (_, three) = pair;
    let (ref two_times, ref again) = two(x)?;
    let h = ops::add(&ops::add(&three, two_times)?, again)?;
    let all = (spans(n), n);
    let (some, _) = all;
    let (ref mut list, first) = (Vec::new(), attention(&h)?);
    list.push(Span { start: some.len() });
    let Options { repeat, names } = options(n);
    let layers = (model.layers.len(), String::from("a"));
    let (count, ..) = layers;
    let ref scaled = ops::scale(&first, (repeat + names.len() + count) as f32)?;
    // Guards that are moved out of what held them.
    let calls = RefCell::new(0.0);
    let guard = Counter(&calls);
    let held = Held { guard, factor: 1.0 };
    let Held { guard, factor } = held;
    drop(guard);
    let guards = (Counter(&calls), 2.0);
    let (guard, by) = guards;
    let kept = guard;
    drop(kept);
    let h = ops::scale(scaled, factor * by * *calls.borrow())?;
    let a = #[eager]
    attention(&h)?;
    ops::add(&a, x)
}

#[test]
fn what_a_pattern_leaves_is_no_guard() {
    check!(
        TakenApartGraph,
        |rt| model(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let _ = n;
            g.call(&step, &x, &m, 2)
        },
        // (3 + 2 + 3) * (2 + 2) * (1 * 2 * 2) + 1
        vec![129.0]
    );
}
