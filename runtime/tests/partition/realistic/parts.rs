//! Parts of values: borrowed to be changed, moved out, and moved while a reference above refers to the whole.

#![allow(clippy::needless_late_init, reason = "people write so; it must work")]

use std::mem;

use graphable::{PlanItem, graphable, prelude::*};

use super::{gives, mix, same};

#[derive(GraphOutput, Clone)]
struct Cache<'s> {
    k: Tensor<'s, f32>,
    v: Box<Tensor<'s, f32>>,
}

/// `ref mut` in the pattern of a `let`, of a tuple, a struct and a slice.
#[graphable]
fn by_patterns(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut pair = (ops::neg(x)?, ops::scale(x, 1.0)?);
    let mut cache = Cache { k: ops::neg(x)?, v: Box::new(ops::neg(x)?) };
    let mut list = vec![ops::neg(x)?, ops::neg(x)?];
    let h = #[eager]
    mix(x)?;
    let (ref mut a, _) = pair;
    *a = ops::add(a, &h)?;
    let Cache { ref mut k, .. } = cache;
    *k = ops::add(k, &h)?;
    *cache.v = ops::add(&cache.k, &h)?;
    match list[..] {
        [ref mut first, ..] => *first = ops::add(first, &h)?,
        [] => list.push(ops::neg(&h)?),
    }
    if let Some(t) = list.last_mut() {
        *t = ops::scale(t, 5.0)?;
    }
    list.swap(0, 1);
    let h = #[eager]
    mix(&h)?;
    let sum = ops::add(&ops::add(&pair.0, &pair.1)?, &ops::add(&cache.k, &*cache.v)?)?;
    let sum = ops::add(&ops::scale(&list[0], 10.0)?, &ops::add(&sum, &list[1])?)?;
    ops::add(&sum, &h)
}

#[derive(GraphOutput, Clone)]
struct Inner<'s> {
    t: Tensor<'s, f32>,
    list: Vec<Vec<Tensor<'s, f32>>>,
}

#[derive(GraphOutput, Clone)]
struct Outer<'s> {
    inner: Inner<'s>,
    opt: Option<Tensor<'s, f32>>,
}

/// Fields of fields, elements of elements, and an option that is filled, changed and emptied.
#[graphable]
fn nested(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let inner = Inner { t: ops::neg(x)?, list: vec![vec![ops::neg(x)?]] };
    let mut s = Outer { inner, opt: None };
    let h = #[eager]
    mix(x)?;
    s.inner.t = ops::add(&s.inner.t, &h)?;
    s.inner.list[0][0] = ops::add(&s.inner.t, &h)?;
    s.opt = Some(ops::scale(&h, 3.0)?);
    let h = #[eager]
    mix(&h)?;
    if let Some(t) = &mut s.opt {
        *t = ops::add(t, &h)?;
    }
    if let Some(t) = s.opt.as_mut() {
        *t = ops::add(t, &h)?;
    }
    let h = #[eager]
    mix(&h)?;
    let old = s.opt.take();
    let g = #[eager]
    mix(&h)?;
    let old = old.unwrap();
    ops::add(&ops::add(&old, &g)?, &s.inner.list[0][0])
}

/// `swap`, `get_mut`, `split_at_mut`, `pop`, `insert` and `drain` between boundaries.
#[graphable]
fn by_methods(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut v = vec![ops::neg(x)?, ops::scale(x, 3.0)?];
    let mut a = ops::neg(x)?;
    let mut h = #[eager]
    mix(x)?;
    mem::swap(&mut a, &mut h);
    for t in &mut v {
        *t = ops::add(t, &a)?;
    }
    let g = #[eager]
    mix(&h)?;
    let t = v.get_mut(0).unwrap();
    *t = ops::add(t, &g)?;
    let (l, r) = v.split_at_mut(1);
    l[0] = ops::add(&l[0], &r[0])?;
    let g = #[eager]
    mix(&v[0])?;
    v.push(g);
    let last = v.pop().unwrap();
    let g = #[eager]
    mix(&last)?;
    v.insert(0, g);
    let mut it = v.drain(..);
    let a = it.next().unwrap();
    let b = it.next().unwrap();
    ops::add(&a, &b)
}

/// Moves of a vector, of a tuple and of a struct's fields to which references above refer.
#[graphable]
fn moved(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let parts = #[eager]
    vec![mix(x)?, same(x)?];
    let first = &parts[0];
    let h = ops::add(first, x)?;
    let mut all = parts;
    all.push(h);
    let (k, v) = #[eager]
    (mix(&all[2])?, same(&all[1])?);
    let (of_k, of_v) = (&k, &v);
    let h = ops::sub(of_k, of_v)?;
    let both = (k, v);
    let h = #[eager]
    mix(&h)?;
    let (k, v) = both;
    let s = #[eager]
    Outer { inner: Inner { t: mix(&h)?, list: vec![] }, opt: None };
    let view = &s.inner.t;
    let h = ops::add(view, &k)?;
    let Outer { inner, opt } = s;
    let Inner { t, list } = inner;
    let h = #[eager]
    mix(&h)?;
    let h = match opt {
        Some(o) => ops::add(&h, &o)?,
        None => ops::neg(&h)?,
    };
    if list.is_empty() { ops::add(&ops::add(&h, &t)?, &v) } else { Ok(h) }
}

/// Declared before a `match` of which one arm returns; several at once, by tuples.
#[graphable]
fn deferred(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let e = #[eager]
    mix(x)?;
    let y;
    match n {
        0 => y = ops::neg(&e)?,
        1 => {
            y = ops::scale(&e, 3.0)?;
        }
        _ => return ops::scale(&e, 7.0),
    }
    let (p, q);
    if n == 0 {
        (p, q) = (ops::neg(&y)?, 2.0);
    } else {
        (p, q) = (ops::exp(&y)?, 3.0);
    }
    let h = #[eager]
    mix(&p)?;
    ops::add(&ops::scale(&h, q)?, &y)
}

struct Lists {
    long: Vec<f32>,
    short: Vec<f32>,
}

fn lists(n: usize) -> Lists {
    Lists { long: vec![2.0; n + 2], short: vec![3.0; n] }
}

fn by<'s>(x: &Tensor<'s, f32>, list: &[f32]) -> Result<Tensor<'s, f32>> {
    ops::scale(x, list.iter().sum::<f32>())
}

/// Host values that a segment uses, moved as wholes and in parts: by a name, patterns, a field and an assignment.
#[graphable]
#[allow(irrefutable_let_patterns, reason = "a pattern that moves")]
fn host_moved(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    #[host]
    let (a, b) = (lists(n), lists(n).short);
    #[host]
    let rest = lists(n);
    let h = by(&by(&by(x, &a.long)?, &b)?, &rest.short)?;
    let kept = a;
    let h = by(&h, &kept.long)?;
    let Lists { long, .. } = kept;
    let h = by(&h, &long)?;
    let (c, [d]) = (b, [long]);
    let h = by(&by(&h, &c)?, &d)?;
    let e = rest.long;
    let mut h = by(&h, &e)?;
    let f;
    f = e;
    for scale in rest.short {
        h = ops::scale(&h, scale)?;
    }
    #[eager]
    mix(&h)?;
    #[host]
    let (g, i) = (lists(0), lists(0));
    let h = by(&by(&by(&h, &f)?, &g.long)?, &i.long)?;
    #[host]
    let (j, k) = (
        match g {
            Lists { long, short } if short.is_empty() => long,
            Lists { short, .. } => short,
        },
        if let Lists { long, .. } = i { long } else { vec![] },
    );
    by(&by(&h, &j)?, &k)
}

/// Values that patterns take apart after device work has used them: made by that work, by a region, and on the host.
#[graphable]
#[allow(clippy::match_single_binding, reason = "a pattern that moves")]
fn moved_by_patterns(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let made = (lists(n).long, lists(n).short);
    let h = by(x, &made.0)?;
    let h = match made {
        (long, short) if short.is_empty() => by(&h, &long)?,
        all => by(&h, &all.1)?,
    };
    let pair = #[eager]
    (mix(&h)?, same(&h)?);
    let g = ops::add(&pair.0, &h)?;
    let first = match pair {
        all => all.0,
    };
    #[host]
    let host = lists(n);
    let g = by(&g, &host.long)?;
    let long = match host {
        Lists { long, .. } => long,
    };
    let g = by(&ops::add(&g, &first)?, &long)?;
    #[eager]
    mix(&g)
}

/// Numbers are copied, by operators and by names: the segment goes on.
#[graphable]
fn host_numbers(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[host]
    let n = lists(1).long.len();
    let h = ops::scale(x, n as f32)?;
    let twice = n * 2;
    let h = ops::scale(&h, twice as f32)?;
    let m = n;
    let h = ops::scale(&h, m as f32 / 3.0)?;
    #[eager]
    mix(&h)
}

#[test]
fn host_values_that_a_segment_uses_are_moved_after_it() {
    // n 1: by a, b and rest 54, kept 6, long 6, c 3, d 6, e 6, the loop 3, f 6.
    // Then j and k 4, and what they are of, before.
    gives!(HostMovedGraph, 54.0 * 36.0 * 18.0 * 6.0 * 18.0 * 256.0, |g, step, x, m| g.call(&step, &x, 1));
    gives!(HostNumbersGraph, 36.0, |g, step, x, m| g.call(&step, &x));
    let segments = HostNumbersGraph::PLAN.items.iter().filter(|i| matches!(i, PlanItem::Segment { .. }));
    assert_eq!(segments.count(), 1, "{}", HostNumbersGraph::PLAN);
}

#[test]
fn values_that_patterns_move_are_used_before() {
    // h 6, then 18; pair 36 and 18; g 54, then 324; 360 by 6, doubled.
    gives!(MovedByPatternsGraph, 4320.0, |g, step, x, m| g.call(&step, &x, 1));
    // h 4, then 16 by the longer list; pair 32 and 16; g 48, then 192; 224 by 4, doubled.
    gives!(MovedByPatternsGraph, 1792.0, |g, step, x, m| g.call(&step, &x, 0));
}

#[test]
fn patterns_that_borrow_to_change() {
    // h 2: pair 1, 1; k 1, v 3; list 1, -5, swapped; h 4: 2 + 4 - 50 + 1 + 4.
    gives!(ByPatternsGraph, -39.0, |g, step, x, m| g.call(&step, &x));
}

#[test]
fn fields_of_fields() {
    // h 2: t 1, list 3, opt 6; h 4: opt 14; g 16.
    gives!(NestedGraph, 33.0, |g, step, x, m| g.call(&step, &x));
}

#[test]
fn methods_that_change_lists() {
    // a 2, h -1: v 1, 5; g -2: -1, then 4; the last 8, doubled; 16 + 4.
    gives!(ByMethodsGraph, 20.0, |g, step, x, m| g.call(&step, &x));
}

#[test]
fn moves_wait_for_references_above() {
    // all 2, 1, 3; k 6, v 1; h 10; t 20; 26; -52 + 20 + 1.
    gives!(MovedGraph, -31.0, |g, step, x, m| g.call(&step, &x));
}

#[test]
fn declared_before_a_match() {
    gives!(DeferredGraph, 6.0, |g, step, x, m| g.call(&step, &x, 0));
    gives!(DeferredGraph, 14.0, |g, step, x, m| g.call(&step, &x, 2));
}
