//! Norms, softmax and sums written with `#[kernel(rows)]`, beside the built-in operations.

use graphable::{
    Error, Float, Param, Result, Runtime, Step, Tensor, bf16, kernel,
    ops::{self},
};

#[kernel(rows)]
fn rms_norm(x: Row<f32>, weight: Row<f32>, eps: f32) -> Row<f32> {
    let mean = x.map(|v| v * v).sum() / x.len() as f32;
    let scale = 1.0 / (mean + eps).sqrt();
    x.zip(weight).map(|(v, w)| v * scale * w)
}

#[kernel(rows)]
fn layer_norm(x: Row<f32>, weight: Row<f32>, bias: Row<f32>, eps: f32) -> Row<f32> {
    let mean = x.sum() / x.len() as f32;
    let centred = x.map(|v| v - mean);
    let variance = centred.map(|v| v * v).sum() / x.len() as f32;
    let scale = 1.0 / (variance + eps).sqrt();
    centred.zip(weight).zip(bias).map(|((v, w), b)| v * scale * w + b)
}

#[kernel(rows)]
fn softmax(x: Row<f32>) -> Row<f32> {
    let max = x.max();
    let powers = x.map(|v| (v - max).exp());
    let total = powers.sum();
    powers.map(|v| v / total)
}

#[kernel(rows)]
fn log_softmax(x: Row<f32>) -> Row<f32> {
    let max = x.max();
    let total = x.map(|v| (v - max).exp()).sum().ln() + max;
    x.map(|v| v - total)
}

#[kernel(rows)]
fn cross_entropy(logits: Row<f32>, label: u32) -> f32 {
    let max = logits.max();
    let total = logits.map(|v| (v - max).exp()).sum();
    total.ln() + max - logits.at(label)
}

#[kernel(reduce)]
fn sum(x: Row<f32>) -> f32 {
    x.sum()
}

#[kernel(reduce)]
fn argmax(x: Row<f32>) -> u32 {
    x.argmax()
}

/// The loss as it is composed of built-in operations.
fn composed<'s, T: Float>(
    logits: &Tensor<'s, T>,
    at: &Tensor<'s, u32>,
    size: usize,
) -> Result<Tensor<'s, T>> {
    let logs = ops::log_softmax(logits, 1)?;
    let count = logs.shape()[0] * size;
    ops::neg(&ops::embedding(at, &ops::reshape(&logs, (count, 1))?)?)
}

type Call<'a> = Box<dyn Fn() -> Result<()> + 'a>;

/// Returns the microseconds that a call takes.
type Time<'t> = &'t dyn Fn(&Step<'_>, &dyn Fn() -> Result<()>) -> Result<f64>;

/// Measures, for each shape, each of the two.
pub(crate) fn measure(rt: &mut Runtime, shapes: &[(usize, usize)], time: Time<'_>) -> Result<(), Error> {
    of::<f32>(rt, shapes, time)?;
    of::<bf16>(rt, shapes, time)
}

fn of<T: Float>(rt: &mut Runtime, shapes: &[(usize, usize)], time: Time<'_>) -> Result<(), Error> {
    for &(rows, size) in shapes {
        // As many bytes in every type.
        let rows = rows * 4 / T::DTYPE.size();
        let weight = Param::new(rt, &[size], &vec![T::from_f64(1.0); size])?;
        let step = rt.step()?;
        let values: Vec<T> = (0..rows * size).map(|i| T::from_f64((i % 1013) as f64 / 500.0 - 1.0)).collect();
        let x = step.tensor(&[rows, size], &values)?;
        let labels: Vec<u32> = (0..rows).map(|row| (row % size) as u32).collect();
        let places: Vec<u32> =
            labels.iter().enumerate().map(|(row, label)| (row * size) as u32 + label).collect();
        let (labels, places) = (step.tensor(&[rows], &labels)?, step.tensor(&[rows], &places)?);
        let (x, w) = (&x, &weight);
        let all: [(&str, Call<'_>, Call<'_>); 8] = [
            (
                "rms_norm",
                Box::new(|| ops::rms_norm(x, w, 1e-5).map(drop)),
                Box::new(|| rms_norm(x, w, 1e-5).map(drop)),
            ),
            (
                "layer_norm",
                Box::new(|| ops::layer_norm(x, w, w, 1e-5).map(drop)),
                Box::new(|| layer_norm(x, w, w, 1e-5).map(drop)),
            ),
            ("softmax", Box::new(|| ops::softmax(x, 1).map(drop)), Box::new(|| softmax(x).map(drop))),
            (
                "log_softmax",
                Box::new(|| ops::log_softmax(x, 1).map(drop)),
                Box::new(|| log_softmax(x).map(drop)),
            ),
            (
                "cross_entropy",
                Box::new(|| composed(x, &places, size).map(drop)),
                Box::new(|| cross_entropy(x, &labels).map(drop)),
            ),
            ("sum_rows", Box::new(|| ops::sum(x, 1).map(drop)), Box::new(|| sum(x, 1).map(drop))),
            ("sum_columns", Box::new(|| ops::sum(x, 0).map(drop)), Box::new(|| sum(x, 0).map(drop))),
            ("argmax", Box::new(|| ops::argmax(x, 1).map(drop)), Box::new(|| argmax(x, 1).map(drop))),
        ];
        for (name, built_in, own) in &all {
            let (before, after) = (time(&step, built_in)?, time(&step, own)?);
            let ratio = before / after;
            let case = format!("{} {rows}x{size}", T::DTYPE);
            println!("{{\"figure\":\"rows\",\"case\":\"{name} {case}\",\"launch_us\":{before:.2}}}");
            println!(
                "{{\"figure\":\"rows\",\"case\":\"{name}Twin {case}\",\"launch_us\":{after:.2},\"first_over_this\":{ratio:.3}}}"
            );
        }
    }
    Ok(())
}
