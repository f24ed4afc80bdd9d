//! Functions with boundaries where there is no prelude.

#![deny(warnings)]

mod bare {
    #![no_implicit_prelude]

    use ::graphable::{Result, Tensor, graphable, ops};

    #[graphable]
    pub fn layer(h: &Tensor<f32>) -> Result<Tensor<f32>> {
        let a = #[eager]
        ops::neg(h)?;
        ops::scale(&a, 2.0)
    }

    #[graphable]
    pub fn decode(x: &Tensor<f32>, #[key] turns: usize) -> Result<Tensor<f32>> {
        let mut h = ops::exp(x)?;
        for _ in 0..turns {
            h = #[piecewise]
            layer(&h)?;
        }
        ops::neg(&h)
    }
}

fn main() -> graphable::Result<()> {
    let mut rt = graphable::Runtime::new(graphable::Device::cpu())?;
    let graph = bare::DecodeGraph::builder().build(&mut rt)?;
    for _ in 0..4 {
        let step = rt.step()?;
        let x = step.tensor(&[1], &[0.0])?;
        assert_eq!(step.read(&graph.call(&step, &x, 2)?)?, [-4.0]);
    }
    Ok(())
}
