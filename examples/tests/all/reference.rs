//! Llama, written down naively: one token at a time, plain loops, nothing of graphable. What the
//! captured model computes is compared with this.

use graphable_examples::gguf::Gguf;
use rayon::prelude::*;

struct Layer {
    attn_norm: Vec<f32>,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    o: Vec<f32>,
    ffn_norm: Vec<f32>,
    gate: Vec<f32>,
    up: Vec<f32>,
    down: Vec<f32>,
    /// One row of all key heads per position, rotated; then the same for values.
    keys: Vec<Vec<f32>>,
    values: Vec<Vec<f32>>,
}

/// A model and its cache.
pub(crate) struct Reference {
    embed: Vec<f32>,
    norm: Vec<f32>,
    layers: Vec<Layer>,
    dim: usize,
    heads: usize,
    kv_heads: usize,
    eps: f32,
    theta: f32,
}

impl Reference {
    pub(crate) fn load(file: &Gguf) -> Self {
        let tensor = |name: &str| file.tensor(name).unwrap().data;
        let number = |key: &str| file.u32(&format!("llama.{key}")).unwrap() as usize;
        let layer = |i: usize| {
            let tensor = |name: &str| tensor(&format!("blk.{i}.{name}.weight"));
            Layer {
                attn_norm: tensor("attn_norm"),
                q: tensor("attn_q"),
                k: tensor("attn_k"),
                v: tensor("attn_v"),
                o: tensor("attn_output"),
                ffn_norm: tensor("ffn_norm"),
                gate: tensor("ffn_gate"),
                up: tensor("ffn_up"),
                down: tensor("ffn_down"),
                keys: Vec::new(),
                values: Vec::new(),
            }
        };
        Self {
            embed: tensor("token_embd.weight"),
            norm: tensor("output_norm.weight"),
            layers: (0..number("block_count")).map(layer).collect(),
            dim: number("embedding_length"),
            heads: number("attention.head_count"),
            kv_heads: number("attention.head_count_kv"),
            eps: file.f32("llama.attention.layer_norm_rms_epsilon").unwrap(),
            theta: file.f32("llama.rope.freq_base").unwrap(),
        }
    }

    /// Logits after one more token.
    pub(crate) fn next(&mut self, token: u32) -> Vec<f32> {
        let (dim, eps) = (self.dim, self.eps);
        let (heads, kv_heads, head) = (self.heads, self.kv_heads, self.dim / self.heads);
        let mut h = self.embed[token as usize * dim..][..dim].to_vec();
        for l in &mut self.layers {
            let x = rms_norm(&h, &l.attn_norm, eps);
            let position = l.keys.len();
            let mut q = matvec(&l.q, &x);
            let mut k = matvec(&l.k, &x);
            rope(&mut q, head, position, self.theta);
            rope(&mut k, head, position, self.theta);
            l.keys.push(k);
            l.values.push(matvec(&l.v, &x));
            let mut attended = Vec::with_capacity(dim);
            for i in 0..heads {
                let own = &q[i * head..][..head];
                let shared = i / (heads / kv_heads) * head;
                let mut scores: Vec<f32> =
                    l.keys.iter().map(|k| dot(own, &k[shared..][..head]) / (head as f32).sqrt()).collect();
                let max = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                scores.iter_mut().for_each(|s| *s = (*s - max).exp());
                let sum: f32 = scores.iter().sum();
                attended.extend(
                    (shared..shared + head)
                        .map(|d| scores.iter().zip(&l.values).map(|(s, v)| s / sum * v[d]).sum::<f32>()),
                );
            }
            add(&mut h, &matvec(&l.o, &attended));
            let x = rms_norm(&h, &l.ffn_norm, eps);
            let gate = matvec(&l.gate, &x);
            let up = matvec(&l.up, &x);
            let inner: Vec<f32> = gate.iter().zip(&up).map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect();
            add(&mut h, &matvec(&l.down, &inner));
        }
        matvec(&self.embed, &rms_norm(&h, &self.norm, eps))
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn matvec(w: &[f32], x: &[f32]) -> Vec<f32> {
    w.par_chunks_exact(x.len()).with_min_len(64).map(|row| dot(row, x)).collect()
}

fn add(h: &mut [f32], x: &[f32]) {
    h.iter_mut().zip(x).for_each(|(h, x)| *h += x);
}

fn rms_norm(x: &[f32], weight: &[f32], eps: f32) -> Vec<f32> {
    let scale = (dot(x, x) / x.len() as f32 + eps).sqrt().recip();
    x.iter().zip(weight).map(|(x, w)| x * scale * w).collect()
}

/// Pairs of neighbours: GGUF files of Llama models have their rows permuted for that.
fn rope(x: &mut [f32], head: usize, position: usize, theta: f32) {
    for h in x.chunks_exact_mut(head) {
        for (i, pair) in h.chunks_exact_mut(2).enumerate() {
            let angle = position as f32 * theta.powf(-2.0 * i as f32 / head as f32);
            let (sin, cos) = angle.sin_cos();
            (pair[0], pair[1]) = (pair[0] * cos - pair[1] * sin, pair[0] * sin + pair[1] * cos);
        }
    }
}

/// The first of the largest logits.
pub(crate) fn likeliest(logits: &[f32]) -> u32 {
    let better = |best: usize, i: usize| if logits[i] > logits[best] { i } else { best };
    (0..logits.len()).reduce(better).unwrap() as u32
}
