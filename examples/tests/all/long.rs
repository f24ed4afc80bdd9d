//! Prompts that are read in pieces, of models whose angles follow from the length of a prompt, compared with what transformers
//! computes (`tests/families/long.py`).

use graphable::{Device, Mode};
use graphable_examples::{
    checkpoint::{Blocks, Checkpoint, Files},
    gguf::Gguf,
    llama::{Language, Scorer, Session},
    sampling::SamplingOptions,
};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    families::{F32, folder},
    folders::Folder,
    tiny,
    types::distance,
};

const CAPACITY: usize = 1024;
const MODES: [Mode; 3] = [Mode::None, Mode::Piecewise, Mode::Full];

#[derive(Deserialize)]
struct Expected {
    lengths: Vec<usize>,
    models: std::collections::BTreeMap<String, Model>,
}

#[derive(Deserialize)]
struct Model {
    changes: Value,
    logits: Vec<Vec<f32>>,
    loss: f32,
    answer: Vec<u32>,
}

impl Model {
    fn files(&self, test: &str, name: &str) -> (Folder, Files) {
        let folder = folder(&format!("{test}-{name}"), "llama", "llama");
        folder.configure(self.changes.clone());
        let files = Files::open(folder.path()).unwrap();
        (folder, files)
    }
}

fn expected() -> Expected {
    serde_json::from_str(include_str!("../families/long.json")).unwrap()
}

fn prompt(length: usize) -> Vec<u32> {
    (0..length as u32).map(|i| (7 * i * i + 3 * i + 1) % 40).collect()
}

fn session(files: &Files, mode: Mode) -> Session<f32> {
    let language = Language::of(&Gguf::from_bytes(tiny::llama(0).build()).unwrap()).unwrap();
    Session::load(files, language, Device::cpu(), mode, CAPACITY, SamplingOptions::default()).unwrap()
}

/// The angles of each piece are those of the whole prompt, whatever pieces a mode reads.
#[test]
fn long_prompts_turn_by_their_own_length() {
    let Expected { lengths, models } = expected();
    for (name, model) in &models {
        let (_folder, files) = model.files("prompts", name);
        for mode in MODES {
            let mut session = session(&files, mode);
            for (length, wanted) in lengths.iter().zip(&model.logits) {
                let far = distance(&session.logits(&prompt(*length)).unwrap(), wanted);
                assert!(far < 2.0 * F32, "{name}, {mode}, {length} tokens: {far}");
            }
            assert_eq!(session.runtime().stats().fallback_reasons, []);
        }
    }
}

/// A token that is decoded turns by its own position, and keys in the cache keep the angles that they have.
#[test]
fn answers_after_long_prompts_are_those_of_transformers() {
    let Expected { lengths, models } = expected();
    for (name, model) in &models {
        let (_folder, files) = model.files("answers", name);
        for (mode, on_device) in
            [(Mode::None, false), (Mode::Piecewise, false), (Mode::Full, false), (Mode::Full, true)]
        {
            let mut session = session(&files, mode);
            if on_device {
                session.use_device_loop(4).unwrap();
            }
            let tokens = session.answer(&prompt(lengths[4]), 16, |_| Ok(())).unwrap().tokens;
            let stops = tokens.last().is_some_and(|id| *id == 1);
            assert_eq!(tokens, model.answer[..tokens.len()], "{name}, {mode}, {on_device}");
            assert!(stops || tokens.len() == 16, "{name}, {mode}, {on_device}: {tokens:?}");
        }
    }
}

/// A second turn is read as one piece would be, after what the cache holds.
#[test]
fn long_replies_turn_by_the_length_of_the_conversation() {
    let models = expected().models;
    let model = &models["longrope-300"];
    let (_folder, files) = model.files("replies", "longrope");
    let answers = MODES.map(|mode| {
        let mut session = session(&files, mode);
        session.answer(&prompt(40), 3, |_| Ok(())).unwrap();
        // Read by 512 in the first mode, and by 128 in the others; the last piece alone is beyond 300.
        session.reply(&prompt(270), 12, |_| Ok(())).unwrap().tokens
    });
    assert_eq!(answers[1], answers[0]);
    assert_eq!(answers[2], answers[0]);
}

#[test]
fn texts_are_scored_by_their_own_length() {
    let Expected { lengths, models } = expected();
    let text = prompt(lengths[4]);
    let labels: Vec<i32> = text[1..].iter().map(|id| *id as i32).chain([-100]).collect();
    for (name, model) in &models {
        let (_folder, files) = model.files("scores", name);
        let config = files.config().unwrap();
        for mode in MODES {
            let blocks = Blocks::Never;
            let mut scorer =
                Scorer::<f32>::load(&files, &config, Device::cpu(), mode, CAPACITY, blocks, &mut |_| ())
                    .unwrap();
            let losses = scorer.losses(&text, &labels).unwrap();
            let mean = losses.iter().sum::<f32>() / (text.len() - 1) as f32;
            assert!((mean - model.loss).abs() < 1e-4, "{name}, {mode}: {mean}, not {}", model.loss);
        }
    }
}
