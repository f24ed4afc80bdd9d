//! Copies of tensors whose dimensions lie in another order: device time of one, of many in one graph.

use graphable::{Element, Runtime, Step, bf16, graphable, prelude::*};

use crate::timing::{Rounds, check_launches};

/// Planes of rows and columns, of which the copy exchanges the last two: square ones, images with 64, 128, 512 and 3 channels, and a
/// weight's windows.
const SHAPES: [[usize; 3]; 6] =
    [[1, 8192, 8192], [32, 64, 3136], [32, 128, 3136], [32, 512, 49], [32, 3, 50176], [512, 512, 9]];

#[graphable]
fn transposed<T: Element>(x: &Tensor<T>, #[key] launches: u32) -> Result<Tensor<T>> {
    let x = ops::permute(x, &[0, 2, 1])?;
    let mut out = ops::contiguous(&x)?;
    for _ in 1..launches {
        out = ops::contiguous(&x)?;
    }
    Ok(out)
}

fn measure<T: Element>(rt: &mut Runtime, shape: [usize; 3], value: T) -> Result<()> {
    let graph = TransposedGraph::<T>::builder().build(rt)?;
    let launches = 20;
    let call = |step: &Step<'_>| {
        let x = ops::full(step.scope(), &shape, value)?;
        let mut all = Rounds::default();
        for _ in 0..15 {
            all.measure(2, |_| graph.call(step, &x, launches).map(drop), || step.synchronize())?;
        }
        Ok::<_, Error>(all.medians().1 / f64::from(launches))
    };
    let mut us = 0.0;
    for _ in 0..3 {
        us = call(&rt.step()?)?;
    }
    check_launches(rt, launches)?;
    let bytes = 2 * shape.iter().product::<usize>() * size_of::<T>();
    println!(
        "{{\"figure\":\"transposes\",\"case\":\"{} {shape:?}\",\"launch_us\":{us:.2},\"gb_s\":{:.0}}}",
        T::DTYPE,
        bytes as f64 / us / 1e3
    );
    Ok(())
}

pub(crate) fn run() -> Result<()> {
    let mut rt = crate::timing::runtime_without_passes()?;
    for shape in SHAPES {
        measure::<f32>(&mut rt, shape, 1.0)?;
        measure::<bf16>(&mut rt, shape, bf16::from_f32(1.0))?;
        measure::<u8>(&mut rt, shape, 1)?;
    }
    Ok(())
}
