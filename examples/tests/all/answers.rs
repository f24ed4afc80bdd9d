//! Whole answers, through captured segments, compared with the naive model and the known ids.

use graphable::{Device, Event, Mode};
use graphable_examples::{
    Error,
    gguf::Gguf,
    llama::{Language, Session},
    sampling::Sampler,
};

use crate::{reference::Reference, smollm2, tiny};

const MODES: [Mode; 3] = [Mode::None, Mode::Piecewise, Mode::Full];

fn load(file: &Gguf, mode: Mode, capacity: usize) -> Session {
    let language = Language::from_gguf(file).unwrap();
    Session::load(file, language, Device::cpu(), mode, capacity).unwrap()
}

fn ask(session: &mut Session, prompt: &[u32], n: usize) -> Vec<u32> {
    let mut greedy = Sampler::new(0.0, 0).unwrap();
    session.answer(prompt, n, &mut greedy, |_| Ok(())).unwrap().tokens
}

fn naive(file: &Gguf, prompt: &[u32], n: usize, stop: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut model = Reference::load(file);
    let mut greedy = Sampler::new(0.0, 0).unwrap();
    let mut logits = prompt.iter().fold(Vec::new(), |_, &id| model.next(id));
    let mut tokens = Vec::new();
    loop {
        let id = greedy.next(&logits).unwrap();
        tokens.push(id);
        if stop(id) || tokens.len() == n {
            return tokens;
        }
        logits = model.next(id);
    }
}

#[test]
fn a_random_model_answers_as_the_naive_one_in_every_mode() {
    for seed in 0..3 {
        let file = Gguf::from_bytes(tiny::llama(seed).build()).unwrap();
        let prompt: Vec<u32> = (0..21).map(|i| (i * 37 + seed as u32 * 5) % 263).collect();
        let expected = naive(&file, &prompt, 20, |id| id == 1);
        for mode in Mode::ALL {
            for capture in [false, true] {
                let mut session = load(&file, mode, 64);
                if capture {
                    session.capture(|_, _| ()).unwrap();
                }
                let answer = ask(&mut session, &prompt, 20);
                assert_eq!(answer, expected, "seed {seed}, mode {mode}, captured ahead: {capture}");
                // Nothing of the first answer is left in the second.
                assert_eq!(ask(&mut session, &prompt[..3], 5), naive(&file, &prompt[..3], 5, |id| id == 1));
            }
        }
    }
}

#[test]
fn a_model_with_its_own_output_matrix_uses_it() {
    let tied = Gguf::from_bytes(tiny::llama(0).build()).unwrap();
    let embed = tied.tensor("token_embd.weight").unwrap();
    // Row i of the output matrix is row 262 - i of the embedding: the answer is mirrored.
    let mirrored: Vec<f32> = embed.data.chunks_exact(tiny::DIM).rev().flatten().copied().collect();
    let untied =
        Gguf::from_bytes(tiny::llama(0).f32("output.weight", &embed.shape, &mirrored).build()).unwrap();
    let prompt = [5, 9, 13];
    let first = |file| ask(&mut load(file, Mode::Piecewise, 16), &prompt, 1)[0];
    assert_eq!(first(&untied), 262 - first(&tied));
}

#[test]
fn prompts_longer_than_a_piece_are_read_in_pieces() {
    let mut builder = tiny::llama(1);
    builder = builder.replace("llama.context_length", crate::gguf_builder::Meta::U32(400));
    let file = Gguf::from_bytes(builder.build()).unwrap();
    let prompt: Vec<u32> = (0..300).map(|i| i * 7 % 263).collect();
    let expected = naive(&file, &prompt, 4, |id| id == 1);
    for mode in MODES {
        assert_eq!(ask(&mut load(&file, mode, 310), &prompt, 4), expected, "{mode}");
    }
}

#[test]
fn the_answer_ends_with_the_cache() {
    let file = Gguf::from_bytes(tiny::llama(2).build()).unwrap();
    let prompt = [7, 8, 9];
    let mut session = load(&file, Mode::Piecewise, 5);
    // Two more tokens can be read, and the last one of three need not be.
    let answer = ask(&mut session, &prompt, 50);
    assert!(answer.len() == 3 || answer.last() == Some(&1), "{answer:?}");
    let mut greedy = Sampler::new(0.0, 0).unwrap();
    let e = session.answer(&[7; 6], 1, &mut greedy, |_| Ok(())).unwrap_err();
    assert!(matches!(e, Error::PromptTooLong { prompt: 6, context: 5 }), "{e}");
}

#[test]
fn a_prompt_that_fills_the_context_is_refused() {
    let file = Gguf::from_bytes(tiny::llama(0).build()).unwrap();
    let language = Language::from_gguf(&file).unwrap();
    let e = language.prompt(&"hello ".repeat(tiny::CONTEXT)).unwrap_err().to_string();
    assert!(e.contains("context is 64") && e.contains("help: shorten"), "{e}");
    language.prompt("hello").unwrap();
}

#[test]
fn missing_and_misshapen_tensors_are_listed_together() {
    let mut builder = tiny::llama(0);
    builder.drop_tensor("blk.1.ffn_up.weight");
    builder.drop_tensor("output_norm.weight");
    let builder = builder.f32("output_norm.weight", &[3], &[1.0; 3]);
    let file = Gguf::from_bytes(builder.build()).unwrap();
    let language = Language::from_gguf(&file).unwrap();
    let e = Session::load(&file, language, Device::cpu(), Mode::None, 8).map(|_| ()).unwrap_err().to_string();
    assert!(e.contains("blk.1.ffn_up.weight") && e.contains("output_norm.weight"), "{e}");
    assert!(e.contains("[3]") && e.contains("[32]"), "{e}");
}

#[test]
fn the_real_model_gives_the_known_answer_in_every_mode() {
    let file = smollm2::file();
    for mode in MODES {
        let mut session = load(file, mode, 128);
        let prompt = session.language().prompt(smollm2::QUESTION).unwrap();
        session.capture(|_, _| ()).unwrap();
        let captured = session.runtime().stats();
        session.runtime().keep_events(true);
        assert_eq!(ask(&mut session, &prompt, 64), smollm2::ANSWER, "{mode}");

        // A second, longer prompt whose buckets are known.
        let longer = "Name the capital of Germany, and then tell me which river flows through the city.";
        let longer = session.language().prompt(longer).unwrap();
        assert!(longer.len() > prompt.len());
        ask(&mut session, &longer, 12);
        let stats = session.runtime().stats();
        assert_eq!(stats.fallback_reasons, [], "{mode}");
        assert_eq!((stats.warmups, stats.recordings), (captured.warmups, captured.recordings), "{mode}");
        let replayed = session.runtime().take_events();
        let replayed = replayed.iter().filter(|e| matches!(e, Event::Replayed { .. })).count() as u64;
        assert_eq!(replayed, stats.replays - captured.replays);
        match mode {
            Mode::None => assert_eq!((stats.replays, stats.nodes), (0, 0)),
            _ => assert!(replayed > 0 && stats.nodes > 0, "{stats:?}"),
        }
    }
}
