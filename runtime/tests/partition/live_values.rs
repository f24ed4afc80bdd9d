//! Values that enter a later segment: names, moves, branches, references, closures.

use graphable::{graphable, prelude::*};

use crate::support::{Layer, Model, attention, check, model};

/// A reference to a shadowed variable, used behind a boundary.
#[graphable]
fn reference_to_shadowed(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = ops::scale(x, 2.0)?;
    let residual = &h;
    let h = ops::scale(residual, 10.0)?;
    let a = #[eager]
    attention(&h)?;
    ops::add(residual, &a)
}

#[test]
fn a_reference_to_what_is_shadowed() {
    check!(
        ReferenceToShadowedGraph,
        |rt| (),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let _ = (&m, n);
            g.call(&step, &x)
        },
        vec![22.0]
    );
}

/// A host counter is no part of the key: every turn replays the same segment.
#[graphable]
fn counted(x: &Tensor<f32>, #[key] turns: usize) -> Result<Tensor<f32>> {
    let mut h = ops::scale(x, 1.0)?;
    let mut n = 0;
    while n < turns {
        let a = #[eager]
        attention(&h)?;
        h = ops::scale(&a, 2.0)?;
        n += 1;
    }
    Ok(h)
}

#[test]
fn counters_stay_in_the_driver() {
    check!(
        CountedGraph,
        |rt| (),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let _ = (&m, n);
            g.call(&step, &x, 5)
        },
        vec![32.0]
    );
}

/// Assigned in one branch only, and late.
#[graphable]
fn maybe_assigned(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let mut best = ops::scale(x, 1.0)?;
    let a = #[eager]
    attention(x)?;
    if n > 1 {
        best = ops::scale(&a, 7.0)?;
    }
    let b = #[eager]
    attention(&a)?;
    ops::add(&best, &b)
}

#[test]
fn assigned_in_one_branch() {
    for (n, expected) in [(0, 2.0), (2, 8.0)] {
        check!(
            MaybeAssignedGraph,
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

/// Fields of an output struct are moved, changed and carried one by one.
#[derive(GraphOutput, Clone)]
struct Cache<'s> {
    k: Tensor<'s, f32>,
    v: Tensor<'s, f32>,
}

#[graphable]
fn start(x: &Tensor<f32>) -> Result<Cache<'_>> {
    Ok(Cache { k: ops::scale(x, 2.0)?, v: ops::scale(x, 3.0)? })
}

#[graphable]
fn fields(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut cache = start(x)?;
    let Cache { k, v } = cache.clone();
    let a = #[eager]
    attention(&k)?;
    cache.k = ops::add(&cache.k, &a)?;
    let b = #[eager]
    attention(&cache.k)?;
    let sum = ops::add(&b, &v)?;
    ops::add(&sum, &cache.v)
}

#[test]
fn fields_of_outputs() {
    check!(
        FieldsGraph,
        |rt| (),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let _ = (&m, n);
            g.call(&step, &x)
        },
        vec![10.0]
    );
}

/// Match arms, `if let`, labelled blocks, `while let`, tuples, in value position.
#[graphable]
fn shapes(x: &Tensor<f32>, model: &Model, #[key] n: usize) -> Result<Tensor<f32>> {
    let (a, mut b) = (ops::scale(x, 1.0)?, ops::scale(x, 2.0)?);
    let picked = 'found: {
        for layer in &model.layers {
            let t = #[eager]
            attention(&a)?;
            if let Some(bias) = &layer.bias {
                break 'found ops::mul(&t, bias)?;
            }
        }
        ops::scale(&a, 100.0)?
    };
    let mut rest = &model.layers[..];
    while let [first, more @ ..] = rest {
        b = match n {
            0 => ops::mul(&b, &first.a)?,
            1 => {
                let t = ops::mul(&b, &first.b)?;
                #[eager]
                attention(&t)?
            }
            _ => b,
        };
        rest = more;
    }
    ops::add(&picked, &b)
}

#[test]
fn blocks_as_values() {
    for (n, expected) in [(0, 2.0 + 16.0), (1, 2.0 + 30.0), (2, 4.0)] {
        check!(
            ShapesGraph,
            |rt| model(&rt),
            |g, step, m, i| {
                let x = step.tensor(&[1], &[1.0]).unwrap();
                let _ = i;
                g.call(&step, &x, &m, n)
            },
            vec![expected]
        );
    }
}

/// `else if`, `?` behind a block, `return` with a boundary, casts of read values.
#[graphable]
fn chains(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let y = if n == 0 {
        #[eager]
        attention(x)
    } else if n == 1 {
        ops::scale(x, 2.0)
    } else {
        return #[eager]
        attention(x);
    }?;
    let whole = #[eager(cx)]
    cx.item(&y)? as usize;
    if whole > 1 { ops::scale(&y, 10.0) } else { Ok(y) }
}

#[test]
fn chains_of_branches() {
    for (n, expected) in [(0, 1.0), (1, 20.0), (2, 1.0)] {
        check!(
            ChainsGraph,
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

/// Closures over variables of the driver, used by driver code and by two segments.
#[graphable]
fn closures(x: &Tensor<f32>, layer: &Layer) -> Result<Tensor<f32>> {
    let by = &layer.a;
    let half = |v: usize| v / 2;
    let project = |t: &Tensor<f32>| ops::mul(t, by);
    let mut h = project(x)?;
    for _ in 0..half(4) {
        let a = #[eager]
        attention(&h)?;
        h = project(&a)?;
    }
    let twice = |t: &Tensor<f32>| project(&project(t)?);
    twice(&h)
}

#[test]
fn closures_in_driver_and_segments() {
    check!(
        ClosuresGraph,
        |rt| model(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let _ = n;
            g.call(&step, &x, &m.layers[0])
        },
        vec![32.0]
    );
}

/// Names of the user's that look like generated ones, raw names, and prelude names taken.
mod hygiene {
    #![allow(non_camel_case_types, dead_code)]
    use graphable::{
        graphable,
        prelude::{Param, Params, Result, Tensor, ops},
    };

    use crate::support::attention;

    struct Ok2;
    type Clone = u8;
    type Option = u16;
    fn drop(_: u8) {}

    #[derive(Params)]
    pub(crate) struct W {
        pub(crate) r#type: Param<f32>,
    }

    #[graphable]
    pub(crate) fn odd_names(r#in: &Tensor<f32>, w: &W) -> Result<Tensor<f32>> {
        let __k = ops::mul(r#in, &w.r#type)?;
        let __cx = #[eager]
        attention(&__k)?;
        let __o0 = ops::scale(&__cx, 2.0)?;
        let __value = #[eager]
        attention(&__o0)?;
        let _unused: (Clone, Option) = (1, 2);
        ops::add(&__value, &__k)
    }
}

#[test]
fn odd_names() {
    use hygiene::{OddNamesGraph, W};
    check!(
        OddNamesGraph,
        |rt| W { r#type: Param::new(&rt, &[1], &[3.0]).unwrap() },
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let _ = n;
            g.call(&step, &x, &m)
        },
        vec![9.0]
    );
}

/// Many live-ins: more than one tuple holds.
#[graphable]
fn wide(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a0 = ops::scale(x, 1.0)?;
    let (a1, a2, a3, a4) =
        (ops::scale(x, 1.0)?, ops::scale(x, 1.0)?, ops::scale(x, 1.0)?, ops::scale(x, 1.0)?);
    let (b1, b2, b3, b4) =
        (ops::scale(x, 1.0)?, ops::scale(x, 1.0)?, ops::scale(x, 1.0)?, ops::scale(x, 1.0)?);
    let (c1, c2, c3, c4) =
        (ops::scale(x, 1.0)?, ops::scale(x, 1.0)?, ops::scale(x, 1.0)?, ops::scale(x, 1.0)?);
    let (d1, d2, d3, d4) =
        (ops::scale(x, 1.0)?, ops::scale(x, 1.0)?, ops::scale(x, 1.0)?, ops::scale(x, 1.0)?);
    let (e1, e2, e3, e4) =
        (ops::scale(x, 1.0)?, ops::scale(x, 1.0)?, ops::scale(x, 1.0)?, ops::scale(x, 1.0)?);
    let (f1, f2, f3, f4) =
        (ops::scale(x, 1.0)?, ops::scale(x, 1.0)?, ops::scale(x, 1.0)?, ops::scale(x, 1.0)?);
    let (g1, g2, g3, g4) =
        (ops::scale(x, 1.0)?, ops::scale(x, 1.0)?, ops::scale(x, 1.0)?, ops::scale(x, 1.0)?);
    let (h1, h2, h3, h4) =
        (ops::scale(x, 1.0)?, ops::scale(x, 1.0)?, ops::scale(x, 1.0)?, ops::scale(x, 1.0)?);
    let t = #[eager]
    attention(x)?;
    let mut sum = ops::add(&a0, &t)?;
    for v in [
        a1, a2, a3, a4, b1, b2, b3, b4, c1, c2, c3, c4, d1, d2, d3, d4, e1, e2, e3, e4, f1, f2, f3, f4, g1,
        g2, g3, g4, h1, h2, h3, h4,
    ] {
        sum = ops::add(&sum, &v)?;
    }
    Ok(sum)
}

#[test]
fn more_live_ins_than_a_tuple_has() {
    check!(
        WideGraph,
        |rt| (),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let _ = (&m, n);
            g.call(&step, &x)
        },
        vec![34.0]
    );
}
