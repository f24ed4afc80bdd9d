//! References with the lifetime of the step where they are right: G105 refuses none of them.

use graphable::prelude::*;

#[derive(Params)]
struct Model {
    w: Param<f32>,
}

/// Parameters may live longer than the step.
#[graphable]
impl Model {
    fn weighted<'s>(&'s self, #[host] x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
        ops::mul(x, &self.w)
    }
}

#[graphable]
fn scaled<'s>(x: &Tensor<'s, f32>, w: &'s Param<f32>) -> Result<Tensor<'s, f32>> {
    ops::mul(x, w)
}

/// Nothing of the step leaves it, so it may be as short as the call.
#[graphable]
fn stored<'a>(x: &'a Tensor<'a, f32>, state: &State<f32>) -> Result<()> {
    ops::store(state, x)
}

/// A struct of tensors is an input of another kind.
#[derive(Clone, GraphOutput)]
struct Pair<'s> {
    left: Tensor<'s, f32>,
}

#[graphable]
fn left<'s>(pair: &'s Pair<'s>) -> Result<Tensor<'s, f32>> {
    ops::exp(&pair.left)
}

/// A lifetime of its own.
#[graphable]
fn lent<'a, 's: 'a>(x: &'a Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::exp(x)
}

/// A bound of another lifetime where that is declared.
#[graphable]
fn named<'s, 'b: 's>(#[host] x: &Tensor<'s, f32>, #[key] name: &'b str) -> Result<Tensor<'s, f32>> {
    if name == "exp" { ops::exp(x) } else { ops::neg(x) }
}

/// Functions that are no graph, and are called as they are written.
#[graphable(helper)]
fn helper<'s>(x: &'s Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::exp(x)
}

#[graphable]
fn plain<'s>(x: &'s Tensor<'s, f32>, factor: f32) -> Result<Tensor<'s, f32>> {
    ops::scale(x, factor)
}

trait Layer {
    fn run<'s>(&self, x: &'s Tensor<'s, f32>) -> Result<Tensor<'s, f32>>;
}

#[graphable]
impl Layer for Model {
    fn run<'s>(&self, x: &'s Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
        ops::mul(x, &self.w)
    }
}

fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    let model = Model { w: Param::new(&rt, &[1], &[2.0f32])? };
    let state = State::<f32>::zeros(&rt, &[1])?;
    let graph = ModelWeightedGraph::builder().build(&mut rt)?;
    let of_name = NamedGraph::builder().build(&mut rt)?;
    let step = rt.step()?;
    let x = step.tensor(&[1], &[3.0f32])?;
    stored(&x, &state)?;
    assert_eq!(step.read(&graph.call(&step, &model, &[2.0])?)?, [4.0]);
    assert_eq!(step.read(&of_name.call(&step, &[2.0], "neg")?)?, [-2.0]);
    let x = scaled(&x, &model.w)?;
    let x = model.run(&x)?;
    let y = plain(&x, 0.5)?;
    assert_eq!(step.read(&y)?, [6.0]);
    let zero = ops::mul(&y, 0.0)?;
    let one = lent(&zero)?;
    let pair = Pair { left: helper(&one)? };
    assert!((step.read(&left(&pair)?)?[0] - 1f32.exp().exp()).abs() < 1e-4);
    Ok(())
}
