//! A serving loop: requests of different lengths come and go, and are decoded in one batch.

use std::collections::VecDeque;

use graphable::prelude::*;

use crate::{
    assert_close,
    block::{CAPACITY, Cache, DecodeGraph, Model, PrefillGraph, SLOTS, VOCAB},
    reference::Weights,
};

/// A request under way: everything that was read and written of it, and how much more is wanted.
struct Sequence {
    request: usize,
    tokens: Vec<u32>,
    left: usize,
}

/// What there is to serve: prompts, and the lengths of their answers.
fn requests() -> VecDeque<(usize, Vec<u32>, usize)> {
    let shapes = [(3, 5), (11, 2), (1, 7), (16, 8), (5, 1), (7, 6), (2, 9), (13, 4), (4, 3)];
    let prompt = |request: usize, length: usize| {
        (0..length).map(|i| ((request * 5 + i * 7 + 1) % VOCAB) as u32).collect()
    };
    shapes.into_iter().enumerate().map(|(i, (length, answer))| (i, prompt(i, length), answer)).collect()
}

fn likeliest(logits: &[f32]) -> u32 {
    let mut best = 0;
    for (id, logit) in logits.iter().enumerate() {
        if *logit > logits[best] {
            best = id;
        }
    }
    best as u32
}

pub fn run() -> Result<()> {
    let mut rt = Runtime::new(Device::best()?)?;
    let weights = Weights::new();
    let model = Model::new(&rt, &weights)?;
    let cache = Cache::new(&rt)?;
    let prefill =
        PrefillGraph::builder().bucket("T", Schedule::new([4, 8, 16])).mode(Mode::Full).build(&mut rt)?;
    let decode =
        DecodeGraph::builder().bucket("B", Schedule::new([1, 2, SLOTS])).mode(Mode::Full).build(&mut rt)?;
    prefill.capture_all(&mut rt, &model, &cache)?;
    decode.capture_all(&mut rt, &model, &cache)?;
    let recorded = rt.stats().recordings;

    let mut waiting = requests();
    let count = waiting.len();
    let mut slots: [Option<Sequence>; SLOTS] = [const { None }; SLOTS];
    let mut answered = 0;
    let mut batches = Vec::new();
    while answered < count {
        for slot in 0..SLOTS {
            if slots[slot].is_some() {
                continue;
            }
            let Some((request, mut tokens, left)) = waiting.pop_front() else { break };
            let positions: Vec<u32> = (0..tokens.len() as u32).collect();
            let rows: Vec<u32> = positions.iter().map(|p| (slot * CAPACITY) as u32 + p).collect();
            let last = [tokens.len() as u32 - 1];
            let step = rt.step()?;
            let logits = prefill.call(&step, &tokens, &positions, &rows, &last, &model, &cache)?;
            let logits = step.read(&logits)?;
            assert_close(&format!("request {request}, prompt"), &logits, &weights.logits(&tokens));
            tokens.push(likeliest(&logits));
            slots[slot] = Some(Sequence { request, tokens, left: left - 1 });
        }
        for slot in &mut slots {
            if slot.as_ref().is_some_and(|s| s.left == 0) {
                *slot = None;
                answered += 1;
            }
        }
        // Slots up to the last one that is taken; those in between that are free compute something that
        // nobody reads.
        let taken = slots.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        if taken == 0 {
            continue;
        }
        batches.push(taken);
        let (mut tokens, mut positions, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        for (slot, sequence) in slots[..taken].iter().enumerate() {
            let (token, position) = match sequence {
                Some(s) => (s.tokens[s.tokens.len() - 1], s.tokens.len() - 1),
                None => (0, 0),
            };
            tokens.push(token);
            positions.push(position as u32);
            rows.push((slot * CAPACITY + position) as u32);
        }
        let step = rt.step()?;
        let logits = decode.call(&step, &tokens, &positions, &rows, &model, &cache)?;
        let logits = step.read(&logits)?;
        for (slot, logits) in slots.iter_mut().zip(logits.chunks(VOCAB)) {
            let Some(sequence) = slot else { continue };
            let what = format!("request {}, token {}", sequence.request, sequence.tokens.len());
            assert_close(&what, logits, &weights.logits(&sequence.tokens));
            sequence.tokens.push(likeliest(logits));
            sequence.left -= 1;
        }
    }
    let stats = rt.stats();
    assert_eq!((stats.recordings, stats.fallbacks), (recorded, 0), "{:?}", stats.fallback_reasons);
    assert!(batches.contains(&SLOTS) && batches.iter().any(|n| *n < SLOTS), "{batches:?}");
    println!(
        "serving: {count} requests in {} batches, {recorded} recordings, {} replays",
        batches.len(),
        stats.replays
    );
    Ok(())
}
