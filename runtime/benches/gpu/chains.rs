//! Eight element-wise operations over 64 MiB, with passes and without.

use graphable::{Passes, bf16, graphable, prelude::*};

use crate::timing::per_call;

#[graphable]
fn eight<T: Float>(x: &Tensor<T>, w: &Tensor<T>) -> Result<Tensor<T>> {
    let y = ops::mul(x, w)?;
    let y = ops::add(&y, x)?;
    let y = ops::silu(&y)?;
    let y = ops::mul(&y, 0.5)?;
    let y = ops::sub(&y, w)?;
    let y = ops::relu(&y)?;
    let y = ops::add(&y, 1.0)?;
    ops::neg(&y)
}

fn measure<T: Float>(passes: bool, one: T, other: T) -> Result<()> {
    let mut rt = crate::timing::runtime()?;
    if !passes {
        rt.set_passes(Passes::none());
    }
    let graph = EightGraph::<T>::builder().build(&mut rt)?;
    let count = (64 << 20) / size_of::<T>();
    let (ones, others) = (vec![one; count], vec![other; count]);
    let mut total = 0.0;
    // Until it is recorded, with its results in their place; then measured.
    for measured in [false, false, false, true] {
        let step = rt.step()?;
        let (x, w) = (step.tensor(&[count], &ones)?, step.tensor(&[count], &others)?);
        drop(graph.call(&step, &x, &w)?);
        if measured {
            total = per_call(7, 40, |_| graph.call(&step, &x, &w).map(drop), || step.synchronize())?.1;
        }
    }
    let kernels = rt.tree().recordings.iter().map(|node| node.kernels).max().unwrap_or_default();
    // Each input once, and the output.
    let terabytes = 3.0 * 64.0 * 1024.0 * 1024.0 / total / 1e6;
    let (case, passes) = (T::DTYPE, if passes { "" } else { " without passes" });
    println!(
        "{{\"figure\":\"chains\",\"case\":\"eight {case}{passes}\",\"kernels\":{kernels},\"total_us\":{total:.3},\"tb_s\":{terabytes:.3}}}"
    );
    Ok(())
}

pub(crate) fn run() -> Result<()> {
    for passes in [true, false] {
        measure(passes, 0.75f32, 1.5)?;
        measure(passes, bf16::from_f32(0.75), bf16::from_f32(1.5))?;
    }
    Ok(())
}
