//! What the kernels of the CPU backend take that a decoding step spends its time in: products and attention, each as one
//! operation, eagerly, to its result.
//!
//! `cargo bench -p graphable --bench kernels`; with `-- elements`, element-wise operations beside `#[kernel]` functions, with
//! `-- rows`, norms, softmax and sums beside those of rows, with `-- indexed`, gathers beside those of indices, with `-- blocks`,
//! products with weights in blocks of every format, beside those of floats.

use std::time::Instant;

use graphable::{
    BlockFormat, Device, Float, Param, Result, Runtime, Step, Tensor, Weight, bf16, f16,
    ops::{self, AttentionMask},
};

#[path = "shared/indexed.rs"]
mod indexed;
#[path = "shared/rows.rs"]
mod rows;
#[path = "shared/twins.rs"]
mod twins;

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

/// `[m, k]` times the transpose of weights `[n, k]` in blocks, whose bits do not matter.
fn blocks(rt: &mut Runtime, format: BlockFormat, [m, k, n]: [usize; 3]) -> Result<()> {
    let bytes = n * k / format.elements() * format.bytes();
    let weights: Vec<u8> = (0..bytes).map(|i| (i * 37 % 60) as u8).collect();
    let weights = Weight::<f32>::blocks(rt, &[n, k], format, weights)?;
    let step = rt.step()?;
    let x: Vec<f32> = (0..m * k).map(|i| (i * 7919 % 1000) as f32 / 500.0 - 1.0).collect();
    let x = step.tensor(&[m, k], &x)?;
    let best = shortest(&step, 50, || ops::linear(&x, &weights).map(drop))?;
    let (gigabytes, products) = (bytes as f64 / best / 1e9, (m * n * k) as f64 / best / 1e9);
    println!(
        "product {format} {m} x {k} x {n}: {:.1} us, {gigabytes:.1} GB/s, {products:.1}e9 products/s",
        best * 1e6
    );
    Ok(())
}

/// Products with weights in blocks, beside those of f32.
fn all_blocks(rt: &mut Runtime) -> Result<()> {
    for m in [1, 8, 64] {
        product(rt, "f32", [m, 1536, 1536], 0.5f32)?;
        for &format in BlockFormat::ALL {
            blocks(rt, format, [m, 1536, 1536])?;
        }
    }
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

/// Elements of the operands of element-wise operations: below what is split over threads.
const ELEMENTS: [usize; 2] = [64, 16 * 1024];

/// An operation beside a kernel that is its twin, in turn: microseconds of each, and their ratio.
fn pair<'s, A, B>(
    step: &Step<'s>,
    name: &str,
    mut built_in: impl FnMut() -> Result<Tensor<'s, A>>,
    mut twin: impl FnMut() -> Result<Tensor<'s, B>>,
) -> Result<()> {
    const LAUNCHES: u32 = 50;
    let mut best = [f64::INFINITY; 2];
    for _ in 0..60 {
        let times = [
            shortest(step, 1, || (0..LAUNCHES).try_for_each(|_| built_in().map(drop)))?,
            shortest(step, 1, || (0..LAUNCHES).try_for_each(|_| twin().map(drop)))?,
        ];
        for (best, time) in best.iter_mut().zip(times) {
            *best = best.min(time);
        }
    }
    let [built_in, twin] = best.map(|seconds| seconds * 1e6 / f64::from(LAUNCHES));
    println!("{name}: built-in {built_in:.2} us, kernel {twin:.2} us, {:.2}", built_in / twin);
    Ok(())
}

fn elements<T: Float>(rt: &mut Runtime) -> Result<()> {
    for n in ELEMENTS {
        let step = rt.step()?;
        let (rows, columns) = (n / 64, 64);
        let values: Vec<T> = (0..n).map(|i| T::from_f64((i % 97) as f64 * 0.05 - 2.4)).collect();
        let x = step.tensor(&[rows, columns], &values)?;
        let y = step.tensor(&[rows, columns], &values)?;
        let row = step.tensor(&[columns], &values[..columns])?;
        let column = step.tensor(&[rows, 1], &values[..rows])?;
        let one = step.tensor(&[], &values[..1])?;
        let turned = ops::transpose(&step.tensor(&[columns, rows], &values)?, 0, 1)?;
        let cond = ops::lt(&x, &row)?;
        let named = |name: &str| format!("{name} {} {n}", T::DTYPE);
        pair(&step, &named("add"), || ops::add(&x, &y), || twins::add(&x, &y))?;
        pair(&step, &named("mul"), || ops::mul(&x, &y), || twins::mul(&x, &y))?;
        pair(&step, &named("add row"), || ops::add(&x, &row), || twins::add(&x, &row))?;
        pair(&step, &named("add column"), || ops::add(&x, &column), || twins::add(&x, &column))?;
        pair(&step, &named("add scalar"), || ops::add(&x, &one), || twins::add(&x, &one))?;
        pair(&step, &named("add transposed"), || ops::add(&turned, &y), || twins::add(&turned, &y))?;
        pair(&step, &named("exp"), || ops::exp(&x), || twins::exp(&x))?;
        pair(&step, &named("gelu_tanh"), || ops::gelu_tanh(&x), || twins::gelu_tanh(&x))?;
        pair(&step, &named("silu_mul"), || ops::silu_mul(&x, &y), || twins::silu_mul(&x, &y))?;
        pair(&step, &named("lt"), || ops::lt(&x, &y), || twins::lt(&x, &y))?;
        pair(&step, &named("where"), || ops::where_(&cond, &x, &y), || twins::pick(&cond, &x, &y))?;
        let int = ops::cast::<T, i32>(&x)?;
        pair(&step, &named("cast from i32"), || ops::cast::<i32, T>(&int), || twins::to_float::<T>(&int))?;
        pair(&step, &named("cast to i32"), || ops::cast::<T, i32>(&x), || twins::to_int(&x))?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    if std::env::args().any(|a| a == "elements") {
        elements::<f32>(&mut rt)?;
        elements::<bf16>(&mut rt)?;
        return elements::<f16>(&mut rt);
    }
    if std::env::args().any(|a| a == "rows") {
        return rows::measure(
            &mut rt,
            &[(4096, 64), (1024, 576), (256, 4096), (16, 49_152)],
            &|step, call| shortest(step, 40, call).map(|seconds| seconds * 1e6),
        );
    }
    if std::env::args().any(|a| a == "blocks") {
        return all_blocks(&mut rt);
    }
    if std::env::args().any(|a| a == "indexed") {
        return indexed::measure(&mut rt, &[(4096, 64), (256, 4096)], &|step, call| {
            shortest(step, 40, call).map(|seconds| seconds * 1e6)
        });
    }
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
