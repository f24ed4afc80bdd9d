//! Functions with boundaries in functions with boundaries, in modules, re-exported; methods; traits.

#![deny(warnings)]

use graphable::prelude::*;

mod blocks {
    use graphable::prelude::*;

    #[derive(Params)]
    pub struct Block {
        pub w: Param<f32>,
    }

    /// One block.
    #[graphable]
    pub fn block(h: &Tensor<f32>, block: &Block) -> Result<Tensor<f32>> {
        let q = ops::mul(h, &block.w)?;
        #[eager]
        ops::neg(&q)
    }

    #[graphable]
    impl Block {
        pub fn twice(&self, h: &Tensor<f32>) -> Result<Tensor<f32>> {
            let h = ops::mul(h, &self.w)?;
            let h = #[eager]
            ops::neg(&h)?;
            ops::mul(&h, &self.w)
        }
    }

    pub mod inner {
        pub use super::{Block, BlockGraph, block};
    }
}
pub use blocks::inner::*;

#[graphable]
trait Norm {
    fn norm(&self, x: &Tensor<f32>) -> Result<Tensor<f32>>;
}

#[graphable]
impl Norm for Block {
    fn norm(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        ops::mul(x, &self.w)
    }
}

#[graphable]
fn model(x: &Tensor<f32>, parts: &[Block]) -> Result<Tensor<f32>> {
    let mut h = x.clone();
    for part in parts {
        h = part.norm(&h)?;
        h = #[piecewise]
        block(&h, part)?;
        h = #[piecewise]
        part.twice(&h)?;
    }
    Ok(h)
}

fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    let graph = ModelGraph::builder().build(&mut rt)?;
    let one = BlockGraph::builder().build(&mut rt)?;
    let parts = vec![Block { w: Param::new(&rt, &[1], &[2.0])? }];
    for _ in 0..4 {
        let step = rt.step()?;
        let x = step.tensor(&[1], &[1.0])?;
        assert_eq!(step.read(&graph.call(&step, &x, &parts)?)?, [16.0]);
        assert_eq!(step.read(&one.call(&step, &x, &parts[0])?)?, [-2.0]);
    }
    Ok(())
}
