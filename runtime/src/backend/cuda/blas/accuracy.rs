//! The results of each of the library's algorithms that may be chosen: tested on a GPU, or reported as
//! skipped.

use std::{io::Write as _, sync::Arc};

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr};
use half::{bf16, f16};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::*;
use crate::{
    DType,
    backend::{
        View,
        cuda::{disk::CacheFolder, driver::Context},
    },
    value::layout::Layout,
};

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

/// Returns the error of the worst value, in units of what one rounding of `want` and a sum of `k` terms up to
/// 9 in f32 explain.
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

/// `[batch, m, k]` times `[batch, k, n]`, the rows so many elements apart.
#[derive(Clone, Copy, Debug)]
struct Shape {
    batch: usize,
    m: usize,
    k: usize,
    n: usize,
    inner: usize,
    outer: usize,
}

/// Rows that begin anywhere, or at multiples of 8 elements; few and many terms; a batch.
fn shapes() -> Vec<Shape> {
    let mut sizes = vec![(64, 576, 1536), (7, 300, 129), (16, 4096, 512), (1, 2048, 512), (300, 64, 64)];
    for k in [3, 5, 8, 24, 40, 136] {
        for n in [4, 6, 8, 16, 72, 264] {
            sizes.extend([1, 7, 36, 216].map(|m| (m, k, n)));
        }
    }
    let mut all = Vec::new();
    for (m, k, n) in sizes {
        let dense = Shape { batch: 1, m, k, n, inner: k, outer: n };
        all.push(dense);
        if m * k * n < 300_000 {
            all.push(Shape { batch: 3, ..dense });
            let apart = Shape { inner: k.next_multiple_of(8), outer: n.next_multiple_of(8), ..dense };
            all.extend([apart, Shape { batch: 2, ..apart }]);
        }
    }
    all
}

struct Gpu {
    blas: Blas,
    stream: Arc<CudaStream>,
    workspace: CudaSlice<u8>,
    rng: StdRng,
    candidates: usize,
    wrong: Vec<String>,
}

impl Gpu {
    fn random(&mut self, dtype: DType, count: usize) -> (Vec<f64>, CudaSlice<u8>) {
        let values: Vec<f64> = (0..count).map(|_| rounded(dtype, self.rng.random_range(-3.0..3.0))).collect();
        let there = self.stream.clone_htod(&bytes(dtype, &values)).unwrap();
        (values, there)
    }

    fn check(&mut self, dtype: DType, shape: Shape, bias: bool) {
        let Shape { batch, m, k, n, inner, outer } = shape;
        let (x, dx) = self.random(dtype, batch * m * inner);
        let (w, dw) = self.random(dtype, batch * n * inner);
        let (b, db) = self.random(dtype, n);
        let mut dy = self.stream.alloc_zeros::<u8>(batch * m * outer * dtype.size()).unwrap();
        let view = |on: &CudaSlice<u8>, shape: [usize; 3], strides: [usize; 3]| View {
            addr: on.device_ptr(&self.stream).0,
            dtype,
            layout: Layout::strided(&shape, &strides).unwrap(),
        };
        let mut inputs = vec![
            view(&dx, [batch, m, k], [m * inner, inner, 1]),
            view(&dw, [batch, k, n], [n * inner, 1, inner]),
        ];
        if bias {
            inputs.push(view(&db, [batch, m, n], [0, 0, 1]));
        }
        let output = view(&dy, [batch, m, n], [m * outer, outer, 1]);
        let Some(key) = Key::of(&Problem::new(&inputs, &output).unwrap()) else { return };
        let places = || (0..batch * m).flat_map(|row| (0..n).map(move |j| (row, j)));
        let want: Vec<f64> = places()
            .map(|(row, j)| {
                let (x, w) = (&x[row * inner..][..k], &w[(row / m * n + j) * inner..][..k]);
                x.iter().zip(w).map(|(x, w)| x * w).sum::<f64>() + if bias { b[j] } else { 0.0 }
            })
            .collect();
        for (at, plan) in self.blas.candidates(&key).unwrap().into_iter().enumerate() {
            self.candidates += 1;
            self.stream.memset_zeros(&mut dy).unwrap();
            let (addresses, workspace) =
                (Addresses::of(&inputs, &output), self.workspace.device_ptr(&self.stream).0);
            // SAFETY: all of it lives until the stream has been waited for, below.
            unsafe { self.blas.run(&plan, self.stream.cu_stream().cast(), addresses, workspace) }.unwrap();
            let got = values(dtype, &self.stream.clone_dtoh(&dy).unwrap());
            let got: Vec<f64> = places().map(|(row, j)| got[row * outer + j]).collect();
            let off = off(dtype, &got, &want, k);
            if off > 1.0 {
                let choice = plan.choice;
                self.wrong
                    .push(format!("{dtype:?} {shape:?}, bias {bias}, candidate {at} {choice:x?}: {off:.1}"));
            }
        }
    }
}

#[test]
fn every_candidate_rounds_once() {
    let Ok(context) = Context::open(0) else {
        // Not `eprintln`, which the harness hides; a closed standard error is not a reason to fail.
        let _ = writeln!(std::io::stderr(), "GPU tests: skipped every_candidate_rounds_once: no GPU");
        return;
    };
    let _bound = context.bind().unwrap();
    let stream = CudaContext::new(0).unwrap().new_stream().unwrap();
    let mut gpu = Gpu {
        blas: Blas::new(context.raw() as usize, context.props(), &Disk::new(&CacheFolder::Off, None), 1024)
            .unwrap(),
        workspace: stream.alloc_zeros::<u8>(32 << 20).unwrap(),
        stream,
        rng: StdRng::seed_from_u64(1),
        candidates: 0,
        wrong: Vec::new(),
    };
    for dtype in [DType::Bf16, DType::F16, DType::F32] {
        for shape in shapes() {
            gpu.check(dtype, shape, false);
            gpu.check(dtype, shape, true);
        }
    }
    let Gpu { candidates, wrong, .. } = gpu;
    assert!(candidates > 5000, "{candidates}");
    assert!(wrong.is_empty(), "{} of {candidates}:\n{}", wrong.len(), wrong.join("\n"));
}
