//! Generated code where there is no prelude, and where common names mean something else.

#![deny(warnings, missing_docs, unsafe_code, clippy::all)]

/// Names that generated code must not pick up.
#[allow(dead_code, missing_docs, reason = "they are only in the way")]
pub mod shadowed {
    pub struct Option;
    pub struct Some;
    pub struct Ok;
    pub struct Err;
    pub struct Clone;
    pub struct Copy;
    pub struct Vec;
    pub struct Default;
    pub struct Into;
    pub struct From;
    pub struct PhantomData;
    pub struct Piecewise;
    pub struct Runtime;
    pub struct Step;
    pub struct Schedule;
    pub struct T0;
}
/// Functions without boundaries, without a prelude.
///
/// Those with boundaries need it: a `#[diagnostic]` attribute is found through it.
pub mod plain {
    #![no_implicit_prelude]
    #[allow(unused_imports, reason = "they are only in the way")]
    use super::shadowed::*;
    use ::graphable::{GraphOutput, Params, Result, Scalar, Tensor, graphable, ops};

    /// One weight.
    #[derive(Params)]
    pub struct Weight {
        pub(super) w: ::graphable::Param<f32>,
    }

    /// One tensor.
    #[derive(GraphOutput)]
    pub struct Out<'s> {
        pub(super) t: Tensor<'s, f32>,
    }

    /// Its parameters are named like locals of generated code.
    #[graphable]
    pub fn plain<T: ::graphable::Float>(
        #[host]
        #[dims(B, 2)]
        step: &Tensor<T>,
        #[host] rt: &Scalar<T>,
        #[dims(B, 2)] function: &Tensor<T>,
        #[key] progress: usize,
        weight: &Weight,
    ) -> Result<Tensor<T>> {
        let _ = (progress, weight);
        ops::add(&ops::mul(step, rt)?, function)
    }

    /// Unused parts are no warnings.
    #[graphable]
    pub fn helper(x: &Tensor<f32>) -> Result<Out<'_>> {
        ::core::result::Result::Ok(Out { t: ops::neg(x)? })
    }
}

/// Functions with boundaries.
pub mod driven {
    use ::graphable::{Result, Tensor, graphable, ops};

    use super::plain::{Weight, helper};
    #[allow(unused_imports, reason = "they are only in the way")]
    use super::shadowed::*;

    /// Boundaries.
    #[graphable]
    pub fn driven(#[host] x: &Tensor<f32>, weight: &Weight) -> Result<Tensor<f32>> {
        let y = ops::linear(x, &weight.w)?;
        let z = #[eager]
        helper(&y)?;
        ops::add(&y, &z.t)
    }

    /// Calls it.
    #[graphable]
    pub fn twice(#[host] x: &Tensor<f32>, weight: &Weight) -> Result<Tensor<f32>> {
        let y = #[piecewise]
        driven(x, weight)?;
        ops::scale(&y, 2.0)
    }

    #[graphable]
    impl Weight {
        /// A method with boundaries.
        pub fn layer(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> {
            let y = ops::linear(x, &self.w)?;
            let z = #[eager]
            helper(&y)?;
            ops::sub(&y, &z.t)
        }

        /// A method that calls it.
        pub fn layers(&self, #[host] x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
            let mut y = ops::scale(x, 1.0)?;
            for _ in 0..n {
                y = #[piecewise]
                self.layer(&y)?;
            }
            ops::scale(&y, 1.0)
        }

        /// A method without other parameters.
        pub fn alone(&self) -> Result<f32> {
            #[eager]
            {}
            ::core::result::Result::Ok(1.0)
        }
    }
}

use driven::*;
use plain::*;

#[test]
fn it_runs() {
    let mut rt = ::graphable::Runtime::new(::graphable::Device::cpu()).unwrap();
    let weight = Weight { w: ::graphable::Param::new(&rt, &[1, 1], &[3.0]).unwrap() };
    let plain = PlainGraph::<f32>::builder().build(&mut rt).unwrap();
    let driven = DrivenGraph::builder().build(&mut rt).unwrap();
    let twice = TwiceGraph::builder().build(&mut rt).unwrap();
    let layers = WeightLayersGraph::builder().build(&mut rt).unwrap();
    let alone = WeightAloneGraph::builder().build(&mut rt).unwrap();
    ::std::assert_eq!(DrivenGraph::PLAN.boundaries(), 1);
    for _ in 0..3 {
        let step = rt.step().unwrap();
        let f = step.tensor([1, 2], &[10.0, 20.0]).unwrap();
        let out = plain.call(&step, &[1.0, 2.0], 2.0, &f, 1, &weight).unwrap();
        ::std::assert_eq!(step.read(&out).unwrap(), [12.0, 24.0]);
        let shape: &[usize] = &[1, 1];
        let out = driven.call(&step, (&[5.0f32][..], shape), &weight).unwrap();
        ::std::assert_eq!(step.read(&out).unwrap(), [0.0]);
        let out = twice.call(&step, (&[5.0f32][..], shape), &weight).unwrap();
        ::std::assert_eq!(step.read(&out).unwrap(), [0.0]);
        let out = layers.call(&step, &weight, (&[1.0f32][..], shape), 2).unwrap();
        ::std::assert_eq!(step.read(&out).unwrap(), [36.0]);
        ::std::assert_eq!(alone.call(&step, &weight).unwrap(), 1.0);
    }
}
