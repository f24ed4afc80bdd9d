//! A whole-function graph in a module without Rust's prelude, and one whose own names are those that generated code might use.

#![deny(warnings)]

#[allow(dead_code)]
mod bare {
    #![no_implicit_prelude]

    use ::graphable::{Result, Tensor, graphable, ops};

    #[graphable]
    pub fn whole(step: &Tensor<f32>, #[key] rt: u32, #[key] progress: u32) -> Result<Tensor<f32>> {
        ops::scale(step, (rt + progress) as f32)
    }
}

mod shadowing {
    use graphable::{Tensor, graphable, ops};

    #[allow(dead_code, non_camel_case_types)]
    pub enum Result {
        Ok,
        Err,
    }
    #[allow(dead_code)]
    pub struct Option;
    #[allow(dead_code)]
    pub trait Clone {}

    #[graphable]
    pub fn decode(x: &Tensor<f32>, #[key] k: usize) -> graphable::Result<Tensor<f32>> {
        let __k = k as f32;
        let function = ops::scale(x, __k)?;
        let step = #[eager]
        ops::neg(&function)?;
        let region = ops::scale(&step, __k)?;
        let value = ops::add(&region, &function)?;
        core::result::Result::Ok(value)
    }
}

fn main() -> graphable::Result<()> {
    let mut rt = graphable::Runtime::new(graphable::Device::cpu())?;
    let one = bare::WholeGraph::builder().build(&mut rt)?;
    let two = shadowing::DecodeGraph::builder().build(&mut rt)?;
    for _ in 0..4 {
        let step = rt.step()?;
        let x = step.tensor(&[1], &[1.0])?;
        assert_eq!(step.read(&one.call(&step, &x, 2, 3)?)?, [5.0]);
        assert_eq!(step.read(&two.call(&step, &x, 2)?)?, [-2.0]);
    }
    Ok(())
}
