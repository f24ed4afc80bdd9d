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

/// Iterators that code on both sides of a boundary advances, over weights, tensors and numbers.
#[graphable]
fn advanced(x: &Tensor<f32>, xs: &[Tensor<f32>], m: &Model) -> Result<Tensor<f32>> {
    let mut h = ops::scale(x, 1.0)?;
    let mut layers = m.layers.iter();
    let mut tensors = xs.iter().enumerate();
    let mut numbers = 1..5;
    for l in &mut layers {
        h = ops::mul(&h, &l.b)?;
        if !l.on {
            break;
        }
    }
    while let Some((i, t)) = tensors.next() {
        h = ops::add(&h, t)?;
        if i == 1 {
            break;
        }
    }
    for n in numbers.by_ref().take(2) {
        h = ops::scale(&h, n as f32)?;
    }
    h = #[eager]
    same(&h)?;
    for l in layers {
        h = ops::mul(&h, &l.a)?;
    }
    let last = tensors.next().unwrap();
    h = ops::add(&h, last.1)?;
    for n in &mut numbers {
        h = #[eager]
        same(&h)?;
        h = ops::scale(&h, n as f32)?;
    }
    Ok(h)
}

/// An iterator that only the user knows to be one.
#[graphable]
fn marked(x: &Tensor<f32>, m: &Model) -> Result<Tensor<f32>> {
    let mut h = ops::scale(x, 1.0)?;
    #[host]
    let mut on = chosen(&m.layers);
    for l in &mut on {
        h = ops::add(&h, &l.a)?;
        break;
    }
    h = #[eager]
    same(&h)?;
    for l in on {
        h = ops::add(&h, &l.b)?;
    }
    Ok(h)
}

fn chosen(layers: &[Layer]) -> impl Iterator<Item = &Layer> {
    layers.iter().filter(|l| l.on)
}

/// A reference that takes the name of what it refers to.
#[graphable]
fn renamed(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = ops::scale(x, 3.0)?;
    let h = &h;
    let g = ops::add(h, x)?;
    let g = &g;
    let t = ops::neg(x)?;
    let h = ops::sub(&ops::add(h, &t)?, &t)?;
    let h = &h;
    let t = x;
    let e = #[eager]
    same(h)?;
    let h = ops::add(&e, h)?;
    ops::sub(&ops::add(&h, g)?, &ops::sub(t, x)?)
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

#[test]
fn iterators_on_both_sides_of_a_boundary() {
    // (((1 · 10 · 20 + 5 + 6) · 1 · 2) · 3 + 7) · 3 · 4
    gives!(AdvancedGraph, 15276.0, |g, step, x, m| {
        let xs: Vec<_> = [5.0, 6.0, 7.0].iter().map(|v| step.tensor(&[1], &[*v]).unwrap()).collect();
        g.call(&step, &x, &xs, &m)
    });
    gives!(MarkedGraph, 32.0, |g, step, x, m| g.call(&step, &x, &m));
}

#[test]
fn a_reference_with_the_name_of_its_referent() {
    gives!(RenamedGraph, 10.0, |g, step, x, m| g.call(&step, &x));
}
