//! Functions whose boundaries support different batches, and what they compute.

use graphable::{BatchDescriptor, Mode, Schedule, prelude::*};

use crate::support::{self, Checked};

#[derive(Params)]
pub(crate) struct Model {
    w: Param<f32>,
    b: Param<f32>,
    /// Row `i` is what token `i` of the last batch was.
    pub(crate) seen: State<f32>,
}

pub(crate) fn model(rt: &Runtime) -> Model {
    Model {
        w: Param::new(rt, &[2, 2], &[2.0, 0.0, 0.0, 3.0]).unwrap(),
        b: Param::new(rt, &[2], &[1.0, 1.0]).unwrap(),
        seen: State::new(rt, &[32, 2], &[-1.0; 64]).unwrap(),
    }
}

/// What every function computes of a row.
pub(crate) fn expected(x: &[f32]) -> Vec<f32> {
    x.chunks_exact(2).flat_map(|row| [row[0] * 20.0 + 1.0, row[1] * 30.0 + 1.0]).collect()
}

/// `n` rows that no other `n` and `salt` has.
pub(crate) fn rows(n: usize, salt: usize) -> Vec<f32> {
    (0..2 * n).map(|i| (i + 100 * n + 7 * salt) as f32).collect()
}

macro_rules! function {
    ($name:ident, $support:ident) => {
        /// Two segments around a boundary.
        #[graphable]
        pub(crate) fn $name(
            #[host]
            #[dims(T, 2)]
            x: &Tensor<f32>,
            #[host]
            #[dims(T)]
            at: &Tensor<u32>,
            model: &Model,
        ) -> Result<Tensor<f32>> {
            let h = ops::linear(x, &model.w)?;
            ops::scatter_rows(&model.seen, at, x)?;
            let h = #[eager(support = $support)]
            ops::scale(&h, 10.0)?;
            ops::add(&h, &model.b)
        }
    };
}
function!(any, Always);
function!(uniform, UniformBatch);
function!(single, UniformSingleTokenDecode);
function!(never, Never);

/// Without a boundary.
#[graphable]
pub(crate) fn whole(
    #[host]
    #[dims(T, 2)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    ops::add(&ops::scale(x, 2.0)?, &ops::full(x.scope(), &[2], 1.0f32)?)
}

/// One more boundary, which supports everything: three segments.
#[graphable]
pub(crate) fn layered(
    #[host]
    #[dims(T, 2)]
    x: &Tensor<f32>,
    model: &Model,
) -> Result<Tensor<f32>> {
    let h = ops::linear(x, &model.w)?;
    let h = #[eager(support = UniformBatch)]
    ops::scale(&h, 20.0)?;
    let h = ops::neg(&h)?;
    let h = #[eager(support = Always)]
    ops::scale(&h, -0.5)?;
    ops::add(&h, &model.b)
}

/// Tokens `T` of `R` sequences: a row for the last token of each.
#[graphable]
pub(crate) fn last_rows(
    #[host]
    #[dims(T, 2)]
    x: &Tensor<f32>,
    #[host]
    #[dims(R)]
    last: &Tensor<u32>,
    model: &Model,
) -> Result<Tensor<f32>> {
    let h = ops::linear(x, &model.w)?;
    let h = #[eager(support = UniformBatch)]
    ops::scale(&h, 10.0)?;
    ops::gather(&ops::add(&h, &model.b)?, 0, last)
}

/// A runtime with `uniform` in that mode, sizes 1, 4 and 8.
pub(crate) fn uniform_in(mode: Mode) -> (Checked, UniformGraph, Model) {
    let mut rt = support::runtime();
    let graph = UniformGraph::builder().mode(mode).bucket("T", Schedule::new([1, 4, 8]));
    let graph = graph.build(&mut rt).unwrap();
    let model = model(&rt);
    (rt, graph, model)
}

/// Calls a graph with `n` rows for a batch, compares its rows, and gives what it logged: `call!(rt, graph, model,
/// batch)`, with a descriptor or `None`.
macro_rules! call {
    ($rt:expr, $graph:expr, $model:expr, $n:expr, $batch:expr) => {{
        let (n, batch): (usize, Option<graphable::BatchDescriptor>) = ($n, $batch);
        let x = crate::model::rows(n, 1);
        let at: Vec<u32> = (0..n as u32).collect();
        let step = $rt.step().unwrap();
        let _scope = batch.map(|batch| step.batch(batch));
        let y = $graph.call(&step, (&x, &[n, 2]), &at, &$model).unwrap();
        assert_eq!(y.shape(), [n, 2]);
        assert_eq!(step.read(&y).unwrap(), crate::model::expected(&x), "{n} rows, {batch:?}");
        // The state holds what real rows wrote, and nothing of the padding.
        let seen = step.read(&graphable::ops::load(step.scope(), &$model.seen).unwrap()).unwrap();
        assert_eq!(seen[..2 * n], x[..], "{n} rows, {batch:?}");
        crate::support::events(&step)
    }};
}
pub(crate) use call;

/// Of that many tokens, of either kind.
pub(crate) fn batch(n: usize, decode: bool) -> BatchDescriptor {
    if decode { BatchDescriptor::decode(n) } else { BatchDescriptor::mixed(n) }
}
