//! A tensor stays on its thread.

use graphable::prelude::*;

fn run(rt: &mut Runtime) -> Result<()> {
    let step = rt.step()?;
    let x = step.tensor(&[1], &[1.0f32])?;
    std::thread::scope(|s| {
        s.spawn(|| ops::neg(&x).map(drop));
    });
    Ok(())
}

fn main() {}
