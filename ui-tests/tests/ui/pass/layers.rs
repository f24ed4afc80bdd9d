//! A model as one writes it: layers, options, early errors, matching on a config, a helper of its own.

#![deny(warnings)]
#![deny(missing_docs)]

use graphable::prelude::*;

/// How a layer ends.
#[derive(Clone, Copy, PartialEq, ConfigValue)]
pub enum Activation {
    /// `x * sigmoid(x)`
    Silu,
    /// Scaled, then cut off below zero.
    Relu {
        /// The scale.
        scale: f32,
    },
}

/// Weights of one layer.
#[derive(Params)]
pub struct Layer {
    w: Param<f32>,
    bias: Option<Param<f32>>,
    #[config]
    activation: Activation,
}

/// Weights.
#[derive(Params)]
pub struct Model {
    embed: Param<f32>,
    layers: Vec<Layer>,
    #[config]
    eps: f32,
}

fn attention<'s>(q: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::softmax(q, 1)
}

/// A helper: an ordinary function.
#[graphable]
fn activate(h: &Tensor<f32>, activation: Activation) -> Result<Tensor<f32>> {
    match activation {
        Activation::Silu => ops::silu(h),
        Activation::Relu { scale } => ops::relu(&ops::scale(h, scale)?),
    }
}

/// Logits of the next tokens.
///
/// # Errors
/// Shapes that do not fit.
#[graphable]
pub fn decode(
    #[host]
    #[dims(B)]
    tokens: &Tensor<u32>,
    #[key] limit: usize,
    model: &Model,
) -> Result<Tensor<f32>> {
    if model.layers.is_empty() {
        return Err(Error::Argument { op: "decode", reason: "no layers".into() });
    }
    let mut h = ops::embedding(tokens, &model.embed)?;
    for (i, layer) in model.layers.iter().enumerate() {
        if i == limit {
            break;
        }
        let q = ops::mul(&h, &layer.w)?;
        let q = match &layer.bias {
            Some(bias) => ops::add(&q, bias)?,
            None => q,
        };
        let a = #[eager(support = UniformBatch)]
        attention(&q)?;
        h = activate(&ops::add(&h, &a)?, layer.activation)?;
    }
    ops::scale(&h, model.eps)
}

fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    let graph = DecodeGraph::builder().build(&mut rt)?;
    assert_eq!(DecodeGraph::PLAN.boundaries(), 1);
    let layer = |activation| {
        Ok::<_, Error>(Layer { w: Param::new(&rt, &[2], &[1.0, 2.0])?, bias: None, activation })
    };
    let model = Model {
        embed: Param::new(&rt, &[3, 2], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])?,
        layers: vec![layer(Activation::Silu)?, layer(Activation::Relu { scale: 2.0 })?],
        eps: 0.5,
    };
    let mut results = Vec::new();
    for _ in 0..4 {
        let step = rt.step()?;
        let y = graph.call(&step, &[2, 0], 8, &model)?;
        assert_eq!(y.shape(), [2, 2]);
        results.push(step.read(&y)?);
    }
    results.dedup();
    assert_eq!(results.len(), 1);
    assert!(rt.stats().replays > 0);
    Ok(())
}
