//! A module without Rust's prelude, and one whose own names are those that generated code might use.

#![deny(warnings)]

#[allow(dead_code)]
mod bare {
    #![no_implicit_prelude]

    use ::graphable::{Result, Tensor, graphable, ops};

    #[graphable]
    pub fn decode(#[dims(B)] x: &Tensor<f32>, #[key] n: u32) -> Result<Tensor<f32>> {
        let mut h = ops::neg(x)?;
        let mut i = 0;
        while i < n {
            h = #[eager]
            ops::neg(&h)?;
            h = ops::scale(&h, 2.0)?;
            i += 1;
        }
        ::core::result::Result::Ok(h)
    }

    #[graphable]
    pub fn whole(step: &Tensor<f32>, #[key] rt: u32, #[key] progress: u32) -> Result<Tensor<f32>> {
        ops::scale(step, (rt + progress) as f32)
    }
}

mod shadowing {
    use graphable::{Result as GraphResult, Tensor, graphable, ops};

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
    pub fn decode(x: &Tensor<f32>, #[key] k: usize) -> GraphResult<Tensor<f32>> {
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
    let one = bare::DecodeGraph::builder().build(&mut rt)?;
    let two = shadowing::DecodeGraph::builder().build(&mut rt)?;
    for _ in 0..4 {
        let step = rt.step()?;
        let x = step.tensor(&[1], &[1.0])?;
        assert_eq!(step.read(&one.call(&step, &x, 2)?)?, [-4.0]);
        assert_eq!(step.read(&two.call(&step, &x, 2)?)?, [-2.0]);
    }
    Ok(())
}
