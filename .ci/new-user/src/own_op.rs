//! An operation that the crate brings itself: code for the CPU and a CUDA kernel, in full and piecewise mode.

use std::sync::LazyLock;

use graphable::{
    custom::{CudaGrid, CudaKernel, CudaSource, CustomOp},
    prelude::*,
};

use crate::{assert_close, numbers};

const SOURCE: &str = include_str!("soft_cap.cu");

/// `cap * tanh(x / cap)`.
fn soft_cap<'s>(x: &Tensor<'s, f32>, cap: f32) -> Result<Tensor<'s, f32>> {
    static SOFT_CAP: LazyLock<CustomOp> = LazyLock::new(|| {
        // SAFETY: the launch below passes the kernel's four parameters, and it touches `n` elements of `x` and `y`.
        let kernel = unsafe {
            CudaKernel::new(CudaSource::Cuda(SOURCE.into()), "soft_cap", |shapes| {
                CudaGrid::for_elements(shapes.output(0).iter().product(), 256)
            })
        };
        CustomOp::builder("soft_cap")
            .keeps_padding()
            .cpu(|call| {
                let (x, y, cap) = (call.input::<f32>(0)?, call.output::<f32>(0)?, call.scalar::<f32>(0)?);
                y.iter_mut().zip(x).for_each(|(y, x)| *y = cap * (x / cap).tanh());
                Ok(())
            })
            .cuda(kernel)
            .build()
    });
    SOFT_CAP.call(x.scope()).input(x).scalar(cap).count(x).output(x.shape()).run()
}

#[graphable]
fn capped(
    #[host]
    #[dims(B, 4)]
    x: &Tensor<f32>,
    w: &Param<f32>,
) -> Result<Tensor<f32>> {
    let h = soft_cap(&ops::linear(x, w)?, 0.5)?;
    let h = #[eager(support = Always)]
    ops::relu(&h)?;
    soft_cap(&h, 0.25)
}

pub fn run() -> Result<()> {
    let mut rt = Runtime::new(Device::best()?)?;
    let weights = numbers(7, 16);
    let w = Param::new(&rt, &[4, 4], &weights)?;
    for mode in [Mode::Full, Mode::Piecewise] {
        let graph = CappedGraph::builder().bucket("B", Schedule::new([2, 4])).mode(mode).build(&mut rt)?;
        for i in 0..1000 {
            let rows = 1 + i % 4;
            let x = numbers(i as u32, 4 * rows);
            let expected: Vec<f32> = x
                .chunks(4)
                .flat_map(|row| {
                    weights
                        .chunks(4)
                        .map(|w| w.iter().zip(row).map(|(w, x)| w * x).sum::<f32>())
                        .collect::<Vec<_>>()
                })
                .map(|y| 0.25 * ((0.5 * (y / 0.5).tanh()).max(0.0) / 0.25).tanh())
                .collect();
            let step = rt.step()?;
            assert_close("soft cap", &step.read(&graph.call(&step, &x, &w)?)?, &expected);
        }
    }
    let stats = rt.stats();
    // Two buckets; one recording each in full mode, two in piecewise mode.
    assert_eq!((stats.fallbacks, stats.recordings), (0, 6), "{stats:?}");
    Ok(())
}
