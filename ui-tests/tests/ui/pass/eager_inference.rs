//! Values of regions whose type is found by the `let` alone; they steer the host code, or are keyed.

#![deny(warnings)]

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let values: Vec<usize> = #[eager(cx)]
    cx.read(x)?.iter().map(|v| *v as usize).collect();
    let mut h = ops::neg(x)?;
    for value in values {
        if value > 1 {
            continue;
        }
        #[key]
        let turns: u32 = #[eager(cx)]
        (cx.item(&ops::sum(&h, 0)?)? as i32).unsigned_abs().into();
        h = ops::scale(&h, turns as f32)?;
    }
    let last: Option<f32> = #[eager]
    "2".parse().ok();
    match last {
        Some(_) => ops::exp(&h),
        None => Ok(h),
    }
}

fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    let graph = DecodeGraph::builder().build(&mut rt)?;
    for _ in 0..4 {
        let step = rt.step()?;
        let x = step.tensor(&[2], &[0.0, 2.0])?;
        assert_eq!(step.read(&graph.call(&step, &x)?)?[0], 1.0);
    }
    Ok(())
}
