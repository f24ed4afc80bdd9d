//! Variables that are moved and assigned again, and references under several names. Random programs found each.

#![allow(clippy::needless_late_init, clippy::redundant_locals, reason = "people write so; it must work")]

use graphable::{graphable, prelude::*};

use super::{Model, gives, mix, same};

fn some<'s>(x: &Tensor<'s, f32>) -> Option<Tensor<'s, f32>> {
    Some(x.clone())
}

/// Moved in one branch, and assigned after both.
#[graphable]
fn after_branches(x: &Tensor<f32>, m: &Model) -> Result<Tensor<f32>> {
    let mut h = ops::add(x, x)?;
    let mut kept = vec![h.clone()];
    if m.deep {
        same(&h)?;
    } else {
        h = ops::scale(&h, 2.0)?;
        kept.push(h.clone());
        #[eager]
        same(x)?;
        let t = h;
        kept.push(ops::neg(&t)?);
    }
    h = #[eager]
    mix(x)?;
    ops::add(&h, &ops::add(&kept[1], &kept[0])?)
}

/// Moved at the end of a loop's body, and assigned at its beginning; a jump passes over an assignment.
#[graphable]
fn in_loops(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut h = ops::neg(x)?;
    let mut all = vec![h.clone()];
    for i in 0..3 {
        h = #[eager]
        mix(x)?;
        h = ops::scale(&h, i as f32)?;
        all.push(h);
        #[eager]
        same(x)?;
    }
    let mut last = ops::scale(x, 10.0)?;
    for i in 0..3 {
        last = ops::add(&last, x)?;
        if i == 1 {
            #[eager]
            same(x)?;
            break;
        }
        last = #[eager]
        mix(x)?;
    }
    // 2 + 1, 2 and 4
    ops::add(&last, &ops::add(&all[2], &all[3])?)
}

/// Assigned by each of the branches that follow: in one segment, in host code, by `match`.
#[graphable]
fn by_branches(x: &Tensor<f32>, m: &Model) -> Result<Tensor<f32>> {
    let mut h = ops::neg(x)?;
    let mut first = h;
    let s = ops::neg(&first)?;
    #[eager]
    same(x)?;
    if m.deep {
        h = ops::neg(x)?;
    } else {
        h = ops::scale(x, 3.0)?;
    }
    first = ops::add(&h, &first)?;
    let z = h;
    #[eager]
    same(x)?;
    match m.layers.len() {
        3 => {
            h = #[eager]
            mix(x)?;
        }
        _ => h = ops::neg(x)?,
    }
    // 2 + 2 + 3 + 1
    ops::add(&ops::add(&h, &first)?, &ops::add(&z, &s)?)
}

/// What an `else` leaves, or a pattern takes, is moved after its use.
#[graphable]
fn taken(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let Some(b) = some(x) else { return ops::neg(x) };
    let s = ops::add(&b, x)?;
    let mut t = b;
    t = ops::add(&t, &s)?;
    let u = t;
    #[eager]
    same(x)?;
    if let Some(v) = some(&u) {
        #[eager]
        same(x)?;
        let w = ops::add(&v, x)?;
        let z = v;
        return ops::add(&z, &w);
    }
    Ok(u)
}

/// The value of a `let` assigns a variable that the `let` shadows; the new one is assigned next.
#[graphable]
#[allow(unused_assignments, reason = "an assignment is what the test is about")]
fn within_a_let(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut y = ops::neg(x)?;
    {
        let mut y = {
            #[eager]
            same(x)?;
            y = ops::scale(x, 5.0)?;
            ops::neg(x)?
        };
        y = ops::scale(x, 2.0)?;
        #[eager]
        same(&y)?;
    }
    ops::neg(&y)
}

/// A guard leaves a loop before any arm assigns.
#[graphable]
fn guard_that_jumps(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut h = ops::scale(x, 3.0)?;
    for i in 0..3 {
        h = ops::add(&h, x)?;
        #[eager]
        same(x)?;
        match i {
            _ if {
                if i == 1 {
                    break;
                }
                true
            } =>
            {
                h = ops::neg(x)?
            }
            _ => h = ops::scale(x, 2.0)?,
        }
    }
    // -1 + 1 + 1
    ops::add(&h, x)
}

/// A reference under its own name, under another one whose name is taken next, and out of a tuple.
#[graphable]
fn renamed(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = ops::scale(x, 3.0)?;
    let h = &a;
    let h = h;
    let t = ops::scale(h, 2.0)?;
    let last = #[eager]
    mix(x)?;
    let u = h;
    let h = ops::neg(u)?;
    let pair = (&h, u);
    let (p, q) = (&last, u);
    let p = p;
    let s = ops::add(p, q)?;
    let last = #[eager]
    mix(pair.0)?;
    // 3 - 6 + 5 + 2 + 3 + 6
    let s = ops::add(&ops::add(u, &last)?, &ops::add(&s, p)?)?;
    ops::add(&s, &ops::add(pair.1, &t)?)
}

/// A name that a run assigns, moves and gives to a reference.
#[graphable]
fn given_again(x: &Tensor<f32>, m: &Model) -> Result<Tensor<f32>> {
    let a: Tensor<'_, f32>;
    if m.deep {
        a = ops::neg(x)?;
    } else {
        a = ops::scale(x, 5.0)?;
    }
    let b = a;
    let h = b;
    let a = &h;
    let last = #[eager]
    mix(a)?;
    ops::add(&last, a)
}

/// A number that host code computes from one of the same name, which no segment uses.
#[graphable]
fn counted(x: &Tensor<f32>, m: &Model) -> Result<Tensor<f32>> {
    let h = #[eager]
    mix(x)?;
    let k = m.layers.len() + 1;
    let k = usize::pow(k, 2);
    let last = #[eager]
    mix(&h)?;
    ops::scale(&last, k as f32)
}

#[test]
fn moved_and_assigned() {
    gives!(AfterBranchesGraph, 2.0 + 4.0 + 2.0, |g, step, x, m| g.call(&step, &x, &m));
    gives!(InLoopsGraph, 3.0 + 2.0 + 4.0, |g, step, x, m| g.call(&step, &x));
    gives!(ByBranchesGraph, 8.0, |g, step, x, m| g.call(&step, &x, &m));
    gives!(WithinALetGraph, -5.0, |g, step, x, m| g.call(&step, &x));
    gives!(GuardThatJumpsGraph, 1.0, |g, step, x, m| g.call(&step, &x));
    gives!(TakenGraph, 3.0 + 4.0, |g, step, x, m| g.call(&step, &x));
}

#[test]
fn references_under_other_names() {
    gives!(RenamedGraph, 13.0, |g, step, x, m| g.call(&step, &x));
    gives!(GivenAgainGraph, 15.0, |g, step, x, m| g.call(&step, &x, &m));
    gives!(CountedGraph, 64.0, |g, step, x, m| g.call(&step, &x, &m));
}
