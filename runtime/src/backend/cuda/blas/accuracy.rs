//! What the library's algorithms compute, each of those that may be chosen: on a GPU, or skipped with a word.

use cudarc::driver::{CudaContext, DevicePtr};
use half::{bf16, f16};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::*;
use crate::{DType, backend::cuda::driver::Context, layout::Layout};

/// Rounded as the dtype rounds.
fn rounded(dtype: DType, x: f64) -> f64 {
    match dtype {
        DType::F16 => f16::from_f64(x).to_f64(),
        DType::Bf16 => bf16::from_f64(x).to_f64(),
        _ => f64::from(x as f32),
    }
}

fn bytes(dtype: DType, values: &[f64]) -> Vec<u8> {
    match dtype {
        DType::F16 => values.iter().flat_map(|&x| f16::from_f64(x).to_le_bytes()).collect(),
        DType::Bf16 => values.iter().flat_map(|&x| bf16::from_f64(x).to_le_bytes()).collect(),
        _ => values.iter().flat_map(|&x| (x as f32).to_le_bytes()).collect(),
    }
}

fn values(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    let of_two = |two: fn([u8; 2]) -> f64| bytes.chunks_exact(2).map(|b| two([b[0], b[1]])).collect();
    match dtype {
        DType::F16 => of_two(|b| f16::from_le_bytes(b).to_f64()),
        DType::Bf16 => of_two(|b| bf16::from_le_bytes(b).to_f64()),
        _ => bytes.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))).collect(),
    }
}

/// How far the worst value is off, in what one rounding of `want` and a sum of `k` terms up to 9 in f32 explain.
fn off(dtype: DType, got: &[f64], want: &[f64], k: usize) -> f64 {
    let (bits, smallest) = match dtype {
        DType::F16 => (10.0, -14.0),
        DType::Bf16 => (7.0, -126.0),
        _ => (23.0, -126.0),
    };
    let room = |x: f64| {
        let neighbours = (x.abs().log2().floor().max(smallest) - bits).exp2();
        0.501 * neighbours + 3e-6 * k as f64
    };
    assert_eq!(got.len(), want.len());
    let off = got.iter().zip(want).map(|(got, want)| (got - want).abs() / room(*want));
    off.map(|off| if off.is_nan() { f64::INFINITY } else { off }).fold(0.0, f64::max)
}

/// Rows that begin anywhere, few and many terms.
fn shapes() -> Vec<(usize, usize, usize)> {
    let mut all = vec![(64, 576, 1536), (7, 300, 129), (16, 4096, 512), (1, 2048, 512), (300, 64, 64)];
    for k in [3, 5, 8, 24, 40, 136] {
        for n in [4, 6, 8, 16, 72, 264] {
            all.extend([1, 7, 36, 216].map(|m| (m, k, n)));
        }
    }
    all
}

#[test]
fn every_candidate_rounds_once() {
    let Ok(context) = Context::open(0) else {
        eprintln!("GPU tests: skipped every_candidate_rounds_once: no GPU");
        return;
    };
    context.bind().unwrap();
    let mut blas = Blas::new(context.raw() as usize, context.props(), None).unwrap();
    let cuda = CudaContext::new(0).unwrap();
    let stream = cuda.new_stream().unwrap();
    let workspace = stream.alloc_zeros::<u8>(32 << 20).unwrap();
    let rng = &mut StdRng::seed_from_u64(1);
    let (mut wrong, mut candidates) = (Vec::new(), 0);
    for dtype in [DType::Bf16, DType::F16, DType::F32] {
        for (m, k, n) in shapes() {
            for bias in [false, true] {
                let mut random = |count: usize| -> Vec<f64> {
                    (0..count).map(|_| rounded(dtype, rng.random_range(-3.0..3.0))).collect()
                };
                let (x, w, b) = (random(m * k), random(n * k), random(n));
                let [dx, dw, db] = [&x, &w, &b].map(|v| stream.clone_htod(&bytes(dtype, v)).unwrap());
                let mut dy = stream.alloc_zeros::<u8>(m * n * dtype.size()).unwrap();
                let view = |addr: u64, shape: &[usize], strides: &[usize]| View {
                    addr,
                    dtype,
                    layout: Layout::strided(shape, strides).unwrap(),
                };
                let mut inputs = vec![
                    view(dx.device_ptr(&stream).0, &[m, k], &[k, 1]),
                    view(dw.device_ptr(&stream).0, &[k, n], &[1, k]),
                ];
                if bias {
                    inputs.push(view(db.device_ptr(&stream).0, &[m, n], &[0, 1]));
                }
                let output = view(dy.device_ptr(&stream).0, &[m, n], &[n, 1]);
                let Some(key) = Key::of(&Problem::new(&inputs, &output).unwrap()) else { continue };
                let want: Vec<f64> = (0..m * n)
                    .map(|at| {
                        let (i, j) = (at / n, at % n);
                        let sum: f64 = (0..k).map(|l| x[i * k + l] * w[j * k + l]).sum();
                        sum + if bias { b[j] } else { 0.0 }
                    })
                    .collect();
                for (at, plan) in blas.candidates(&key).unwrap().into_iter().enumerate() {
                    candidates += 1;
                    stream.memset_zeros(&mut dy).unwrap();
                    let addresses = Addresses::of(&inputs, &output);
                    // SAFETY: all of it lives until the stream has been waited for, below.
                    unsafe {
                        blas.run(&plan, stream.cu_stream().cast(), addresses, workspace.device_ptr(&stream).0)
                    }
                    .unwrap();
                    let got = values(dtype, &stream.clone_dtoh(&dy).unwrap());
                    let off = off(dtype, &got, &want, k);
                    if off > 1.0 {
                        wrong.push(format!(
                            "{dtype:?} [{m}, {k}] x [{k}, {n}], bias {bias}, candidate {at} {:x?}: {off:.1}",
                            plan.choice
                        ));
                    }
                }
            }
        }
    }
    assert!(candidates > 50, "{candidates}");
    assert!(wrong.is_empty(), "{} of {candidates}:\n{}", wrong.len(), wrong.join("\n"));
}
