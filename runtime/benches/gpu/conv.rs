//! Convolutions of ResNet-50 (32 images) and of a small U-Net (8 images): device time of one, of many in one graph. Inputs and
//! weights have their channels next to each other in memory, as the convolution before leaves them, and as PyTorch recommends;
//! then in the second place, as they are made where nothing is said. In f32, each is measured a second time with
//! [`Numerics::fourier`], which PyTorch has no switch for.

use graphable::{Float, Numerics, Runtime, Step, bf16, graphable, prelude::*};

use crate::timing::{Rounds, check_launches};

/// `(batch, channels, height and width, channels of the result, window, stride)`, the padding half a window.
const SHAPES: [[usize; 6]; 13] = [
    [32, 3, 224, 64, 7, 2],
    [32, 64, 56, 64, 1, 1],
    [32, 64, 56, 64, 3, 1],
    [32, 64, 56, 256, 1, 1],
    [32, 128, 56, 128, 3, 2],
    [32, 128, 28, 128, 3, 1],
    [32, 256, 14, 256, 3, 1],
    [32, 512, 7, 512, 3, 1],
    [32, 1024, 14, 2048, 1, 2],
    [8, 32, 128, 32, 3, 1],
    [8, 64, 64, 128, 3, 1],
    [8, 128, 64, 64, 3, 1],
    [8, 256, 32, 256, 3, 1],
];

#[graphable]
fn convolve<T: Float>(
    x: &Tensor<T>,
    w: &Tensor<T>,
    #[key] stride: usize,
    #[key] padding: usize,
    #[key] launches: u32,
) -> Result<Tensor<T>> {
    let config = ops::ConvConfig::new().stride(stride).padding(padding);
    let mut out = ops::conv2d(x, w, config)?;
    for _ in 1..launches {
        out = ops::conv2d(x, w, config)?;
    }
    Ok(out)
}

fn measure<T: Float>(
    rt: &mut Runtime,
    [n, c, size, out, window, stride]: [usize; 6],
    is_last: bool,
) -> Result<()> {
    let graph = ConvolveGraph::<T>::builder().build(rt)?;
    let launches = 10;
    let call = |step: &Step<'_>| {
        let filled = |n: usize, size: usize, value: f64| match is_last {
            true => {
                let of = ops::full(step.scope(), &[n, size, size, c], T::from_f64(value))?;
                ops::permute(&of, &[0, 3, 1, 2])
            }
            false => ops::full(step.scope(), &[n, c, size, size], T::from_f64(value)),
        };
        let (x, w) = (filled(n, size, 0.5)?, filled(out, window, 0.01)?);
        let mut all = Rounds::default();
        for _ in 0..15 {
            let one = |_| graph.call(step, &x, &w, stride, window / 2, launches).map(drop);
            all.measure(2, one, || step.synchronize())?;
        }
        Ok::<_, Error>(all.medians().1 / f64::from(launches))
    };
    let mut us = 0.0;
    for _ in 0..3 {
        us = call(&rt.step()?)?;
    }
    check_launches(rt, launches)?;
    let (case, places) =
        (format!("{c}x{size}x{size} {out} {window}x{window}/{stride}"), size.div_ceil(stride));
    let work = 2 * n * out * places * places * c * window * window;
    println!(
        "{{\"figure\":\"conv\",\"numerics\":\"{}\",\"layout\":\"channels {}\",\"case\":\"{} {n} {case}\",\"launch_us\":{us:.2},\"tflop_s\":{:.1}}}",
        rt.numerics(),
        if is_last { "last" } else { "first" },
        T::DTYPE,
        work as f64 / us / 1e6
    );
    Ok(())
}

pub(crate) fn run() -> Result<()> {
    let mut rt = crate::timing::runtime_without_passes()?;
    for (shape, is_last) in SHAPES.into_iter().flat_map(|shape| [(shape, true), (shape, false)]) {
        measure::<f32>(&mut rt, shape, is_last)?;
        rt.set_numerics(Numerics::default().fourier(true));
        measure::<f32>(&mut rt, shape, is_last)?;
        rt.set_numerics(Numerics::default());
        measure::<bf16>(&mut rt, shape, is_last)?;
    }
    Ok(())
}
