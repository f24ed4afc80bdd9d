//! One token of three models at batch 1 and 8, with all passes, with each alone, and without: Llama's 1B shape in bf16, a decoder with layer norms,
//! biases and GELU in the shape of GPT-2 XL in bf16, and SmolLM2-135M's shape in f32.
//!
//! Products are written as a model has them: q, k, v, gate and up are parameters of their own. One recording serves every
//! position. `decode-blocks` has the first and the last of them with matrices in blocks, and `prefill-blocks` the first with a prompt of 512 tokens;
//! `weights` has what `weights.py` compares: the first with matrices in blocks, a token at batch 1 and a prompt. `prefill` reads prompts of 512 and 2048
//! tokens with it in bf16. Weights are random. The caches have 2048 rows; a call at position 100 or 1900 reads the rows up to there. With `GRAPHABLE_BENCH_TREE` in the
//! environment, the recordings are printed, with what passes did and refused; `GRAPHABLE_BENCH_PASSES=all,none` measures these alone, and
//! `GRAPHABLE_BENCH_MODELS=llama-1b,smollm2-135m` these models.

mod gpt;
mod llama;
mod random;

use graphable::{Device, ParamKind, ParamVisitor, Passes, Runtime, bf16, prelude::*};

use crate::timing::per_call;

/// Rows of a sequence's cache.
const CONTEXT: usize = 2048;
/// Positions of the tokens.
const POSITIONS: [u32; 2] = [100, 1900];

/// A model, and a graph over it.
trait Decoder: Sized {
    const NAME: &'static str;

    fn new(rt: &mut Runtime, batch: usize) -> Result<Self>;

    /// The bytes of its weights, each of which a token reads once.
    fn bytes(&self) -> u64;

    /// Queues one token of each sequence at `position`.
    fn call(&self, step: &Step<'_>, batch: usize, position: u32) -> Result<()>;
}

/// The passes of a setting: all, none, or one by its name.
fn passes(setting: &str) -> Result<Passes> {
    match setting {
        "all" => Ok(Passes::default()),
        "none" => Ok(Passes::none()),
        only => Passes::default().only([only]),
    }
}

/// The bytes of a model's parameters.
fn weights(model: &impl Params) -> u64 {
    let listed = ParamVisitor::list(model);
    listed.iter().filter(|param| param.kind == ParamKind::Param).map(|param| param.bytes).sum()
}

/// The index of each sequence's row in a cache of all sequences.
fn rows(batch: usize, position: u32) -> Vec<u32> {
    (0..batch as u32).map(|i| i * CONTEXT as u32 + position).collect()
}

fn measure<D: Decoder>(batch: usize, setting: &str) -> Result<()> {
    let mut rt = Runtime::new(Device::cuda(0))?;
    rt.set_passes(passes(setting)?);
    let model = D::new(&mut rt, batch)?;
    for _ in 0..3 {
        let step = rt.step()?;
        model.call(&step, batch, POSITIONS[0])?;
        step.synchronize()?;
    }
    let tree = rt.tree();
    let kernels = tree.recordings.iter().map(|node| node.kernels).max().unwrap_or_default();
    if std::env::var_os("GRAPHABLE_BENCH_TREE").is_some() {
        println!("{tree}");
    }
    for position in POSITIONS {
        let step = rt.step()?;
        let total = per_call(7, 30, |_| model.call(&step, batch, position), || step.synchronize())?.1;
        println!(
            "{{\"figure\":\"decode\",\"case\":\"{} batch {batch} position {position}{}\",\"passes\":\"{setting}\",\
             \"kernels\":{kernels},\"total_us\":{total:.1},\"weights_mb\":{:.1},\"weights_tb_s\":{:.2}}}",
            D::NAME,
            if setting == "all" { String::new() } else { format!(", passes: {setting}") },
            model.bytes() as f64 / 1e6,
            model.bytes() as f64 / 1e6 / total,
        );
    }
    Ok(())
}

/// Returns whether a model is measured.
fn is_asked(name: &str) -> bool {
    std::env::var("GRAPHABLE_BENCH_MODELS").map_or(true, |asked| asked.split(',').any(|one| one == name))
}

fn model<D: Decoder>() -> Result<()> {
    batches::<D>(&[1, 8])
}

fn batches<D: Decoder>(sizes: &[usize]) -> Result<()> {
    let settings = settings()?;
    if !is_asked(D::NAME) {
        return Ok(());
    }
    for &batch in sizes {
        for setting in &settings {
            measure::<D>(batch, setting)?;
        }
    }
    Ok(())
}

/// What `GRAPHABLE_BENCH_PASSES` asks for, or everything.
fn settings() -> Result<Vec<String>> {
    let known: Vec<&str> = ["all"].into_iter().chain(Passes::default().names()).chain(["none"]).collect();
    let Ok(asked) = std::env::var("GRAPHABLE_BENCH_PASSES") else {
        return Ok(known.into_iter().map(String::from).collect());
    };
    let asked: Vec<String> = asked.split(',').map(String::from).collect();
    match asked.iter().find(|asked| !known.contains(&asked.as_str())) {
        Some(unknown) => Err(Error::Argument {
            op: "GRAPHABLE_BENCH_PASSES",
            reason: format!("`{unknown}` is not a setting; there are {}", known.join(", ")),
        }),
        None => Ok(asked),
    }
}

pub(crate) fn llama() -> Result<()> {
    model::<llama::Llama<llama::Llama1B, bf16>>()
}

pub(crate) fn smollm() -> Result<()> {
    model::<llama::Llama<llama::SmolLM2, f32>>()
}

/// The models with matrices in blocks, beside those in floats.
pub(crate) fn blocks() -> Result<()> {
    model::<llama::Llama<llama::Llama1B, bf16>>()?;
    model::<llama::Llama<llama::Llama1BQ8, bf16>>()?;
    model::<llama::Llama<llama::Llama1BQ6K, bf16>>()?;
    model::<llama::Llama<llama::Llama1BQ4K, bf16>>()?;
    model::<llama::Llama<llama::Llama1BQ40, bf16>>()?;
    model::<llama::Llama<llama::Llama1BF8, bf16>>()?;
    model::<llama::Llama<llama::Llama1BI4, bf16>>()?;
    model::<llama::Llama<llama::Llama1BQ4KHead, bf16>>()?;
    model::<llama::Llama<llama::Llama1BI4Head, bf16>>()?;
    model::<llama::Llama<llama::SmolLM2, f32>>()?;
    model::<llama::Llama<llama::SmolLM2Q8, f32>>()?;
    model::<llama::Llama<llama::SmolLM2Q41, f32>>()?;
    model::<llama::Llama<llama::SmolLM2Bf16, bf16>>()?;
    model::<llama::Llama<llama::SmolLM2Q8Bf16, bf16>>()?;
    model::<llama::Llama<llama::SmolLM2Q41Bf16, bf16>>()
}

/// Microseconds until the last token's logits of a prompt are there.
fn prompt<K: llama::Kind>(tokens: usize) -> Result<()> {
    let name = K::NAME;
    if !is_asked(name) {
        return Ok(());
    }
    let mut rt = Runtime::new(Device::cuda(0))?;
    let model = llama::Prompt::<K, bf16>::new(&mut rt)?;
    for _ in 0..3 {
        let step = rt.step()?;
        model.call(&step, tokens)?;
        step.synchronize()?;
    }
    let step = rt.step()?;
    let total = per_call(7, 10, |_| model.call(&step, tokens), || step.synchronize())?.1;
    println!("{{\"figure\":\"prefill\",\"case\":\"{name}, {tokens} tokens\",\"total_us\":{total:.1}}}");
    Ok(())
}

/// Prompts read by a model in floats.
pub(crate) fn prefill() -> Result<()> {
    prompt::<llama::Llama1B>(512)?;
    prompt::<llama::Llama1B>(2048)
}

/// Prompts read by models with matrices in blocks, beside floats.
pub(crate) fn prompts() -> Result<()> {
    prompt::<llama::Llama1B>(512)?;
    prompt::<llama::Llama1BQ8>(512)?;
    prompt::<llama::Llama1BQ6K>(512)?;
    prompt::<llama::Llama1BQ4K>(512)?;
    prompt::<llama::Llama1BF8>(512)?;
    prompt::<llama::Llama1BI4>(512)
}

/// A token at batch 1, and a prompt of 512.
fn token_and_prompt<K: llama::Kind>() -> Result<()> {
    batches::<llama::Llama<K, bf16>>(&[1])?;
    prompt::<K>(512)
}

/// What `weights.py` compares.
pub(crate) fn formats() -> Result<()> {
    token_and_prompt::<llama::Llama1B>()?;
    token_and_prompt::<llama::Llama1BQ8>()?;
    token_and_prompt::<llama::Llama1BF8>()?;
    token_and_prompt::<llama::Llama1BQ6K>()?;
    token_and_prompt::<llama::Llama1BQ4K>()?;
    token_and_prompt::<llama::Llama1BQ4KHead>()?;
    token_and_prompt::<llama::Llama1BI4>()?;
    token_and_prompt::<llama::Llama1BI4Head>()
}

pub(crate) fn gpt() -> Result<()> {
    model::<gpt::Gpt>()
}

pub(crate) fn run() -> Result<()> {
    llama()?;
    gpt()?;
    smollm()
}
