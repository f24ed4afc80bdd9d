//! Functions that cannot return the errors of what they describe.
use graphable::prelude::*;

#[graphable(helper)]
fn decode(p: &Scalar<bool>, x: &Tensor<f32>) -> Tensor<f32> {
    #[device]
    if p { ops::neg(x).unwrap() } else { ops::exp(x).unwrap() }
}

#[graphable]
trait Choose {
    fn choose(&self, p: &Scalar<bool>);
}

struct One(State<f32>);

#[graphable]
impl Choose for One {
    fn choose(&self, p: &Scalar<bool>) {
        #[device]
        if p {
            ops::store(&self.0, &ops::zeros(p.scope(), 1).unwrap()).unwrap();
        }
    }
}

fn main() {}
