//! Values that segments make for themselves, names of closures that are taken again, regions inside a value, and logs.

use graphable::{graphable, prelude::*};

use super::{Model, gives, mix, same};

/// No derives: it is part of no key.
struct Cfg {
    eps: f32,
    n: usize,
}

/// Nor here.
#[derive(Clone, Copy, PartialEq)]
enum Act {
    Silu,
    Gelu,
}

fn apply<'s>(act: Act, x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    if act == Act::Silu { ops::neg(x) } else { ops::exp(x) }
}

/// Functions, variants and literals by names, also chosen by a setting.
#[graphable]
fn made(x: &Tensor<f32>, m: &Model) -> Result<Tensor<f32>> {
    let act = ops::neg;
    let act2: fn(&Tensor<f32>) -> Result<Tensor<f32>> = if m.deep { ops::exp } else { ops::neg };
    let kind = if m.deep { Act::Gelu } else { Act::Silu };
    let cfg = Cfg { eps: m.layers[0].eps, n: 2 };
    let h = act(x)?;
    let h = #[eager]
    mix(&h)?;
    let h = act2(&h)?;
    let h = apply(kind, &h)?;
    let h = ops::scale(&h, cfg.eps)?;
    let h = #[eager]
    ops::scale(&h, cfg.n as f32)?;
    let h = act(&h)?;
    let mut acc = h;
    for l in &m.layers {
        let c = Cfg { eps: l.eps, n: cfg.n };
        acc = ops::scale(&acc, c.n as f32)?;
        acc = #[eager]
        same(&acc)?;
        acc = ops::scale(&acc, c.eps * 4.0)?;
    }

    ops::scale(&acc, cfg.n as f32)
}

/// One part of a value moved, another borrowed.
#[graphable]
fn mixed(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let p = #[eager]
    (mix(x)?, same(x)?);
    let h = ops::neg(x)?;
    let (ref a, b) = p;
    let h = ops::add(&h, a)?;
    let h = #[eager]
    same(&h)?;
    let h = ops::add(&h, &b)?;
    ops::add(&h, a)
}

/// Regions inside a constructor.
#[graphable]
fn inside(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = ops::neg(x)?;
    let s = Some(
        #[eager]
        mix(&h)?,
    );
    let h = ops::add(s.as_ref().unwrap(), x)?;
    Ok(
        #[eager]
        mix(&h)?,
    )
}

/// A closure's name, taken for a value.
#[graphable]
fn closure_name(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let f = |t: &Tensor<f32>| ops::scale(t, 3.0);
    let h = f(x)?;
    let h = #[eager]
    mix(&h)?;
    let f = ops::scale(&h, 2.0)?;
    let h = #[eager]
    same(&f)?;
    ops::add(&h, &f)
}

/// A span around the whole call, by host code, and logs of what is there.
#[tracing::instrument(skip_all)]
#[graphable]
fn logged_above(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    tracing::debug!("called");
    let h = ops::neg(x)?;
    tracing::info!(rank = h.rank(), "first");
    let h = #[eager]
    mix(&h)?;
    ops::add(&h, x)
}

#[graphable]
#[tracing::instrument(skip_all)]
fn logged_below(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = ops::neg(x)?;
    let h = #[eager]
    mix(&h)?;
    tracing::debug!("between");
    ops::add(&h, x)
}

#[test]
fn values_that_segments_make() {
    gives!(MadeGraph, 96.0, |g, step, x, m| g.call(&step, &x, &m));
}

#[test]
fn patterns_that_move_and_borrow() {
    gives!(MixedGraph, 4.0, |g, step, x, m| g.call(&step, &x));
}

#[test]
fn regions_inside_a_constructor() {
    gives!(InsideGraph, -2.0, |g, step, x, m| g.call(&step, &x));
}

#[test]
fn a_closures_name_is_taken_for_a_value() {
    gives!(ClosureNameGraph, 24.0, |g, step, x, m| g.call(&step, &x));
}

#[test]
fn logs_and_spans() {
    gives!(LoggedAboveGraph, -1.0, |g, step, x, m| g.call(&step, &x));
    gives!(LoggedBelowGraph, -1.0, |g, step, x, m| g.call(&step, &x));
}

macro_rules! rebind {
    ($name:ident, $e:expr) => {
        let $name = $e;
    };
}

/// The macro's `h` is the caller's `h`, and code behind the segment would find the older one.
#[graphable]
fn rebound(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = ops::neg(x)?;
    rebind!(h, ops::exp(&h)?);
    let a = #[eager]
    mix(x)?;
    ops::add(&a, &h)
}

#[test]
fn a_macro_that_binds_a_name_anew_is_told() {
    let mut rt = crate::support::runtime();
    let g = ReboundGraph::builder().build(&mut rt).unwrap();
    let step = rt.step().unwrap();
    let x = step.tensor(&[1], &[1.0]).unwrap();
    let error = g.call(&step, &x).unwrap_err().to_string();
    assert!(error.contains("`rebind!` binds `h` anew"), "{error}");
}

/// What the macro binds is used in its own segment, also by what calls nothing.
#[graphable]
fn bound_inside(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = ops::scale(x, 5.0)?;
    rebind!(t, ops::neg(&h)?);
    let kept = t;
    let a = #[eager]
    mix(x)?;
    ops::add(&a, &kept)
}

#[test]
fn what_a_macro_binds_is_seen_in_its_segment() {
    gives!(BoundInsideGraph, -3.0, |g, step, x, m| g.call(&step, &x));
}
