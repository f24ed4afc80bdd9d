//! A chat model small enough for every test: random weights, the tiny tokenizer, a template.

use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    gguf_builder::{Builder, Meta},
    tokenizer,
};

pub(crate) const LAYERS: usize = 2;
pub(crate) const DIM: usize = 32;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const FFN: usize = 48;
/// Positions that the model claims to know.
pub(crate) const CONTEXT: usize = 64;

/// The model's file.
pub(crate) fn llama(seed: u64) -> Builder {
    model("llama", seed)
}

/// The same sizes and tensors by the keys of another family, whose own tensors are missing.
pub(crate) fn of_family(family: &str) -> Builder {
    model(family, 0)
}

fn model(family: &str, seed: u64) -> Builder {
    let key = |name: &str| format!("{family}.{name}");
    let mut random = StdRng::seed_from_u64(seed);
    let vocab = tokenizer::tokens().len();
    let kv = DIM / HEADS * KV_HEADS;
    let mut b = tokenizer::describe(Builder::default())
        .meta(
            "tokenizer.chat_template",
            "{% for m in messages %}<|start|>{{ m.content }}<|end|>{% endfor %}<|start|>",
        )
        .meta("general.architecture", family)
        .meta(&key("block_count"), Meta::U32(LAYERS as u32))
        .meta(&key("context_length"), Meta::U32(CONTEXT as u32))
        .meta(&key("embedding_length"), Meta::U32(DIM as u32))
        .meta(&key("feed_forward_length"), Meta::U32(FFN as u32))
        .meta(&key("attention.head_count"), Meta::U32(HEADS as u32))
        .meta(&key("attention.head_count_kv"), Meta::U32(KV_HEADS as u32))
        .meta(&key("attention.layer_norm_rms_epsilon"), Meta::F32(1e-5))
        .meta(&key("rope.dimension_count"), Meta::U32((DIM / HEADS) as u32))
        .meta(&key("rope.freq_base"), Meta::F32(10_000.0));
    let mut add = |b: Builder, name: &str, shape: &[usize], scale: f32| {
        let n = shape.iter().product();
        // Norms are near 1, matrices near 0.
        let centre = if shape.len() == 1 { 1.0 } else { 0.0 };
        let data: Vec<f32> = (0..n).map(|_| centre + scale * random.random_range(-1.0..1.0f32)).collect();
        b.f32(name, shape, &data)
    };
    b = add(b, "token_embd.weight", &[vocab, DIM], 1.0);
    b = add(b, "output_norm.weight", &[DIM], 0.2);
    for i in 0..LAYERS {
        let matrices = [
            ("attn_q", [DIM, DIM]),
            ("attn_k", [kv, DIM]),
            ("attn_v", [kv, DIM]),
            ("attn_output", [DIM, DIM]),
            ("ffn_gate", [FFN, DIM]),
            ("ffn_up", [FFN, DIM]),
            ("ffn_down", [DIM, FFN]),
        ];
        for (name, shape) in matrices {
            b = add(b, &format!("blk.{i}.{name}.weight"), &shape, 0.4);
        }
        for name in ["attn_norm", "ffn_norm"] {
            b = add(b, &format!("blk.{i}.{name}.weight"), &[DIM], 0.2);
        }
    }
    b
}
