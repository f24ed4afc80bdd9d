//! Values of the host that a body changes.
use graphable::prelude::*;

#[graphable]
fn decode(p: &Scalar<bool>, k: &Scalar<u32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut rounds = 0;
    let mut all = Vec::new();
    let mut name = String::new();
    let mut y = x.clone();
    #[device]
    while p {
        rounds += 1;
        y = ops::neg(&y)?;
    }
    #[device]
    if p {
        all.push(ops::neg(&y)?);
    } else {
        extend(&mut all, &y);
        println!("{rounds}");
    }
    #[device]
    match k {
        0 => name.push_str("zero"),
        _ => {}
    }
    ops::scale(&all[0], rounds as f32)
}

fn extend<'s>(all: &mut Vec<Tensor<'s, f32>>, y: &Tensor<'s, f32>) {
    all.push(y.clone());
}

fn main() {}
