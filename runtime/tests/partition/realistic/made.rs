//! Values that segments make for themselves, names of closures that are taken again, regions inside a value, and logs.

#![allow(clippy::type_complexity, reason = "types that users write out are what is tested")]

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

/// Closures and constants that take the names of others, which the code above uses.
#[graphable]
fn renamed(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let f = |v| ops::scale(v, 3.0);
    let by = Scale::Twice;
    let h = #[eager]
    same(x)?;
    let a = f(&h)?;
    let f = |v| ops::scale(v, 0.5);
    let b = scaled(&f(&a)?, by)?;
    let by = Scale::Thrice;
    let a = #[eager]
    same(&a)?;
    let h = ops::add(&f(&a)?, &b)?;
    let x = |v| ops::add(v, x);
    scaled(&x(&h)?, by)
}

#[derive(Clone, Copy)]
enum Scale {
    Twice,
    Thrice,
}

fn scaled<'s>(x: &Tensor<'s, f32>, by: Scale) -> Result<Tensor<'s, f32>> {
    ops::scale(x, if matches!(by, Scale::Twice) { 2.0 } else { 3.0 })
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
    assert!(error.contains("`rebind!` rebinds `h`"), "{error}");
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

/// Closures whose captures are shadowed: a number, a tensor, a weight, by a loop and by a region's value.
#[graphable]
fn captured(x: &Tensor<f32>, m: &Model) -> Result<Tensor<f32>> {
    let k = 3.0f32;
    let w = &m.layers[0];
    let h = ops::neg(x)?;
    let i = 2usize;
    let scaled = |t: &Tensor<f32>| ops::scale(t, k);
    let residual = |t: &Tensor<f32>| ops::add(t, &h);
    let weighted = |t: &Tensor<f32>| {
        let k = ops::mul(t, &m.layers[i].a)?;
        ops::mul(&k, &w.b)
    };
    let mut k = scaled(x)?;
    for i in 0..m.layers.len() {
        k = #[eager]
        mix(&k)?;
        k = residual(&k)?;
        k = ops::scale(&k, (i + 1) as f32)?;
        for w in &m.layers[..1] {
            k = weighted(&k)?;
            k = ops::mul(&k, &w.a)?;
        }
    }
    let h = #[eager]
    mix(&k)?;
    ops::add(&scaled(&h)?, &residual(&h)?)
}

#[test]
fn closures_keep_what_they_captured() {
    // k: 3; then (2 k - 1) times 30, 60, 90: 150, 17940, 3229110; doubled, thrice it and once it less one.
    gives!(CapturedGraph, 4.0 * 6_458_220.0 - 1.0, |g, step, x, m| g.call(&step, &x, &m));
}

/// What an operator takes is gone, also where its statement is the last of a segment.
#[graphable]
fn operands(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = #[eager]
    V(mix(x)?);
    let b = a.clone() + a.clone();
    let mut acc = a + b.clone();
    acc = acc + b;
    let c = #[eager]
    V(mix(&acc.0)?);
    let d = c + acc;
    ops::neg(&d.0)
}

#[derive(GraphOutput, Clone)]
struct V<'s>(Tensor<'s, f32>);
impl<'s> std::ops::Add for V<'s> {
    type Output = V<'s>;
    fn add(self, o: V<'s>) -> V<'s> {
        V(ops::add(&self.0, &o.0).unwrap())
    }
}

#[test]
fn operators_take_their_operands() {
    gives!(OperandsGraph, -30.0, |g, step, x, m| g.call(&step, &x));
}

type Unary = for<'a, 's> fn(&'a Tensor<'s, f32>) -> Result<Tensor<'s, f32>>;

#[derive(Params)]
struct Activated {
    w: Param<f32>,
    #[config]
    act: Unary,
}

/// Functions in lists, chosen by loops, as settings and keys.
#[graphable]
fn by_function(x: &Tensor<f32>, m: &Activated, #[key] last: Unary) -> Result<Tensor<f32>> {
    let table: [(fn(&Tensor<f32>) -> Result<Tensor<f32>>, f32); 2] = [(ops::neg, 2.0), (mix, 3.0)];
    let mut h = (m.act)(x)?;
    for (f, by) in table {
        h = ops::scale(&f(&h)?, by)?;
        h = #[eager]
        same(&h)?;
        h = f(&h)?;
    }
    let act = m.act;
    let h = act(&ops::mul(&h, &m.w)?)?;
    last(&h)
}

/// As people write the type of a function: of one tensor, of two, and with a number.
#[graphable]
fn by_function_types(
    x: &Tensor<f32>,
    #[key] one: fn(&Tensor<f32>) -> Result<Tensor<f32>>,
    #[key] two: fn(&Tensor<f32>, &Tensor<f32>) -> Result<Tensor<f32>>,
    #[key] with_number: fn(&Tensor<f32>, f32) -> Result<Tensor<f32>>,
) -> Result<Tensor<f32>> {
    let h = with_number(&one(x)?, 3.0)?;
    let h = #[eager]
    mix(&h)?;
    two(&h, &one(&h)?)
}

fn sum<'s>(a: &Tensor<'s, f32>, b: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::add(a, b)
}

fn times<'s>(a: &Tensor<'s, f32>, by: f32) -> Result<Tensor<'s, f32>> {
    ops::scale(a, by)
}

#[test]
fn types_of_functions_as_keys() {
    gives!(ByFunctionTypesGraph, 36.0, |g, step, x, m| g.call(&step, &x, mix, sum, times));
    gives!(ByFunctionTypesGraph, 0.0, |g, step, x, m| g.call(&step, &x, ops::neg, sum, times));
}

#[test]
fn functions_are_settings_and_keys() {
    let mut rt = crate::support::runtime();
    let mut m = Activated { w: Param::new(&rt, &[1], &[1.0]).unwrap(), act: ops::neg };
    let g = ByFunctionGraph::builder().build(&mut rt).unwrap();
    for (act, last, expected) in [
        (ops::neg as Unary, mix as Unary, 48.0),
        (mix, ops::neg, -96.0),
        (ops::neg, ops::neg, -24.0),
        (mix, mix, 192.0),
    ] {
        m.act = act;
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let y = g.call(&step, &x, &m, last).unwrap();
            assert_eq!(step.read(&y).unwrap(), [expected]);
        }
    }
}

type Hidden<'s> = Tensor<'s, f32>;

#[derive(GraphOutput, Clone)]
struct Out<'s> {
    h: Tensor<'s, f32>,
    n: Count,
}

#[derive(GraphOutput, Clone)]
struct Count {
    n: usize,
}

struct Block;

/// Results without the `<'_>` that they mean: of helpers, of methods, of graphs, in tuples and options.
#[graphable]
impl Block {
    fn out(&self, x: &Tensor<f32>) -> Result<Out> {
        Ok(Out { h: ops::neg(x)?, n: self.count(x)? })
    }

    fn count(&self, x: &Tensor<f32>) -> Result<Count> {
        Ok(Count { n: x.rank() })
    }
}

#[graphable]
fn elided_helper(x: &Tensor<f32>, y: &Tensor<f32>) -> Result<(Out, Option<Hidden>)> {
    let out = Block.out(&ops::add(x, y)?)?;
    Ok((out.clone(), Some(out.h)))
}

#[graphable]
fn elided(x: &Tensor<f32>) -> Result<Hidden> {
    let (out, more) = elided_helper(x, x)?;
    let h = #[eager]
    mix(&out.h)?;
    ops::scale(&ops::add(&h, &more.unwrap())?, out.n.n as f32)
}

#[test]
fn results_without_the_lifetime_that_they_mean() {
    gives!(ElidedGraph, -6.0, |g, step, x, m| g.call(&step, &x));
}

#[test]
fn closures_with_the_names_of_others() {
    // (1.5 + 3 + 1) · 3
    gives!(RenamedGraph, 16.5, |g, step, x, m| g.call(&step, &x));
}
