//! Which part of a program runs: names that are taken again, and values that merely stand beside one of eager code.

use graphable::{graphable, prelude::*};

use super::{Model, gives, mix, same};

/// A name of a region is taken again, and what has it now decides a branch.
#[graphable]
fn shadowed(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = ops::add(x, x)?;
    let h = #[eager]
    mix(&h)?;
    let h = ops::add(&h, x)?;
    let mut s = ops::scale(&h, 1.0)?;
    if h.rank() == 1 {
        s = ops::neg(&h)?;
    }
    let y = if h.dim(0) > 0 { ops::scale(&s, 2.0)? } else { ops::neg(&s)? };
    let h = #[eager]
    mix(&y)?;
    let h = ops::add(&h, x)?;
    let mut out = ops::scale(&h, 1.0)?;
    for _ in 0..h.dim(0).get()? {
        out = ops::scale(&out, 3.0)?;
    }
    if out.rank() == 1 { ops::neg(&out) } else { Ok(out) }
}

/// Elements of a parameter beside values of a region, and their numbers.
#[graphable]
fn zipped(x: &Tensor<f32>, m: &Model) -> Result<Tensor<f32>> {
    let kv: Vec<Tensor<f32>> = #[eager]
    {
        m.layers.iter().map(|_| mix(x)).collect::<Result<Vec<_>>>()?
    };
    let mut h = ops::scale(x, 1.0)?;
    for (l, k) in m.layers.iter().zip(&kv) {
        h = ops::mul(&h, &l.a)?;
        h = ops::add(&h, k)?;
        h = ops::scale(&h, l.eps)?;
    }
    for (i, k) in kv.iter().enumerate() {
        h = ops::scale(&h, (i + 1) as f32)?;
        h = ops::add(&h, k)?;
        h = #[eager]
        same(&h)?;
        h = ops::add(&h, &m.layers[i].b)?;
    }
    Ok(h)
}

/// Sizes of what a region made: of a loop, and in a pattern.
#[graphable]
fn counted(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = #[eager]
    mix(x)?;
    let mut h = ops::scale(x, 1.0)?;
    for i in 0..a.dim(0).get()? + 2 {
        h = ops::scale(&h, (i + 1) as f32)?;
        h = #[eager]
        same(&h)?;
    }
    let s = match a.dim(0).get()? {
        n if n > 5 => n * 2,
        n => n + 1,
    };
    ops::scale(&h, s as f32)
}

#[derive(GraphOutput, Clone)]
struct Counted<'s> {
    t: Tensor<'s, f32>,
    n: usize,
}

/// A field of a literal of which another came from a region.
#[graphable]
fn literal(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut s = Counted { t: ops::scale(x, 1.0)?, n: 1 };
    for _ in 0..2 {
        let e = #[eager]
        mix(&s.t)?;
        s = Counted { t: e, n: s.n + 1 };
        let u = ops::scale(&s.t, s.n as f32)?;
        s = Counted { t: u, n: s.n };
    }
    ops::scale(&s.t, s.n as f32)
}

#[test]
fn a_name_that_is_taken_again_is_no_value_of_the_region() {
    gives!(ShadowedGraph, 57.0, |g, step, x, m| g.call(&step, &x));
}

#[test]
fn what_stands_beside_a_value_of_a_region_is_none() {
    gives!(ZippedGraph, 202.625, |g, step, x, m| g.call(&step, &x, &m));
}

#[test]
fn sizes_of_a_regions_tensor() {
    gives!(CountedGraph, 12.0, |g, step, x, m| g.call(&step, &x));
}

#[test]
fn fields_of_a_literal() {
    gives!(LiteralGraph, 72.0, |g, step, x, m| g.call(&step, &x));
}
