//! Names that come and go: what a reader of tokens confuses first.

use graphable::{graphable, prelude::*};

use crate::support::{Model, attention, check, model};

/// A `let` of the driver takes the name of a live-in of the pending segment.
#[graphable]
fn hoisted(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let q = ops::scale(x, 10.0)?;
    let x = &model.embed;
    let r = ops::mul(&q, x)?;
    let a = #[eager]
    attention(&r)?;
    ops::mul(&a, x)
}

#[test]
fn a_hoisted_let_shadows() {
    check!(
        HoistedGraph,
        |rt| model(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let _ = n;
            g.call(&step, &x, &m)
        },
        vec![40.0]
    );
}

/// Inner bindings of a live-in's name, before and after its own use.
#[graphable]
fn inner_names(x: &Tensor<f32>, model: &Model, #[key] n: usize) -> Result<Tensor<f32>> {
    let mut h = #[eager]
    attention(x)?;
    let b = ops::scale(&h, 3.0)?;
    for l in &model.layers {
        if let Some(b) = &l.bias {
            h = ops::mul(&h, b)?;
        }
        h = ops::add(&h, &b)?;
    }
    let n = match n {
        n if n > 5 => n - 5,
        h => h + 1,
    };
    let hs: Vec<Tensor<f32>> = model.layers.iter().map(|h| ops::mul(&b, &h.a)).collect::<Result<_>>()?;
    let t = #[eager]
    attention(&h)?;
    let t = ops::scale(&t, n as f32)?;
    ops::add(&t, &hs[1])
}

#[test]
fn inner_bindings_of_the_same_name() {
    // h: 1 -> 4 -> 8 + 3 = 11; hs[1] = 3 * 4.
    for (n, by) in [(7, 2.0), (2, 3.0)] {
        check!(
            InnerNamesGraph,
            |rt| model(&rt),
            |g, step, m, i| {
                let x = step.tensor(&[1], &[1.0]).unwrap();
                let _ = i;
                g.call(&step, &x, &m, n)
            },
            vec![11.0 * by + 12.0]
        );
    }
}

/// Assigned in both branches, in one segment, before any use.
#[graphable]
fn both_branches(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let y;
    let mut z = ops::scale(x, 1.0)?;
    let a = #[eager]
    attention(&z)?;
    if n > 1 {
        y = ops::scale(&a, 2.0)?;
        z = ops::scale(&y, 2.0)?;
    } else {
        y = ops::scale(&a, 3.0)?;
    }
    let b = #[eager]
    attention(&y)?;
    ops::add(&ops::add(&b, &y)?, &z)
}

#[test]
fn assigned_in_both_branches() {
    for (n, expected) in [(0, 7.0), (2, 8.0)] {
        check!(
            BothBranchesGraph,
            |rt| (),
            |g, step, m, i| {
                let x = step.tensor(&[1], &[1.0]).unwrap();
                let _ = (&m, i);
                g.call(&step, &x, n)
            },
            vec![expected]
        );
    }
}

/// What the next turn of an outer loop reads is live where an inner loop continues it.
#[graphable]
fn back_edges(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut kept = ops::scale(x, 1.0)?;
    let mut h = ops::scale(x, 1.0)?;
    'outer: for layer in &model.layers {
        let a = #[eager]
        attention(&kept)?;
        h = ops::add(&h, &a)?;
        for turn in 0..3 {
            kept = ops::mul(&h, &layer.a)?;
            let big = #[eager]
            attention(&kept)?;
            h = ops::add(&h, &big)?;
            if turn == 1 {
                continue 'outer;
            }
        }
        kept = ops::scale(&kept, 1000.0)?;
    }
    ops::add(&h, &kept)
}

#[test]
fn liveness_along_back_edges() {
    // Layer a = 2: h = 2; kept 4, h 6; kept 12, h 18. Layer a = 4: h 30; kept 120, h 150; kept 600, h 750.
    check!(
        BackEdgesGraph,
        |rt| model(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let _ = n;
            g.call(&step, &x, &m)
        },
        vec![1350.0]
    );
}

/// A counter that a later segment reads; collections changed by a closure and by methods.
#[graphable]
fn counters(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut n = 1usize;
    let mut outs: Vec<Tensor<f32>> = Vec::with_capacity(4);
    let y = ops::scale(x, n as f32)?;
    n += 1;
    let a = #[eager]
    attention(&y)?;
    let z = ops::scale(&a, n as f32)?;
    n *= 5;
    outs.push(z);
    outs.push(ops::scale(&a, n as f32)?);
    let t = #[eager]
    attention(&outs[1])?;
    outs.insert(0, t);
    outs.truncate(2);
    let sum = ops::add(&outs[0], &outs[1])?;
    if matches!(n, k if k > 9) { ops::scale(&sum, outs.len() as f32) } else { Ok(sum) }
}

#[test]
fn counters_and_collections() {
    check!(
        CountersGraph,
        |rt| (),
        |g, step, m, i| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let _ = (&m, i);
            g.call(&step, &x)
        },
        vec![24.0]
    );
}

/// Fields by value, by reference, in conditions; a struct built and taken apart.
#[derive(Params)]
pub(crate) struct Settings {
    pub(crate) w: Param<f32>,
    #[config]
    pub(crate) on: bool,
    #[config]
    pub(crate) dims: (usize, usize),
}

#[allow(
    clippy::single_match,
    clippy::match_bool,
    clippy::match_like_matches_macro,
    reason = "a match on a field is what is tested"
)]
#[graphable]
fn settings(x: &Tensor<f32>, s: &Settings) -> Result<Tensor<f32>> {
    let a = #[eager]
    attention(x)?;
    let mut h = a.clone();
    if s.on {
        h = ops::mul(&h, &s.w)?;
    }
    while h.rank() < s.dims.1 {
        h = ops::reshape(&h, &[1, 1])?;
    }
    match s.on {
        true => h = ops::scale(&h, s.dims.0 as f32)?,
        false => {}
    }
    let b = #[eager]
    attention(&h)?;
    ops::reshape(&b, &[s.dims.0 - 1])
}

#[test]
fn fields_in_every_position() {
    check!(
        SettingsGraph,
        |rt| Settings { w: Param::new(&rt, &[1], &[3.0]).unwrap(), on: true, dims: (2, 2) },
        |g, step, m, i| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let _ = i;
            g.call(&step, &x, &m)
        },
        vec![6.0]
    );
}

/// A closure that changes what it captures, and one that was moved.
#[graphable]
fn changing_closures(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let two = 2.0;
    let by_two = move |t: &Tensor<f32>| ops::scale(t, two);
    let mut outs = vec![by_two(x)?];
    let a = #[eager]
    attention(&outs[0])?;
    let mut keep = |t: Tensor<f32>| outs.push(t);
    keep(by_two(&a)?);
    keep(by_two(&a)?);
    let b = #[eager]
    attention(&outs[2])?;
    ops::add(&b, &outs[0])
}

#[test]
fn closures_that_change_things() {
    check!(
        ChangingClosuresGraph,
        |rt| (),
        |g, step, m, i| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let _ = (&m, i);
            g.call(&step, &x)
        },
        vec![6.0]
    );
}

/// Where inner blocks have other items of these names.
const FACTOR: f32 = 3.0;

fn doubled<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::scale(x, 2.0)
}

/// Items of inner blocks have the names of variables, of closures, and of what closures call.
#[graphable]
fn items_of_blocks(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let k = n as f32;
    let by = |t: &Tensor<f32>| ops::scale(t, k);
    let scaled = |t: &Tensor<f32>| ops::scale(t, FACTOR);
    let a = #[eager]
    attention(&scaled(&by(x)?)?)?;
    let c = {
        #[expect(non_upper_case_globals, reason = "the name of a variable")]
        const k: f32 = 10.0;
        fn scaled<'s>(t: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
            ops::add(t, 7.0)
        }
        let b = #[eager]
        attention(&a)?;
        let c = scaled(&by(&b)?)?;
        ops::scale(&c, k)?
    };
    let own = |t: &Tensor<f32>| {
        #[expect(non_upper_case_globals, reason = "the name of a variable")]
        const k: f32 = 0.5;
        ops::scale(t, k)
    };
    let d = #[eager]
    attention(&own(&c)?)?;
    for k in 0..n {
        let e = #[eager]
        attention(&own(&d)?)?;
        if k == 1 {
            return by(&doubled(&e)?);
        }
    }
    scaled(&d)
}

#[test]
fn items_of_inner_blocks_hide_nothing_outside_them() {
    for (n, expected) in [(1, 3.0 * 0.5 * 10.0 * (3.0 + 7.0)), (2, 2.0 * 0.5 * 10.0 * (12.0 + 7.0))] {
        check!(
            ItemsOfBlocksGraph,
            |rt| (),
            |g, step, m, i| {
                let x = step.tensor(&[1], &[1.0]).unwrap();
                let _ = i;
                g.call(&step, &x, n)
            },
            vec![expected]
        );
    }
}
