//! Boundaries at the edges of the device work around them, beside everything that they may stand next to.

#![deny(warnings)]
#![allow(dead_code, reason = "they are compiled, and read")]

use std::cell::RefCell;

use graphable::prelude::*;

#[derive(Params)]
struct Cache {
    keys: State<f32>,
    values: State<f32>,
}

#[derive(Params)]
struct Model {
    layers: Vec<Param<f32>>,
    #[config]
    turns: usize,
}

thread_local! {
    static SEEN: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

fn look(cx: &Eager<'_>, t: &Tensor<f32>) -> Result<f32> {
    let value = cx.item(t)?;
    SEEN.with_borrow_mut(|seen| seen.push(value));
    Ok(value)
}

/// Every form of a region that is a statement of its own.
#[graphable]
fn forms(x: &Tensor<f32>, w: &Tensor<f32>, #[key] sizes: Vec<usize>) -> Result<(Tensor<f32>, f32)> {
    let a = ops::add(x, w)?;
    // Its value in a pattern, with a type, a cast, a `?` and another capability.
    let (first, mut second): (Tensor<f32>, f32) = #[eager(early)]
    (ops::scale(w, 2.0)?, 1.0);
    #[key]
    let many = #[eager(c, early)]
    c.item(w)? as usize;
    let b = ops::add(&a, &first)?;
    #[allow(clippy::let_unit_value)]
    #[eager(early)]
    {
        let _ = ops::scale(w, sizes[0] as f32)?;
    }
    let c = ops::scale(&b, (many * sizes[0]) as f32)?;
    second = #[eager(cx, late)]
    look(cx, &c).map(|seen| seen * second)?;
    let d = ops::neg(&c)?;
    Ok((d, second))
}

/// In loops, branches and blocks a region stays inside.
#[graphable]
fn nested(x: &Tensor<f32>, model: &Model, cache: &Cache, #[key] deep: bool) -> Result<Tensor<f32>> {
    let mut h = ops::neg(x)?;
    for layer in model.layers.iter().take(model.turns) {
        let a = ops::mul(&h, layer)?;
        let old = #[eager(early)]
        ops::load(x.scope(), &cache.values)?;
        ops::store(&cache.keys, &a)?;
        #[eager(cx, late)]
        look(cx, &a)?;
        h = ops::add(&a, &old)?;
    }
    let wide = {
        let a = ops::exp(&h)?;
        #[eager(cx, late)]
        look(cx, &a)?;
        ops::neg(&a)?
    };
    if deep {
        let a = ops::exp(&wide)?;
        #[eager(cx, late)]
        look(cx, &a)?;
        ops::neg(&a)
    } else {
        Ok(wide)
    }
}

/// Full mode records a moved region that it may record.
#[graphable]
fn capturable(x: &Tensor<f32>, w: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = ops::neg(x)?;
    let b = #[eager(early, support = Always)]
    ops::exp(w)?;
    ops::add(&a, &b)
}

fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    let graph = FormsGraph::builder().build(&mut rt)?;
    for _ in 0..4 {
        let step = rt.step()?;
        let x = step.tensor(&[1], &[1.0])?;
        let w = step.tensor(&[1], &[2.0])?;
        let (y, seen) = graph.call(&step, &x, &w, vec![1, 2, 3])?;
        // (1 + 2 + 4) * 2
        assert_eq!((step.read(&y)?, seen), (vec![-14.0], 14.0));
    }
    assert_eq!(SEEN.take(), [14.0; 4]);
    assert_eq!(FormsGraph::PLAN.segments(), 1, "{}", FormsGraph::PLAN);

    let model = Model { layers: vec![Param::new(&rt, &[1], &[3.0])?], turns: 1 };
    let cache = Cache { keys: State::new(&rt, &[1], &[0.0])?, values: State::new(&rt, &[1], &[3.0])? };
    let graph = NestedGraph::builder().build(&mut rt)?;
    for _ in 0..4 {
        let step = rt.step()?;
        let x = step.tensor(&[1], &[1.0])?;
        // -1 * 3 + 3 = 0; -exp(0) = -1; -exp(-1)
        assert_eq!(step.read(&graph.call(&step, &x, &model, &cache, true)?)?, [-(-1.0f32).exp()]);
    }
    Ok(())
}
