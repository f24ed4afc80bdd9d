//! One captured function: two device inputs of 64×64 whose addresses alternate, and a host scalar that
//! changes. Nothing waits.

use graphable::{Device, Runtime, graphable, prelude::*};

use crate::timing::per_call;

#[graphable]
fn product(a: &Tensor<f32>, b: &Tensor<f32>, #[host] shift: &Scalar<f32>) -> Result<Tensor<f32>> {
    let y = ops::relu(&ops::matmul(a, b)?)?;
    ops::add(&y, shift.tensor())
}

pub(crate) fn run() -> Result<()> {
    let mut rt = Runtime::new(Device::cuda(0))?;
    let graph = ProductGraph::builder().build(&mut rt)?;
    let zeros = vec![0.5f32; 64 * 64];
    for _ in 0..3 {
        let step = rt.step()?;
        let inputs: Vec<_> = (0..4).map(|_| step.tensor(&[64, 64], &zeros)).collect::<Result<_>>()?;
        for i in 0..2 {
            graph.call(&step, &inputs[i], &inputs[i + 2], 1.0)?;
        }
    }
    let before = rt.stats();
    let step = rt.step()?;
    let inputs: Vec<_> = (0..4).map(|_| step.tensor(&[64, 64], &zeros)).collect::<Result<_>>()?;
    let call = |i: usize| graph.call(&step, &inputs[i % 2], &inputs[i % 2 + 2], i as f32).map(drop);
    let (host, total) = per_call(20, 500, call, || step.synchronize())?;
    drop(inputs);
    let after = step.stats();
    println!(
        "{{\"figure\":\"calls\",\"host_us\":{host:.3},\"total_us\":{total:.3},\"recorded_meanwhile\":{}}}",
        after.recordings - before.recordings
    );
    Ok(())
}
