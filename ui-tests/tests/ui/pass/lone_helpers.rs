//! Associated functions that are no graphs: in an `impl` without the attribute, it fills in lifetimes, whatever they name.

use graphable::prelude::*;

struct Net;

impl Net {
    #[graphable]
    fn negated(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        #[cfg(not(test))]
        compile_error!("it is compiled as a test");
        ops::neg(x)
    }
}

trait Norm {
    #[graphable]
    fn norm(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        ops::exp(x)
    }
}

impl Norm for Net {
    #[graphable]
    fn norm(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        Self::negated(x)
    }
}

#[graphable]
fn all(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    Net::norm(&Net::negated(x)?)
}

fn main() {
    let mut rt = Runtime::new(Device::cpu()).unwrap();
    let graph = AllGraph::builder().build(&mut rt).unwrap();
    let step = rt.step().unwrap();
    let x = step.tensor(&[2], &[1.0f32, -2.0]).unwrap();
    assert_eq!(step.read(&graph.call(&step, &x).unwrap()).unwrap(), [1.0, -2.0]);
}
