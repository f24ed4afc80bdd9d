//! What the switches of the numerics cost and gain: error and device time of products, each with and without its switch, of
//! many in one graph. The error is relative to a product in f64 of the same operands.

use graphable::{Float, Numerics, Runtime, Step, bf16, f16, graphable, prelude::*};

use crate::timing::{Rounds, check_launches};

/// `[m, k] x [k, n]`: a large product; one whose inner dimension is worth splitting between blocks.
const SHAPES: [[usize; 3]; 2] = [[4096, 4096, 4096], [128, 16_384, 256]];
/// Rows of the result that are compared.
const ROWS: usize = 32;

#[graphable]
fn product<T: Float>(x: &Tensor<T>, w: &Param<T>, #[key] launches: u32) -> Result<Tensor<T>> {
    let mut out = ops::matmul(x, w)?;
    for _ in 1..launches {
        out = ops::matmul(x, w)?;
    }
    Ok(out)
}

/// Uniform numbers from -0.5 to 0.5, which `peer.py` makes in the same way.
fn values<T: Float>(count: usize, seed: u32) -> Vec<T> {
    // The finalizer of MurmurHash3.
    let hash = |i: usize| {
        let mut h = (i as u32) ^ seed.wrapping_mul(0x9e37_79b9);
        h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
        h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
        (h ^ (h >> 16)) >> 8
    };
    (0..count).map(|i| T::from_f64(f64::from(hash(i)) / f64::from(1 << 24) - 0.5)).collect()
}

/// The rows of `x w` that are compared, in f64.
fn reference<T: Float>(x: &[T], w: &[T], [m, k, n]: [usize; 3]) -> Vec<f64> {
    let mut all = vec![0.0; ROWS * n];
    for (sums, row) in all.chunks_mut(n).zip((0..m).step_by(m / ROWS)) {
        for (x, w) in x[row * k..][..k].iter().zip(w.chunks(n)) {
            let x = x.to_f64();
            sums.iter_mut().zip(w).for_each(|(sum, w)| *sum += x * w.to_f64());
        }
    }
    all
}

/// Root of the mean squared error, relative to that of the values.
fn error<T: Float>(y: &[T], want: &[f64], [m, _, n]: [usize; 3]) -> f64 {
    let rows = (0..m).step_by(m / ROWS).flat_map(|row| &y[row * n..][..n]);
    let (mut wrong, mut all) = (0.0, 0.0);
    for (y, want) in rows.zip(want) {
        wrong += (y.to_f64() - want).powi(2);
        all += want.powi(2);
    }
    (wrong / all).sqrt()
}

fn measure<T: Float>(rt: &mut Runtime, switches: &[(&str, Numerics)]) -> Result<()> {
    for shape @ [m, k, n] in SHAPES {
        let (x, w) = (values::<T>(m * k, 1), values::<T>(k * n, 2));
        let want = reference(&x, &w, shape);
        let (x, w) = (Param::new(rt, &[m, k], &x)?, Param::new(rt, &[k, n], &w)?);
        for (name, numerics) in switches {
            let graph = ProductGraph::<T>::builder().numerics(*numerics).build(rt)?;
            let launches = 10;
            let call = |step: &Step<'_>| {
                let x = step.scope().view(&x)?;
                let mut all = Rounds::default();
                for _ in 0..15 {
                    let one = |_| graph.call(step, &x, &w, launches).map(drop);
                    all.measure(2, one, || step.synchronize())?;
                }
                let y = graph.call(step, &x, &w, launches)?;
                Ok::<_, Error>((all.medians().1 / f64::from(launches), error(&step.read(&y)?, &want, shape)))
            };
            let (mut us, mut off) = (0.0, 0.0);
            for _ in 0..3 {
                (us, off) = call(&rt.step()?)?;
            }
            check_launches(rt, launches)?;
            println!(
                "{{\"figure\":\"numerics\",\"case\":\"{} {m}x{k}x{n} {name}\",\"launch_us\":{us:.2},\"tflop_s\":{:.1},\"error\":{off:.3e}}}",
                T::DTYPE,
                (2 * m * k * n) as f64 / us / 1e6
            );
        }
    }
    Ok(())
}

pub(crate) fn run() -> Result<()> {
    let mut rt = crate::timing::runtime_without_passes()?;
    let full = Numerics::default();
    measure::<f32>(
        &mut rt,
        &[
            ("full precision", full),
            ("TF32", full.tf32(true)),
            ("full precision, deterministic", full.deterministic(true)),
            ("TF32, deterministic", full.tf32(true).deterministic(true)),
        ],
    )?;
    let reduced = full.reduced_precision_reduction(true);
    let switches = [("f32 reductions", full), ("reduced-precision reductions", reduced)];
    measure::<bf16>(&mut rt, &switches)?;
    measure::<f16>(&mut rt, &switches)
}
