//! What the messages about views say, followed.

#![deny(warnings)]

use graphable::prelude::*;

#[kernel]
fn half(x: f32) -> f32 {
    0.5 * x
}

#[kernel(index)]
fn named(x: View<f32, 2>, [i, j]: [i32; 2]) -> f32 {
    x.at([j, i])
}

#[kernel(index)]
fn called(x: View<f32, 2>, [i, j]: [i32; 2]) -> f32 {
    half(x.at([i, j])) + x.dim(1) as f32
}

#[kernel(index)]
fn last(x: View<f32, 2>, [i, j]: [i32; 2]) -> f32 {
    x.at([i, x.dim(1) - 1 - j])
}

#[kernel(index)]
fn padded(x: View<f32, 1>, [i]: [i32; 1]) -> f32 {
    x.at_or([i - 1], 0.0)
}

#[kernel(index)]
fn total(x: View<f32, 2>, [i]: [i32; 1]) -> f32 {
    let mut sum = 0.0;
    for k in 0..x.dim(1) {
        sum += x.at([i, k]);
    }
    sum
}

#[kernel(index)]
fn ragged(x: View<f32, 1>, ends: View<i32, 1>, [i]: [i32; 1]) -> f32 {
    let (mut sum, end) = (0.0, ends.at([i]));
    for k in 0..x.dim(0) {
        if k >= end {
            break;
        }
        sum += x.at([k]);
    }
    sum
}

/// Names of the user's are no names of the macro's.
macro_rules! shifted {
    ($name:ident $index:ident) => {
        #[kernel(index)]
        fn $name(shape: View<u8, 1>, scope: u8, [i]: [i32; 1]) -> u8 {
            let $index = i + 1;
            shape.at([$index - i]) + scope
        }
    };
}

shifted!(shifted i);

/// A view whose size bounds a loop, and a device scalar; a kernel without a float needs no type.
fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    let step = rt.step()?;
    let x = step.tensor(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
    assert_eq!(step.read(&named(&x, x.shape())?)?, [1.0, 3.0, 2.0, 4.0]);
    assert_eq!(step.read(&called(&x, x.shape())?)?, [2.5, 3.0, 3.5, 4.0]);
    assert_eq!(step.read(&last(&x, x.shape())?)?, [2.0, 1.0, 4.0, 3.0]);
    let sums = total(&x, [x.dim(0)])?;
    assert_eq!(step.read(&sums)?, [3.0, 7.0]);
    assert_eq!(step.read(&padded(&sums, [3])?)?, [0.0, 3.0, 7.0]);
    let ends = step.tensor(&[3], &[0, 1, 2])?;
    assert_eq!(step.read(&ragged(&sums, &ends, [3])?)?, [0.0, 3.0, 10.0]);
    let bytes = step.tensor(&[2], &[7u8, 9])?;
    assert_eq!(step.read(&shifted(&bytes, 1, [2])?)?, [10, 10]);
    Ok(())
}
