//! One step at a time.

use graphable::prelude::*;

fn run(rt: &mut Runtime) -> Result<()> {
    let one = rt.step()?;
    let two = rt.step()?;
    let x = one.tensor(&[1], &[1.0f32])?;
    two.read(&x).map(drop)
}

fn main() {}
