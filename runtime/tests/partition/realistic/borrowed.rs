//! References: what host code evaluates again behind a segment, since a replay cannot give a reference back.

use graphable::{graphable, prelude::*};

use super::{Layer, Model, gives, mix, same};

/// References that methods give, used before and behind boundaries.
#[graphable]
fn references(x: &Tensor<f32>, m: &Model) -> Result<Tensor<f32>> {
    let last = m.layers.last().unwrap();
    let h = ops::mul(x, &last.a)?;
    let h = #[eager]
    mix(&h)?;
    let h = ops::add(&h, &last.b)?;
    let second = m.layer(1);
    let h = ops::scale(&h, second.eps)?;
    let n = m.layers.len();
    let first = &m.layers[m.layers.len() - n];
    let h = #[eager]
    same(&h)?;
    let h = ops::mul(&h, &second.a)?;
    ops::mul(&h, &first.b)
}

/// Sizes, slices, lists of references, a reference to what a segment makes.
#[graphable]
fn views(x: &Tensor<f32>, m: &Model) -> Result<Tensor<f32>> {
    let h = ops::add(x, x)?;
    let shape = h.shape();
    let rank = h.rank();
    let kind = match m.layers.len() {
        0 => "none",
        1 => "one",
        _ => "many",
    };
    let (front, back) = m.layers.split_at(1);
    let on: Vec<&Layer> = m.layers.iter().filter(|l| l.on).collect::<Vec<_>>();
    let r = &ops::add(x, x)?;
    let g = ops::reshape(&h, shape)?;
    let g = #[eager]
    same(&g)?;
    let mut g = ops::reshape(&g, shape)?;
    if kind == "many" {
        g = ops::scale(&g, (rank + on.len()) as f32)?;
    }
    for l in &on {
        g = ops::mul(&g, &l.a)?;
    }
    let g = ops::add(&g, &front[0].b)?;
    let g = #[eager]
    same(&g)?;
    let g = ops::add(&g, &back[1].b)?;
    ops::add(&g, r)
}

/// Iterators that host code moves on.
#[graphable]
fn iterators(x: &Tensor<f32>, m: &Model) -> Result<Tensor<f32>> {
    let mut h = ops::scale(x, 1.0)?;
    let mut it = m.layers.iter();
    while let Some(l) = it.next() {
        h = ops::mul(&h, &l.a)?;
        h = #[eager]
        same(&h)?;
        h = ops::add(&h, &l.b)?;
    }
    let mut it = m.layers.iter().peekable();
    while let Some(l) = it.next() {
        h = ops::scale(&h, l.eps)?;
        if it.peek().is_some() {
            h = #[eager]
            same(&h)?;
        }
    }
    Ok(h)
}

/// A move of what a reference in the segment above refers to.
#[graphable]
fn lent(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let e = #[eager]
    mix(x)?;
    let view = &e;
    let h = ops::add(view, x)?;
    let kept = e;
    let h = #[eager]
    same(&h)?;
    ops::add(&h, &kept)
}

#[test]
fn references_by_methods() {
    gives!(ReferencesGraph, 360.0, |g, step, x, m| g.call(&step, &x, &m));
}

#[test]
fn views_and_sizes() {
    gives!(ViewsGraph, 60.0, |g, step, x, m| g.call(&step, &x, &m));
}

#[test]
fn iterators_of_host_code() {
    gives!(IteratorsGraph, 14.625, |g, step, x, m| g.call(&step, &x, &m));
}

#[test]
fn a_move_waits_for_what_refers_to_it() {
    gives!(LentGraph, 5.0, |g, step, x, m| g.call(&step, &x));
}
