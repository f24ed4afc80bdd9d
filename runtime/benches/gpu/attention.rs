//! Attention with what changes its scores, at shapes of decoding and of prompts: device time of one launch of many in one
//! graph.

use graphable::{
    Result, Runtime, Step, Tensor, bf16, graphable,
    ops::{self, AttentionConfig, AttentionMask},
};

use crate::timing::{check_launches, per_call};

/// Sizes of a case.
#[derive(Clone, Copy)]
struct Sizes {
    name: &'static str,
    batch: usize,
    queries: usize,
    keys: usize,
    heads: usize,
    key_heads: usize,
    size: usize,
    launches: u32,
}

const CASES: [Sizes; 5] = [
    Sizes {
        name: "decode 8x4096",
        batch: 8,
        queries: 1,
        keys: 4096,
        heads: 32,
        key_heads: 8,
        size: 128,
        launches: 40,
    },
    Sizes {
        name: "decode 1x32768",
        batch: 1,
        queries: 1,
        keys: 32_768,
        heads: 32,
        key_heads: 8,
        size: 128,
        launches: 40,
    },
    Sizes {
        name: "decode 64x1024",
        batch: 64,
        queries: 1,
        keys: 1024,
        heads: 32,
        key_heads: 8,
        size: 64,
        launches: 40,
    },
    Sizes {
        name: "prefill 2048",
        batch: 1,
        queries: 2048,
        keys: 2048,
        heads: 32,
        key_heads: 8,
        size: 128,
        launches: 4,
    },
    Sizes {
        name: "prefill 2048 of 256",
        batch: 1,
        queries: 2048,
        keys: 2048,
        heads: 16,
        key_heads: 8,
        size: 256,
        launches: 4,
    },
];

const CHANGES: [&str; 6] = ["plain", "bias", "alibi", "window", "soft_cap", "sinks"];

fn changed<'a, 's>(
    change: u32,
    positions: &'a Tensor<'s, u32>,
    bias: &'a Tensor<'s, bf16>,
    sinks: &'a Tensor<'s, bf16>,
) -> AttentionConfig<'a, 's, bf16> {
    let config = AttentionConfig::new(AttentionMask::Positions(positions));
    match CHANGES[change as usize] {
        "bias" => config.bias(bias),
        "alibi" => config.alibi(),
        "window" => config.window(511, 0),
        "soft_cap" => config.soft_cap(50.0),
        "sinks" => config.sinks(sinks),
        _ => config,
    }
}

#[allow(clippy::too_many_arguments)] // What every change needs.
#[graphable]
fn attended(
    q: &Tensor<bf16>,
    k: &Tensor<bf16>,
    v: &Tensor<bf16>,
    positions: &Tensor<u32>,
    bias: &Tensor<bf16>,
    sinks: &Tensor<bf16>,
    #[key] change: u32,
    #[key] launches: u32,
) -> Result<Tensor<bf16>> {
    let mut out = ops::attention(q, k, v, changed(change, positions, bias, sinks), 0.1)?;
    for _ in 1..launches {
        out = ops::attention(q, k, v, changed(change, positions, bias, sinks), 0.1)?;
    }
    Ok(out)
}

/// Queries, keys and values, of different values in each row.
fn operands<'s>(step: &'s Step<'_>, z: Sizes) -> Result<[Tensor<'s, bf16>; 3]> {
    let tensor = |rows: usize, heads: usize| {
        let shape = [z.batch, rows, heads, z.size];
        let count = shape.iter().product::<usize>();
        let values = ops::sin(&ops::arange_step::<f32>(step.scope(), count, 0.0, 0.37)?)?;
        ops::cast(&ops::reshape(&values, shape)?)
    };
    Ok([tensor(z.queries, z.heads)?, tensor(z.keys, z.key_heads)?, tensor(z.keys, z.key_heads)?])
}

fn measure(rt: &mut Runtime, z: Sizes, change: usize) -> Result<f64> {
    let graph = AttendedGraph::builder().build(rt)?;
    let first = (z.keys - z.queries) as f64;
    let mut time = 0.0;
    for _ in 0..3 {
        let step = rt.step()?;
        let [q, k, v] = operands(&step, z)?;
        let positions = ops::arange_step::<u32>(step.scope(), z.queries, first, 1.0)?;
        let positions = ops::contiguous(&ops::broadcast_to(&positions, (z.batch, z.queries))?)?;
        let bias = ops::full(step.scope(), (z.heads, z.queries, z.keys), bf16::from_f32(0.5))?;
        let sinks = ops::full(step.scope(), [z.heads], bf16::from_f32(0.5))?;
        let call =
            || graph.call(&step, &q, &k, &v, &positions, &bias, &sinks, change as u32, z.launches).map(drop);
        call()?;
        time = per_call(15, 4, |_| call(), || step.synchronize())?.1;
    }
    check_launches(rt, z.launches)?;
    Ok(time / f64::from(z.launches))
}

pub(crate) fn run() -> Result<()> {
    let mut rt = crate::timing::runtime_without_passes()?;
    for z in CASES {
        for (change, what) in CHANGES.iter().enumerate() {
            let us = measure(&mut rt, z, change)?;
            println!("{{\"figure\":\"attention\",\"case\":\"{what} {}\",\"launch_us\":{us:.3}}}", z.name);
        }
    }
    Ok(())
}
