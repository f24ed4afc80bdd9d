//! Sentence embeddings through captured graphs.

use graphable::{Device, Mode};
use graphable_examples::bert::Encoder;
use safetensors::SafeTensors;

use crate::minilm::{self, COSINES, SENTENCES};

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn known_cosines_in_every_mode() {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut encoder = Encoder::load(&minilm::folder(), Device::cpu(), mode).unwrap();
        for _ in 0..3 {
            let e = encoder.encode(&SENTENCES).unwrap();
            for (other, expected) in e[1..].iter().zip(COSINES) {
                let cosine = dot(&e[0], other);
                assert!((cosine - expected).abs() < 0.002, "{mode}: {cosine} instead of {expected}");
            }
        }
    }
}

#[test]
fn sentences_of_different_lengths_share_buckets_and_do_not_disturb_each_other() {
    let mut encoder = Encoder::load(&minilm::folder(), Device::cpu(), Mode::Piecewise).unwrap();
    let sentences =
        ["Short.", "A sentence that is quite a bit longer than the other one is.", "Mid length, say."];
    let alone: Vec<_> = sentences.iter().map(|s| encoder.encode(&[s]).unwrap().remove(0)).collect();
    let together = encoder.encode(&sentences).unwrap();
    let bytes = std::fs::read(minilm::folder().join("model.safetensors")).unwrap();
    let weights = SafeTensors::deserialize(&bytes).unwrap();
    let tokenizer = minilm::tokenizer();
    for ((alone, together), sentence) in alone.iter().zip(&together).zip(sentences) {
        let naive = minilm::encode(&weights, &tokenizer.encode(&[sentence]).unwrap()[0]);
        assert!(dot(alone, &naive) > 0.99999, "{sentence}: {}", dot(alone, &naive));
        assert!(dot(together, &naive) > 0.99999, "{sentence}: {}", dot(together, &naive));
    }
    // Known buckets record nothing, whatever the exact lengths are.
    let words = ["a", "a b", "a b c", "a b c d", "a b c d e f", "two words"];
    for _ in 0..3 {
        encoder.encode(&words[..1]).unwrap();
        encoder.encode(&words[..4]).unwrap();
    }
    let before = encoder.runtime().stats();
    for n in 1..=words.len() {
        encoder.encode(&words[n - 1..n]).unwrap();
    }
    encoder.encode(&words[1..4]).unwrap();
    let after = encoder.runtime().stats();
    assert_eq!((before.warmups, before.recordings), (after.warmups, after.recordings));
    assert!(after.replays > before.replays);
}

#[test]
fn more_sentences_than_a_batch_holds() {
    let mut encoder = Encoder::load(&minilm::folder(), Device::cpu(), Mode::Piecewise).unwrap();
    let many: Vec<String> = (0..19).map(|i| format!("sentence number {i}")).collect();
    let all = encoder.encode(&many).unwrap();
    assert_eq!(all.len(), many.len());
    let last = encoder.encode(&many[18..]).unwrap();
    assert!(dot(&all[18], &last[0]) > 0.99999);
    assert!(encoder.encode(&Vec::<String>::new()).unwrap().is_empty());
}
