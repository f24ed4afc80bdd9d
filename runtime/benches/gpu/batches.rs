//! 51 batch sizes of a one-token forward pass of Llama's 1B shape, each one graph: device memory beyond
//! weights and caches, and the time to capture them, in both orders.

use std::time::Instant;

use cudarc::driver::{CudaContext, result};
use graphable::{
    Device, Mode, Runtime, Schedule, graphable,
    ops::{AttentionMask, RopeConfig, RopeStyle},
    prelude::*,
};
use half::bf16;

const DIM: usize = 2048;
const LAYERS: usize = 16;
const HEADS: usize = 32;
const KV_HEADS: usize = 8;
const HEAD: usize = 64;
const FFN: usize = 8192;
const VOCABULARY: usize = 128_256;
/// Rows of a sequence's cache.
const CONTEXT: usize = 256;
const MOST: usize = 512;

#[derive(Params)]
struct Layer {
    norm: Param<bf16>,
    qkv: Param<bf16>,
    out: Param<bf16>,
    ffn_norm: Param<bf16>,
    gate_up: Param<bf16>,
    down: Param<bf16>,
    keys: State<bf16>,
    values: State<bf16>,
}

#[derive(Params)]
struct Model {
    embed: Param<bf16>,
    layers: Vec<Layer>,
    norm: Param<bf16>,
}

#[graphable]
fn layer(h: &Tensor<bf16>, positions: &Tensor<u32>, rows: &Tensor<u32>, l: &Layer) -> Result<Tensor<bf16>> {
    let b = h.dim(0);
    let qkv = ops::linear(&ops::rms_norm(h, &l.norm, 1e-5)?, &l.qkv)?;
    let part = |from: usize, heads: usize| {
        ops::reshape(&ops::narrow(&qkv, 1, from * HEAD, heads * HEAD)?, (b, 1, heads, HEAD))
    };
    let rope = RopeConfig { theta: 500_000.0, style: RopeStyle::HalfSplit, dim: None };
    let q = ops::rope(&part(0, HEADS)?, positions, rope)?;
    let k = ops::rope(&part(HEADS, KV_HEADS)?, positions, rope)?;
    let v = part(HEADS + KV_HEADS, KV_HEADS)?;
    let flat = |t: &Tensor<bf16>| ops::reshape(t, (b, KV_HEADS, HEAD));
    ops::scatter_rows(&l.keys, rows, &flat(&k)?)?;
    ops::scatter_rows(&l.values, rows, &flat(&v)?)?;
    let keys = ops::cache_view(&l.keys).reshape(&[MOST, CONTEXT, KV_HEADS, HEAD])?.narrow(0, 0, b)?;
    let values = ops::cache_view(&l.values).reshape(&[MOST, CONTEXT, KV_HEADS, HEAD])?.narrow(0, 0, b)?;
    let a = ops::attention(&q, &keys, &values, AttentionMask::Positions(positions), 0.125)?;
    let h = ops::add(h, &ops::linear(&ops::reshape(&a, (b, HEADS * HEAD))?, &l.out)?)?;
    let gu = ops::linear(&ops::rms_norm(&h, &l.ffn_norm, 1e-5)?, &l.gate_up)?;
    let inner = ops::silu_mul(&ops::narrow(&gu, 1, 0, FFN)?, &ops::narrow(&gu, 1, FFN, FFN)?)?;
    ops::add(&h, &ops::linear(&inner, &l.down)?)
}

/// One token of each sequence: `positions` are `[B, 1]`, `rows` the rows of the cache that they go to.
#[graphable]
fn forward(
    #[host]
    #[dims(B)]
    tokens: &Tensor<u32>,
    #[host]
    #[dims(B, 1)]
    positions: &Tensor<u32>,
    #[host]
    #[dims(B)]
    rows: &Tensor<u32>,
    model: &Model,
) -> Result<Tensor<u32>> {
    let mut h = ops::embedding(tokens, &model.embed)?;
    for l in &model.layers {
        h = layer(&h, positions, rows, l)?;
    }
    let logits = ops::linear(&ops::rms_norm(&h, &model.norm, 1e-5)?, &model.embed)?;
    ops::argmax(&logits, 1)
}

fn model(rt: &Runtime) -> Result<Model> {
    let weight = |shape: &[usize]| Param::<bf16>::zeros(rt, shape);
    let cache = || State::<bf16>::zeros(rt, &[MOST * CONTEXT, KV_HEADS, HEAD]);
    let layer = |_| {
        Ok(Layer {
            norm: weight(&[DIM])?,
            qkv: weight(&[(HEADS + 2 * KV_HEADS) * HEAD, DIM])?,
            out: weight(&[DIM, HEADS * HEAD])?,
            ffn_norm: weight(&[DIM])?,
            gate_up: weight(&[2 * FFN, DIM])?,
            down: weight(&[DIM, FFN])?,
            keys: cache()?,
            values: cache()?,
        })
    };
    Ok(Model {
        embed: weight(&[VOCABULARY, DIM])?,
        layers: (0..LAYERS).map(layer).collect::<Result<_>>()?,
        norm: weight(&[DIM])?,
    })
}

fn free_bytes() -> Result<usize> {
    let failed = |e: cudarc::driver::DriverError| Error::Device {
        device: "cuda:0".into(),
        call: "cuMemGetInfo",
        reason: e.to_string(),
    };
    CudaContext::new(0).map_err(failed)?;
    result::mem_get_info().map(|(free, _)| free).map_err(failed)
}

type Built = (Runtime, Model, ForwardGraph);

fn built(mode: Mode) -> Result<Built> {
    let mut rt = Runtime::new(Device::cuda(0))?;
    let model = model(&rt)?;
    let graph = ForwardGraph::builder().mode(mode).bucket("B", Schedule::default()).build(&mut rt)?;
    rt.synchronize()?;
    Ok((rt, model, graph))
}

fn call((rt, model, graph): &mut Built, b: usize) -> Result<()> {
    let step = rt.step()?;
    let (tokens, positions) = (vec![1u32; b], vec![100u32; b]);
    let rows: Vec<u32> = (0..b).map(|i| (i * CONTEXT + 100) as u32).collect();
    drop(graph.call(&step, &tokens, &positions, &rows, model)?);
    step.synchronize()
}

fn once(order: &[usize], name: &str) -> Result<()> {
    // Code and libraries take memory of their own, which is there before the count starts, as in the
    // peer's script.
    call(&mut built(Mode::None)?, MOST)?;
    let mut all = built(Mode::Full)?;
    let before = free_bytes()?;
    let start = Instant::now();
    let mut each = Vec::new();
    for &b in order {
        let start = Instant::now();
        for _ in 0..3 {
            call(&mut all, b)?;
        }
        each.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let seconds = start.elapsed().as_secs_f64();
    let taken = before.saturating_sub(free_bytes()?);
    let (mut rt, model, graph) = all;
    let (stats, memory) = (rt.stats(), rt.memory());
    let (host, total) = {
        let step = rt.step()?;
        let rows: Vec<u32> = vec![100];
        let run = |_| graph.call(&step, &[1u32; 1], &[100u32; 1], &rows, &model).map(drop);
        crate::timing::per_call(5, 20, run, || step.synchronize())?
    };
    println!(
        "{{\"figure\":\"batches\",\"order\":\"{name}\",\"sizes\":{},\"device_mib\":{:.1},\"pool_mib\":{:.1},\
         \"result_mib\":{:.1},\"executable_mib\":{:.1},\"seconds\":{seconds:.3},\"median_ms\":{:.2},\
         \"recordings\":{},\"token_host_us\":{host:.1},\"token_total_us\":{total:.1}}}",
        order.len(),
        taken as f64 / f64::from(1 << 20),
        memory.pool.peak_bytes as f64 / f64::from(1 << 20),
        memory.results.peak_bytes as f64 / f64::from(1 << 20),
        memory.executable_bytes as f64 / f64::from(1 << 20),
        crate::timing::median(each),
        stats.recordings,
    );
    Ok(())
}

/// Each order in a process of its own: what a driver keeps of earlier graphs would be used again.
pub(crate) fn run() -> Result<()> {
    // The first one may measure products that the cache on disk does not know: the cold time.
    for order in ["descending-first", "descending", "ascending"] {
        let failed = |reason: String| Error::Config { what: order.into(), reason };
        let this = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
        let status =
            std::process::Command::new(this).arg(order).status().map_err(|e| failed(e.to_string()))?;
        if !status.success() {
            return Err(failed(format!("its process ended with {status}")));
        }
    }
    Ok(())
}

pub(crate) fn descending_first() -> Result<()> {
    once(&Schedule::default().sizes().iter().rev().copied().collect::<Vec<_>>(), "descending, cold")
}

pub(crate) fn descending() -> Result<()> {
    once(&Schedule::default().sizes().iter().rev().copied().collect::<Vec<_>>(), "descending")
}

pub(crate) fn ascending() -> Result<()> {
    once(Schedule::default().sizes(), "ascending")
}
