//! Errors and panics in an arm would end every call.
use graphable::prelude::*;

#[graphable]
fn decode(p: &Scalar<bool>, k: &Scalar<u32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[device]
    if p {
        return Err(Error::Argument { op: "decode", reason: "no".to_owned() });
    }
    #[device]
    match k {
        0 => ops::neg(x),
        1 => unreachable!("only 0"),
        _ => panic!("only 0"),
    }
}

fn main() {}
