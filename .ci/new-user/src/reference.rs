//! The block in plain Rust, to compare with: every token is computed anew, one sequence at a time.

use crate::{
    block::{EPS, HEAD, HEADS, INNER, THETA, VOCAB, WIDTH},
    numbers,
};

pub struct Weights {
    pub embed: Vec<f32>,
    pub norm: Vec<f32>,
    pub q: Vec<f32>,
    pub k: Vec<f32>,
    pub v: Vec<f32>,
    pub out: Vec<f32>,
    pub up: Vec<f32>,
    pub down: Vec<f32>,
}

/// `w x`, for `w` with rows as long as `x`.
fn matmul(w: &[f32], x: &[f32]) -> Vec<f32> {
    w.chunks(x.len()).map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum()).collect()
}

fn add(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// Rotates the halves of each head against each other.
fn rotate(x: &mut [f32], position: usize) {
    for head in x.chunks_mut(HEAD) {
        for i in 0..HEAD / 2 {
            let angle = position as f32 * THETA.powf(-2.0 * i as f32 / HEAD as f32);
            let (sin, cos) = angle.sin_cos();
            let (a, b) = (head[i], head[i + HEAD / 2]);
            (head[i], head[i + HEAD / 2]) = (a * cos - b * sin, a * sin + b * cos);
        }
    }
}

impl Weights {
    pub fn new() -> Self {
        Self {
            embed: numbers(101, VOCAB * WIDTH),
            norm: numbers(102, WIDTH).iter().map(|x| 1.0 + x).collect(),
            q: numbers(103, WIDTH * WIDTH),
            k: numbers(104, WIDTH * WIDTH),
            v: numbers(105, WIDTH * WIDTH),
            out: numbers(106, WIDTH * WIDTH),
            up: numbers(107, INNER * WIDTH),
            down: numbers(108, WIDTH * INNER),
        }
    }

    fn normed(&self, x: &[f32]) -> Vec<f32> {
        let mean = x.iter().map(|x| x * x).sum::<f32>() / x.len() as f32;
        x.iter().zip(&self.norm).map(|(x, w)| x / (mean + EPS).sqrt() * w).collect()
    }

    /// The logits after the last of `tokens`.
    pub fn logits(&self, tokens: &[u32]) -> Vec<f32> {
        let embedded = |token: u32| self.embed[token as usize * WIDTH..][..WIDTH].to_vec();
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for (position, &token) in tokens.iter().enumerate() {
            let x = self.normed(&embedded(token));
            let mut k = matmul(&self.k, &x);
            rotate(&mut k, position);
            keys.push(k);
            values.push(matmul(&self.v, &x));
        }
        let h = embedded(tokens[tokens.len() - 1]);
        let mut q = matmul(&self.q, &self.normed(&h));
        rotate(&mut q, tokens.len() - 1);
        let mut attended = vec![0.0; WIDTH];
        for head in 0..HEADS {
            let part = head * HEAD..(head + 1) * HEAD;
            let score = |k: &Vec<f32>| {
                let dot: f32 = q[part.clone()].iter().zip(&k[part.clone()]).map(|(a, b)| a * b).sum();
                (dot / (HEAD as f32).sqrt()).exp()
            };
            let scores: Vec<f32> = keys.iter().map(score).collect();
            let sum: f32 = scores.iter().sum();
            for (score, value) in scores.iter().zip(&values) {
                for i in part.clone() {
                    attended[i] += score / sum * value[i];
                }
            }
        }
        let h = add(&h, &matmul(&self.out, &attended));
        let inner: Vec<f32> =
            matmul(&self.up, &self.normed(&h)).iter().map(|x| x / (1.0 + (-x).exp())).collect();
        matmul(&self.embed, &add(&h, &matmul(&self.down, &inner)))
    }
}
