//! 1000 small kernels in one graph.

use graphable::{Device, Passes, Runtime, graphable, prelude::*};

use crate::timing::per_call;

#[graphable]
fn thousand(x: &Tensor<f32>, one: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut y = ops::add(x, one)?;
    for _ in 0..999 {
        y = ops::add(&y, one)?;
    }
    Ok(y)
}

pub(crate) fn run() -> Result<()> {
    let mut rt = Runtime::new(Device::cuda(0))?;
    // It is about many kernels.
    rt.set_passes(Passes::none());
    let graph = ThousandGraph::builder().build(&mut rt)?;
    let mut nodes = 0;
    for _ in 0..3 {
        let step = rt.step()?;
        let (x, one) = (step.tensor(&[1024], &[0.0; 1024])?, step.tensor(&[1024], &[1.0; 1024])?);
        let y = graph.call(&step, &x, &one)?;
        assert_eq!(step.read(&y)?[0], 1000.0);
        nodes = step.stats().live_recordings;
    }
    let step = rt.step()?;
    let (x, one) = (step.tensor(&[1024], &[0.0; 1024])?, step.tensor(&[1024], &[1.0; 1024])?);
    let (host, total) = per_call(20, 50, |_| graph.call(&step, &x, &one).map(drop), || step.synchronize())?;
    println!("{{\"figure\":\"small\",\"host_us\":{host:.3},\"total_us\":{total:.3},\"graphs\":{nodes}}}");
    Ok(())
}
