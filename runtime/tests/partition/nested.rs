//! Functions with boundaries inside functions with boundaries; methods; helpers.

use graphable::{graphable, prelude::*};

use crate::support::{Layer, Model, attention, check, model};

/// A helper: no boundary, plain code.
#[graphable]
fn scaled(x: &Tensor<f32>, by: f32) -> Result<Tensor<f32>> {
    ops::scale(x, by)
}

#[graphable]
fn layer(h: &Tensor<f32>, l: &Layer) -> Result<Tensor<f32>> {
    let q = ops::mul(h, &l.a)?;
    let a = #[eager]
    attention(&q)?;
    ops::mul(&a, &l.b)
}

#[graphable]
fn outer(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut h = scaled(x, 0.5)?;
    for l in &model.layers {
        h = #[piecewise]
        layer(&h, l)?;
    }
    scaled(&h, 2.0)
}

#[test]
fn piecewise_calls() {
    check!(
        OuterGraph,
        |rt| model(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            g.call(&step, &x, &m)
        },
        vec![120.0]
    );
    check!(
        LayerGraph,
        |rt| model(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            g.call(&step, &x, &m.layers[1])
        },
        vec![20.0]
    );
}

#[graphable]
impl Layer {
    fn product(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        ops::mul(&ops::mul(x, &self.a)?, &self.b)
    }

    fn attend(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let q = self.product(x)?;
        let a = #[eager]
        attention(&q)?;
        match &self.bias {
            Some(b) => ops::mul(&a, b),
            None => Ok(a),
        }
    }
}

#[graphable]
fn with_methods(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut h = x.clone();
    for l in &model.layers {
        h = #[piecewise]
        l.attend(&h)?;
    }
    Ok(h)
}

#[test]
fn methods() {
    check!(
        WithMethodsGraph,
        |rt| model(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            g.call(&step, &x, &m)
        },
        vec![240.0]
    );
    check!(
        LayerAttendGraph,
        |rt| model(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            g.call(&step, &m.layers[1], &x)
        },
        vec![40.0]
    );
}

/// What a path names: a method with its receiver, an associated function, and both by `Self`.
#[graphable]
impl Model {
    fn embedded(x: &Tensor<f32>, by: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
        let y = ops::scale(x, n as f32)?;
        let y = #[eager]
        attention(&y)?;
        ops::mul(&y, by)
    }

    fn by_paths(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let h = #[piecewise]
        Self::embedded(x, x, 3)?;
        let h = #[piecewise]
        Layer::attend(&self.layers[0], &h)?;
        #[piecewise]
        <Layer>::attend(&self.layers[1], &h)
    }
}

#[graphable]
fn by_path(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let h = #[piecewise]
    Model::by_paths(model, x)?;
    ops::neg(&h)
}

#[test]
fn methods_by_path() {
    check!(
        ByPathGraph,
        |rt| model(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            g.call(&step, &x, &m)
        },
        vec![-720.0]
    );
}

mod inner {
    use graphable::{graphable, prelude::*};

    #[graphable]
    pub(crate) fn inner(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        #[eager]
        ops::neg(x)
    }
}
pub(crate) use inner::{InnerGraph, inner};

#[graphable]
fn reexported(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[piecewise]
    inner(x)
}

#[test]
fn re_exports_and_functions_in_functions() {
    check!(
        ReexportedGraph,
        |rt| (),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            g.call(&step, &x)
        },
        vec![-1.0]
    );
    check!(
        InnerGraph,
        |rt| (),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            g.call(&step, &x)
        },
        vec![-1.0]
    );

    #[derive(Params)]
    struct Local {
        w: Param<f32>,
    }
    #[graphable]
    fn local(x: &Tensor<f32>, m: &Local) -> Result<Tensor<f32>> {
        ops::mul(x, &m.w)
    }
    check!(
        LocalGraph,
        |rt| Local { w: Param::new(&rt, &[1], &[7.0]).unwrap() },
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            g.call(&step, &x, &m)
        },
        vec![7.0]
    );
}
