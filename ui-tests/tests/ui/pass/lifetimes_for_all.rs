//! Helpers, structs, aliases and whole modules without a lifetime written.

use graphable::prelude::*;

#[graphable]
fn helper(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::relu(x)
}

/// A method by itself, which is no graph.
struct Factor(f32);

impl Factor {
    #[graphable]
    fn apply(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        ops::scale(x, self.0)
    }
}

#[graphable]
struct Last {
    last: Tensor<f32>,
}

/// Above the derives, which see what it writes.
#[graphable]
#[derive(Clone, GraphOutput)]
struct Halves {
    left: Tensor<f32>,
    right: Option<Tensor<f32>>,
}

#[graphable]
#[derive(Clone, GraphOutput)]
enum Either {
    One(Tensor<f32>),
    Two { a: Tensor<f32>, b: Vec<Tensor<f32>> },
}

#[graphable]
type Pair = (Tensor<f32>, Tensor<f32>);

#[graphable]
fn pair(x: &Tensor<f32>) -> Result<Pair<'_>> {
    Ok((ops::relu(x)?, ops::neg(x)?))
}

#[graphable]
fn halves(x: &Tensor<f32>, y: &Tensor<f32>) -> Result<Halves<'_>> {
    let Last { last } = Last { last: ops::add(x, y)? };
    Ok(Halves { left: last, right: None })
}

#[graphable]
mod model {
    use graphable::prelude::*;

    #[derive(Params)]
    pub struct Weights {
        pub scale: Param<f32>,
    }

    #[derive(Clone, GraphOutput)]
    pub struct Cache {
        pub k: Tensor<f32>,
        pub v: Vec<Tensor<f32>>,
    }

    /// Holds tensors through another.
    #[derive(Clone, GraphOutput)]
    pub struct Two {
        pub first: Cache,
        pub second: Option<Cache>,
    }

    pub struct Of<T> {
        pub tensor: Tensor<T>,
    }

    pub type Out = Result<Tensor<f32>>;

    /// Holds none.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub struct Sizes {
        pub rows: usize,
    }

    pub trait Layer {
        fn forward(&self, x: &Tensor<f32>, cache: &Cache) -> Result<Tensor<f32>>;
    }

    impl Layer for Weights {
        fn forward(&self, x: &Tensor<f32>, cache: &Cache) -> Result<Tensor<f32>> {
            ops::mul(&ops::add(x, &cache.k)?, &self.scale)
        }
    }

    impl Cache {
        pub fn of(k: &Tensor<f32>) -> Cache {
            Self { k: k.clone(), v: Vec::new() }
        }

        pub fn twice(&self) -> Result<Two> {
            Ok(Two { first: self.clone(), second: Some(self.clone()) })
        }
    }

    impl Default for Of<f32> {
        fn default() -> Self {
            unreachable!()
        }
    }

    pub fn rows(sizes: Sizes) -> usize {
        sizes.rows
    }

    pub fn either(x: &Tensor<f32>, y: &Tensor<f32>, first: bool) -> Out {
        if first { Ok(x.clone()) } else { Ok(y.clone()) }
    }

    pub fn all(x: &Tensor<f32>, layers: &[Box<dyn Layer>], cache: &Cache) -> Result<Tensor<f32>> {
        let mut h = x.clone();
        for layer in layers {
            h = layer.forward(&h, cache)?;
        }
        Ok(h)
    }

    mod inner {
        use super::{Cache, Tensor};

        pub(super) fn key(cache: Cache, _other: &Tensor<f32>) -> Tensor<f32> {
            cache.k
        }
    }

    /// A boundary makes a graph of it, as anywhere.
    pub fn step(x: &Tensor<f32>, weights: &Weights) -> Result<Tensor<f32>> {
        let cache = Cache::of(x);
        let mixed = #[eager] either(x, &cache.k, false)?;
        let key = inner::key(cache.twice()?.first, &mixed);
        weights.forward(&mixed, &Cache { k: key, v: Vec::new() })
    }

    pub fn decode(#[host] x: &Tensor<f32>, weights: &Weights) -> Result<Tensor<f32>> {
        ops::mul(x, &weights.scale)
    }
}

fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    let weights = model::Weights { scale: Param::new(&mut rt, &[2], &[2.0, 3.0])? };
    let step_graph = model::StepGraph::builder().build(&mut rt)?;
    let decode = model::DecodeGraph::builder().build(&mut rt)?;
    for _ in 0..4 {
        let step = rt.step()?;
        let x = step.tensor(&[2], &[-1.0, 1.0])?;
        assert_eq!(step.read(&step_graph.call(&step, &x, &weights)?)?, [-4.0, 6.0]);
        assert_eq!(step.read(&decode.call(&step, &[1.0, 1.0], &weights)?)?, [2.0, 3.0]);
        assert_eq!(step.read(&helper(&x)?)?, [0.0, 1.0]);
        assert_eq!(step.read(&Factor(2.0).apply(&x)?)?, [-2.0, 2.0]);
        let Halves { left, right } = halves(&x, &x)?;
        assert_eq!(step.read(&left)?, [-2.0, 2.0]);
        assert!(right.is_none());
        assert_eq!(step.read(&pair(&x)?.1)?, [1.0, -1.0]);
        let either = [Either::One(x.clone()), Either::Two { a: x.clone(), b: Vec::new() }];
        assert!(matches!(&either[0], Either::One(_)) && matches!(&either[1], Either::Two { a: _, b } if b.is_empty()));
        let layers: Vec<Box<dyn model::Layer>> = Vec::new();
        assert_eq!(step.read(&model::all(&x, &layers, &model::Cache::of(&x))?)?, [-1.0, 1.0]);
        assert_eq!(model::rows(model::Sizes { rows: 3 }), 3);
    }
    Ok(())
}
