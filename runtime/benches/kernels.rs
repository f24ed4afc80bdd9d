//! What the kernels of the CPU backend take that a decoding step spends its time in: products and attention, each as one
//! operation, eagerly, to its result.
//!
//! `cargo bench -p graphable --bench kernels`

use std::time::Instant;

use graphable::{
    Device, Float, Param, Result, Runtime, Step, Tensor, bf16,
    ops::{self, AttentionMask},
};

/// The shortest of many runs, in seconds.
fn shortest(step: &Step<'_>, runs: u32, mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        step.synchronize()?;
        let start = Instant::now();
        run()?;
        step.synchronize()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

/// `[m, k]` times the transpose of weights `[n, k]`.
fn product<T: Float>(rt: &mut Runtime, name: &str, [m, k, n]: [usize; 3], value: T) -> Result<()> {
    let weights = Param::new(rt, &[n, k], &vec![value; n * k])?;
    let step = rt.step()?;
    let x = step.tensor(&[m, k], &vec![value; m * k])?;
    let best = shortest(&step, 50, || ops::linear(&x, &weights).map(drop))?;
    let bytes = (n * k * size_of::<T>()) as f64;
    println!("product {name} {m} x {k} x {n}: {:.1} us, {:.1} GB/s", best * 1e6, bytes / best / 1e9);
    Ok(())
}

/// `t` queries of 9 heads and `s` keys of 3, of 64 elements each.
fn attention(rt: &mut Runtime, t: usize, s: usize) -> Result<()> {
    let step = rt.step()?;
    let tensor = |rows: usize, heads: usize| -> Result<Tensor<'_, f32>> {
        step.tensor(&[1, rows, heads, 64], &vec![0.1f32; rows * heads * 64])
    };
    let (q, k, v) = (tensor(t, 9)?, tensor(s, 3)?, tensor(s, 3)?);
    let best = shortest(&step, 5, || ops::attention(&q, &k, &v, AttentionMask::Causal, 0.125).map(drop))?;
    println!("attention, {t} queries, {s} keys: {:.1} us", best * 1e6);
    Ok(())
}

fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    for n in [576, 1536, 49152] {
        for m in [1, 4, 16, 64] {
            product(&mut rt, "f32", [m, 576, n], 0.5f32)?;
        }
        product(&mut rt, "bf16", [1, 576, n], bf16::from_f32(0.5))?;
    }
    product(&mut rt, "f32", [1, 1536, 576], 0.5f32)?;
    for (t, s) in [(1, 128), (1, 2048), (1, 8192), (512, 512), (2048, 2048)] {
        attention(&mut rt, t, s)?;
    }
    Ok(())
}
