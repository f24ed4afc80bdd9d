//! Variables that segments change, macros, and operators.

#![allow(clippy::needless_late_init, clippy::match_single_binding, reason = "people write so; it must work")]

use graphable::{graphable, prelude::*};

use super::{Model, gives, mix, same};

/// A region's value, changed in place.
#[graphable]
fn through_an_option(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut slot = #[eager]
    Some(mix(x)?);
    if let Some(s) = &mut slot {
        *s = ops::scale(s, 5.0)?;
    }
    let h = slot.unwrap();
    ops::add(&h, x)
}

/// `let y;`, assigned by segments, by host code, and by both.
#[graphable]
fn deferred(x: &Tensor<f32>, #[key] c: bool) -> Result<Tensor<f32>> {
    let y;
    if c {
        y = ops::neg(x)?;
    } else {
        y = ops::exp(x)?;
    }
    let z = ops::scale(&y, 2.0)?;
    let w;
    if c {
        w = ops::neg(&z)?;
    } else {
        w = ops::exp(&z)?;
    }
    let h = #[eager]
    mix(&z)?;
    let v;
    if c {
        v = #[eager]
        mix(&h)?;
    } else {
        v = ops::neg(&h)?;
    }
    ops::add(&v, &w)
}

/// `let (a, b);`: on either side of a boundary, and together in a block.
#[graphable]
fn declared_together(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let (a, (b, _));
    a = ops::scale(x, 3.0)?;
    let h = #[eager]
    mix(&a)?;
    #[allow(unused_assignments)]
    let (c, mut d);
    {
        b = ops::neg(&h)?;
        (c, d) = (ops::scale(&b, 5.0)?, ops::neg(x)?);
    }
    let h = #[eager]
    mix(&c)?;
    d = ops::add(&d, &h)?;
    let (e, _);
    e = ops::add(&ops::add(&a, &b)?, &d)?;
    #[eager]
    same(&e)?;
    Ok(e)
}

/// `ref mut`, boxes, and what lies in them.
#[graphable]
fn places(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut opt = Some(ops::neg(x)?);
    let h = #[eager]
    mix(x)?;
    if let Some(ref mut o) = opt {
        *o = ops::add(o, &h)?;
    }
    let h = #[eager]
    mix(&h)?;
    let mut boxed = Box::new(ops::neg(x)?);
    let h = #[eager]
    mix(&h)?;
    *boxed = ops::add(&*boxed, &h)?;
    let h = #[eager]
    mix(&h)?;
    let mut v = Box::new(vec![ops::neg(x)?, ops::scale(x, 1.0)?]);
    let h = #[eager]
    mix(&h)?;
    (*v)[1] = ops::add(&v[1], &h)?;
    match v[0] {
        ref mut t => {
            *t = ops::add(t, &h)?;
        }
    }
    let _done = #[eager]
    same(&h)?;
    let s = ops::add(&v[0], &v[1])?;
    let s = ops::add(&s, &*boxed)?;
    ops::add(&s, opt.as_ref().unwrap())
}

/// `&mut` to an element, and to each of them, with boundaries between.
#[graphable]
fn slots(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut v = vec![ops::neg(x)?, ops::scale(x, 1.0)?];
    let h = #[eager]
    mix(x)?;
    let slot = &mut v[0];
    *slot = ops::add(slot, &h)?;
    let h = #[eager]
    mix(&h)?;
    for (i, c) in v.iter_mut().enumerate() {
        *c = ops::scale(c, (i + 2) as f32)?;
        let t = #[eager]
        same(c)?;
        *c = ops::add(c, &t)?;
    }
    ops::add(&ops::add(&v[0], &v[1])?, &h)
}

macro_rules! lin {
    ($x:expr, $w:expr) => {
        ops::mul($x, $w)?
    };
}
macro_rules! check_rank {
    ($x:expr, $n:literal) => {
        if $x.rank() != $n {
            return Err(Error::Argument { op: "rank", reason: "wrong".into() });
        }
    };
}

/// Macros of the user beside boundaries.
#[graphable]
fn own_macros(x: &Tensor<f32>, m: &Model) -> Result<Tensor<f32>> {
    check_rank!(x, 1);
    let h = lin!(x, &m.embed);
    let h = #[eager]
    mix(&h)?;
    check_rank!(h, 1);
    Ok(lin!(&h, &m.layers[2].a))
}

/// Arguments of a macro that makes the function, with boundaries in them.
macro_rules! of_arguments {
    ($name:ident, $x:ident, $n:ident, $sum:ident, $first:expr, $last:expr) => {
        #[graphable]
        fn $name($x: &Tensor<f32>, #[key] $n: usize) -> Result<Tensor<f32>> {
            let first = $first;
            let again = match $n {
                1 => ops::neg($x)?,
                _ => $first,
            };
            let $sum = ops::add(&first, &again)?;
            $last
        }
    };
}
of_arguments! {
    by_arguments, x, n, sum,
    {
        let h = #[eager]
        mix(x)?;
        ops::neg(&h)?
    },
    if n == 2 {
        let e = #[eager]
        mix(&sum)?;
        ops::scale(&e, -3.0)
    } else {
        ops::neg(&sum)
    }
}

/// As above, in every place where such an argument may stand.
macro_rules! of_placed_arguments {
    ($name:ident, $x:ident, $n:ident, $region:expr, $result:expr, $block:expr, $branches:expr) => {
        #[graphable]
        fn $name($x: &Tensor<f32>, #[key] $n: usize) -> Result<Tensor<f32>> {
            let a = $region;
            let b = ($block);
            let c = loop {
                break $branches;
            };
            let d = 'd: {
                if $n == 2 {
                    break 'd ($block);
                }
                $region
            };
            let e = $result?;
            #[allow(unused_mut)]
            let mut f = $region;
            if $n == 3 {
                f = $block;
                same(&f)?;
                return $result;
            }
            let sum = ops::add(&ops::add(&a, &b)?, &ops::add(&c, &d)?)?;
            let sum = ops::add(&sum, &ops::add(&e, &f)?)?;
            let Some(sum) = ($n > 0).then_some(sum) else {
                return $result;
            };
            #[allow(clippy::needless_return)]
            return Ok(sum);
        }
    };
}
of_placed_arguments! {
    by_placed_arguments, x, n,
    #[eager] mix(x)?,
    #[eager] mix(x),
    {
        let h = ops::scale(x, 3.0)?;
        #[eager]
        mix(&h)?
    },
    if n == 1 {
        #[eager]
        mix(x)?
    } else {
        ops::scale(x, 5.0)?
    }
}

#[derive(GraphOutput, Clone)]
struct V<'s>(Tensor<'s, f32>);
impl<'a, 's> std::ops::Add<&'a V<'s>> for &'a V<'s> {
    type Output = V<'s>;
    fn add(self, o: &V<'s>) -> V<'s> {
        V(ops::add(&self.0, &o.0).unwrap())
    }
}
impl<'s> std::ops::Neg for V<'s> {
    type Output = V<'s>;
    fn neg(self) -> V<'s> {
        V(ops::neg(&self.0).unwrap())
    }
}
impl<'s> std::ops::AddAssign<&V<'s>> for V<'s> {
    fn add_assign(&mut self, o: &V<'s>) {
        self.0 = ops::add(&self.0, &o.0).unwrap()
    }
}

/// Operators of a newtype, which are device operations.
#[graphable]
fn own_operators(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = V(ops::neg(x)?);
    let b = #[eager]
    V(mix(x)?);
    let c = &a + &b;
    let mut d = -c.clone();
    d += &b;
    let e = #[eager]
    same(&d.0)?;
    ops::add(&e, &c.0)
}

/// A `let` whose value changes the variable that it shadows.
#[graphable]
fn shadowing(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut h = ops::scale(x, 2.0)?;
    let mut all = vec![x.clone()];
    let mut n = 1;
    for _ in 0..2 {
        let all = {
            all.push(ops::neg(&h)?);
            all.len()
        };
        let (h, mut n) = {
            (h, n) = (ops::scale(&h, 5.0)?, n + all);
            (ops::neg(x)?, 7)
        };
        let Some(h) = ({
            n += 1;
            (n == 8).then_some(h)
        }) else {
            return ops::neg(x);
        };
        same(&h)?;
        #[eager]
        same(&h)?;
    }
    // -2, -10; 50; 1 + 2 + 3
    let sum = ops::add(&all[1], &all[2])?;
    ops::add(&ops::scale(&h, n as f32)?, &sum)
}

#[test]
fn a_regions_value_changed_in_place() {
    gives!(ThroughAnOptionGraph, 11.0, |g, step, x, m| g.call(&step, &x));
}

#[test]
fn declared_and_assigned_later() {
    gives!(DeferredGraph, -6.0, |g, step, x, m| g.call(&step, &x, true));
    gives!(DeclaredTogetherGraph, -64.0, |g, step, x, m| g.call(&step, &x));
}

#[test]
fn places_that_segments_change() {
    gives!(PlacesGraph, 72.0, |g, step, x, m| g.call(&step, &x));
}

#[test]
fn elements_by_mutable_references() {
    gives!(SlotsGraph, 14.0, |g, step, x, m| g.call(&step, &x));
}

#[test]
fn macros_of_the_user() {
    gives!(OwnMacrosGraph, 18.0, |g, step, x, m| g.call(&step, &x, &m));
    gives!(ByArgumentsGraph, 24.0, |g, step, x, m| g.call(&step, &x, 2));
    gives!(ByArgumentsGraph, 3.0, |g, step, x, m| g.call(&step, &x, 1));
    gives!(ByPlacedArgumentsGraph, 16.0, |g, step, x, m| g.call(&step, &x, 1));
    gives!(ByPlacedArgumentsGraph, 23.0, |g, step, x, m| g.call(&step, &x, 2));
    gives!(ByPlacedArgumentsGraph, 2.0, |g, step, x, m| g.call(&step, &x, 3));
}

#[test]
fn operators_of_a_newtype() {
    gives!(OwnOperatorsGraph, 2.0, |g, step, x, m| g.call(&step, &x));
}

#[test]
fn a_value_that_changes_what_its_name_was() {
    gives!(ShadowingGraph, 288.0, |g, step, x, m| g.call(&step, &x));
}
