//! `join` in segments: branches are closures over live-ins.

use graphable::{graphable, prelude::*};

use crate::support::{Model, attention, check, model};

/// Branches over live-ins of several segments, in a loop with a boundary, and one for each layer.
#[graphable]
fn forked(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut h = ops::mul(x, &model.embed)?;
    for layer in &model.layers {
        let (up, gate) = join(
            h.scope(),
            || ops::mul(&h, &layer.a),
            || {
                let negative = ops::neg(&h)?;
                ops::mul(&negative, &layer.b)
            },
        )?;
        let a = #[eager]
        attention(&up)?;
        h = ops::add(&a, &gate)?;
    }
    let h = &h;
    let all = join_all(h.scope(), model.layers.iter().map(|layer| move || ops::mul(h, &layer.a)))?;
    ops::add(&all[0], &all[1])
}

#[test]
fn branches_over_live_ins() {
    // h: 2, then 4 - 6, then -8 + 10; the last are 2 * 2 and 2 * 4.
    check!(
        ForkedGraph,
        |rt| model(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            g.call(&step, &x, &m)
        },
        vec![12.0]
    );
}

fn helper<'s>(x: &Tensor<'s, f32>, by: &Param<f32>) -> Result<(Tensor<'s, f32>, Tensor<'s, f32>)> {
    join(x.scope(), || ops::mul(x, by), || ops::scale(x, 10.0))
}

/// Branches in a helper, nested, bound to names, and by value.
#[graphable]
fn nested(x: &Tensor<f32>, #[key] by: u16, model: &Model) -> Result<Tensor<f32>> {
    let start = ops::scale(x, f32::from(by))?;
    let left = || helper(&start, &model.embed);
    let right = || ops::neg(x);
    let ((a, b), c) = join(x.scope(), left, right)?;
    let e = #[eager]
    attention(&a)?;
    let (early, scope) = (ops::add(&e, &b)?, x.scope());
    let (d, n, f) = join3(
        scope,
        move || ops::neg(&early),
        || Ok(2usize),
        || {
            if by > 1 { ops::scale(&c, f32::from(by)) } else { ops::relu(&c) }
        },
    )?;
    ops::scale(&ops::add(&d, &f)?, n as f32)
}

#[test]
fn branches_in_helpers_and_by_name() {
    // start 3, a 6, b 30, c -1; d -36, f -3; doubled.
    check!(
        NestedGraph,
        |rt| model(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            g.call(&step, &x, 3, &m)
        },
        vec![-78.0]
    );
}
