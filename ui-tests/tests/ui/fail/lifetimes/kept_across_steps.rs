//! Outputs cannot be collected over steps.

use graphable::prelude::*;

fn run(rt: &mut Runtime) -> Result<()> {
    let mut kept = Vec::new();
    for _ in 0..3 {
        let step = rt.step()?;
        kept.push(step.tensor(&[1], &[1.0f32])?);
    }
    Ok(())
}

fn main() {}
