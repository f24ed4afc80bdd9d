//! Programs that a reader of the macro wrote as people write models, and that were refused: names, patterns,
//! references and mutation around boundaries. Each is checked in every mode against values worked out by hand.

use graphable::prelude::*;

mod assigned;
mod borrowed;
mod changed;
mod chosen;
mod exclusive;
mod keyed;
mod lists;
mod made;
mod parts;
mod steered;
mod taken;

#[derive(Params)]
struct Layer {
    a: Param<f32>,
    b: Param<f32>,
    #[config]
    eps: f32,
    #[config]
    on: bool,
}

#[derive(Params)]
struct Model {
    layers: Vec<Layer>,
    embed: Param<f32>,
    #[config]
    deep: bool,
}

impl Model {
    fn layer(&self, i: usize) -> &Layer {
        &self.layers[i]
    }
}

/// Layer i of 1, 2, 3: a = i, b = 10 i, eps = i / 4, on but for the second; embed 3.
fn model(rt: &Runtime) -> Model {
    let scalar = |v: f32| Param::new(rt, &[1], &[v]).unwrap();
    let layer = |i: f32| Layer { a: scalar(i), b: scalar(10.0 * i), eps: 0.25 * i, on: i != 2.0 };
    Model { layers: vec![layer(1.0), layer(2.0), layer(3.0)], embed: scalar(3.0), deep: false }
}

/// What stands for work between graphs: twice, and once.
fn mix<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::scale(x, 2.0)
}

fn same<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::scale(x, 1.0)
}

/// `$call` gives `$expected` for an input of one, in every mode, and settles.
macro_rules! gives {
    ($graph:ident, $expected:expr, |$g:ident, $step:ident, $x:ident, $m:ident| $call:expr) => {
        crate::support::check!(
            $graph,
            |rt| super::model(&rt),
            |$g, $step, $m, n| {
                let $x = $step.tensor(&[1], &[1.0]).unwrap();
                let _ = (n, &$m);
                $call
            },
            vec![$expected]
        )
    };
}
use gives;
