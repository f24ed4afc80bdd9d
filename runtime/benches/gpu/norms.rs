//! The norms: device time of one launch, of many in one graph, for the rows of a decoding step and for 64 MiB.
//!
//! Of two versions of the kernels, each in a binary of its own, the lines with the same `case` compare.

use graphable::{Float, Param, bf16, f16, graphable, prelude::*};

use crate::timing::{Rounds, check_launches};

#[graphable]
fn rms_norm<T: Float>(x: &Tensor<T>, w: &Param<T>, #[key] launches: u32) -> Result<Tensor<T>> {
    let mut out = ops::rms_norm(x, w, 1e-5)?;
    for _ in 1..launches {
        out = ops::rms_norm(x, w, 1e-5)?;
    }
    Ok(out)
}

#[graphable]
fn layer_norm<T: Float>(x: &Tensor<T>, w: &Param<T>, #[key] launches: u32) -> Result<Tensor<T>> {
    let mut out = ops::layer_norm(x, w, w, 1e-5)?;
    for _ in 1..launches {
        out = ops::layer_norm(x, w, w, 1e-5)?;
    }
    Ok(out)
}

#[graphable]
fn add_rms_norm<T: Float>(x: &Tensor<T>, w: &Param<T>, #[key] launches: u32) -> Result<Tensor<T>> {
    let (_, mut out) = ops::add_rms_norm(x, x, w, 1e-5)?;
    for _ in 1..launches {
        (_, out) = ops::add_rms_norm(x, x, w, 1e-5)?;
    }
    Ok(out)
}

/// Values of a row: of heads, small and large models, and more than threads keep.
const WIDTHS: [usize; 7] = [128, 576, 1024, 4096, 8192, 16_384, 128_256];

/// Rows of a decoding step, and as many as 64 MiB have.
fn rows<T: Float>(width: usize) -> [usize; 4] {
    [1, 4, 16, (64 << 20) / (width * T::DTYPE.size())]
}

/// Microseconds of a launch of each graph.
macro_rules! measure {
    ($rt:ident, $t:ty, $($graph:ident)*) => {
        for (width, rows) in WIDTHS.into_iter().flat_map(|width| rows::<$t>(width).map(|rows| (width, rows))) {
            let weight = Param::new($rt, &[width], &vec![<$t>::from_f64(0.5); width])?;
            let launches = if rows <= 16 { 200u32 } else { 20 };
            $({
                let graph = $graph::<$t>::builder().build($rt)?;
                for _ in 0..3 {
                    let step = $rt.step()?;
                    let x = ops::full(step.scope(), [rows, width], <$t>::from_f64(0.5))?;
                    graph.call(&step, &x, &weight, launches)?;
                }
                check_launches($rt, launches)?;
                let step = $rt.step()?;
                let x = ops::full(step.scope(), [rows, width], <$t>::from_f64(0.5))?;
                let mut all = Rounds::default();
                for _ in 0..15 {
                    all.measure(2, |_| graph.call(&step, &x, &weight, launches).map(drop), || step.synchronize())?;
                }
                let us = all.medians().1 / f64::from(launches);
                let name = stringify!($graph).trim_end_matches("Graph");
                let case = format!("{name} {} {rows}x{width}", <$t>::DTYPE);
                println!("{{\"figure\":\"norms\",\"case\":\"{case}\",\"launch_us\":{us:.3}}}");
            })*
        }
    };
}

pub(crate) fn run() -> Result<()> {
    let mut rt = crate::timing::runtime_without_passes()?;
    let rt = &mut rt;
    measure!(rt, f32, RmsNormGraph LayerNormGraph AddRmsNormGraph);
    measure!(rt, bf16, RmsNormGraph LayerNormGraph AddRmsNormGraph);
    measure!(rt, f16, AddRmsNormGraph);
    Ok(())
}
