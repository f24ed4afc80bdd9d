//! What crosses a segment's end: by binding, by value, by borrow.

use graphable::{graphable, prelude::*};

use crate::support::{Model, attention, check, model};

/// Two live-outs share a name: the outer `h` and the one that shadows it.
#[graphable]
fn shadowed(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut h = ops::scale(x, 1.0)?;
    let mut outs = ops::scale(x, 1.0)?;
    for p in &model.layers {
        h = ops::mul(&h, &p.a)?;
        let h = ops::scale(&h, 10.0)?;
        let a = #[eager]
        attention(&h)?;
        outs = a;
    }
    ops::add(&h, &outs)
}

#[test]
fn two_live_outs_of_one_name() {
    // h: 1 -> 2 -> 8; outs: 20, then 80.
    check!(
        ShadowedGraph,
        |rt| model(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            g.call(&step, &x, &m)
        },
        vec![88.0]
    );
}

/// Borrows, destructuring, closures, late initialisation: the driver's own `let`s.
#[graphable]
#[allow(clippy::needless_late_init, reason = "late initialisation is what is tested")]
fn driver_lets(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut h = ops::add(x, x)?;
    for i in 0..model.layers.len() {
        let layer = &model.layers[i];
        let crate::support::Layer { a, b, .. } = layer;
        let residual = &h;
        let q = ops::mul(residual, a)?;
        let t = #[eager]
        attention(&q)?;
        let proj = |t: &Tensor<f32>| ops::mul(t, b);
        h = ops::add(residual, &proj(&t)?)?;
    }
    let y;
    if model.layers.len() > 1 {
        y = ops::add(&h, &h)?;
        #[eager]
        attention(&y)?;
    } else {
        y = h.clone();
    }
    Ok(y)
}

#[test]
fn lets_of_the_driver() {
    // h: 2 -> 2 + 2*2*3 = 14 -> 14 + 14*4*5 = 294; y = 588.
    check!(
        DriverLetsGraph,
        |rt| model(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            g.call(&step, &x, &m)
        },
        vec![588.0]
    );
}

fn consume<'s>(t: Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::scale(&t, 3.0)
}

/// Moves are repeated in the driver; `mut` variables and collections are carried out.
#[graphable]
fn moves(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut outs = Vec::new();
    let mut h = ops::scale(x, 2.0)?;
    let mut count = 0usize;
    for layer in &model.layers {
        let y = consume(h)?;
        let a = #[eager]
        attention(&y)?;
        h = ops::mul(&a, &layer.a)?;
        outs.push(h.clone());
        count += 1;
    }
    let last = outs.len() - 1;
    let sum = ops::add(&outs[0], &outs[last])?;
    ops::scale(&sum, count as f32)
}

#[test]
fn moves_and_collections() {
    // h: 2 -> 6*2 = 12 -> 36*4 = 144; (12 + 144) * 2
    check!(
        MovesGraph,
        |rt| model(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            g.call(&step, &x, &m)
        },
        vec![312.0]
    );
}

/// Iterators, closures, recursion, labelled loops and slice patterns inside one segment.
fn double<'s>(x: &Tensor<'s, f32>, n: usize) -> Result<Tensor<'s, f32>> {
    if n == 0 {
        return Ok(x.clone());
    }
    double(&ops::add(x, x)?, n - 1)
}

#[graphable]
fn rich(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let qs = model
        .layers
        .iter()
        .enumerate()
        .map(|(i, l)| {
            let t = ops::mul(x, &l.a)?;
            ops::scale(&t, i as f32 + 1.0)
        })
        .collect::<Result<Vec<_>>>()?;
    let mut y = qs.iter().try_fold(x.clone(), |acc, q| ops::add(&acc, q))?;
    'o: for (i, l) in model.layers.iter().enumerate() {
        for j in 0..3 {
            if j > i {
                continue 'o;
            }
            if let Some(b) = &l.bias {
                y = ops::mul(&y, b)?;
            }
        }
    }
    let [a, b] = &ops::split(&ops::concat(&[&y, &y], 0)?, 0, 2)?[..] else {
        return Err(Error::Argument { op: "rich", reason: "split gives two".into() });
    };
    let mut zs = vec![a.clone(), b.clone()];
    let y = double(&y, 2)?;
    let t = #[eager]
    attention(&y)?;
    zs.push(t);
    let last = zs.len() - 1;
    ops::add(&zs[0], &zs[last])
}

#[test]
fn rich_bodies() {
    // y = 1 + 2 + 8 = 11, times 2 twice = 44; + 4 * 44
    check!(
        RichGraph,
        |rt| model(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            g.call(&step, &x, &m)
        },
        vec![220.0]
    );
}

/// Branches in value position with a boundary in one of them.
#[graphable]
fn value_branch(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let y = if n > 1 {
        let t = ops::scale(x, 2.0)?;
        #[eager]
        attention(&t)?
    } else {
        ops::scale(x, 5.0)?
    };
    let z = match n {
        0 => ops::scale(&y, 1.0)?,
        1 => ops::scale(&y, 10.0)?,
        _ =>
        {
            #[eager]
            attention(&ops::scale(&y, 100.0)?)?
        }
    };
    Ok(z)
}

#[test]
fn branches_as_values() {
    for (n, expected) in [(0, 5.0), (1, 50.0), (2, 200.0)] {
        check!(
            ValueBranchGraph,
            |rt| (),
            |g, step, m, i| {
                let x = step.tensor(&[1], &[1.0]).unwrap();
                g.call(&step, &x, n)
            },
            vec![expected]
        );
    }
}
