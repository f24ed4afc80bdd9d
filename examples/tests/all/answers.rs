//! Whole answers, through captured segments, compared with the naive model and the known ids.

use graphable::{Device, Event, Mode};
use graphable_examples::{
    Error,
    gguf::Gguf,
    llama::{Language, Session},
    report::FinishReason,
    sampling::SamplingOptions,
};

use crate::{
    reference::{Reference, likeliest},
    smollm2, tiny,
};

const MODES: [Mode; 3] = [Mode::None, Mode::Piecewise, Mode::Full];

fn load(file: &Gguf, mode: Mode, capacity: usize) -> Session {
    sampling(file, mode, capacity, SamplingOptions::default())
}

fn sampling(file: &Gguf, mode: Mode, capacity: usize, options: SamplingOptions) -> Session {
    let language = Language::of(file).unwrap();
    Session::load(file, language, Device::cpu(), mode, capacity, options).unwrap()
}

fn ask(session: &mut Session, prompt: &[u32], n: usize) -> Vec<u32> {
    session.answer(prompt, n, |_| Ok(())).unwrap().tokens
}

fn naive(file: &Gguf, prompt: &[u32], n: usize, stop: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut model = Reference::load(file);
    let mut logits = prompt.iter().fold(Vec::new(), |_, &id| model.next(id));
    let mut tokens = Vec::new();
    loop {
        let id = likeliest(&logits);
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
    builder = builder.replace("llama.context_length", crate::gguf_builder::Meta::U32(700));
    let file = Gguf::from_bytes(builder.build()).unwrap();
    // Five pieces of 128 where they are recorded, and one of 512 and another where they are not.
    let prompt: Vec<u32> = (0..530).map(|i| i * 7 % 263).collect();
    let expected = naive(&file, &prompt, 4, |id| id == 1);
    for mode in MODES {
        assert_eq!(ask(&mut load(&file, mode, 540), &prompt, 4), expected, "{mode}");
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
    let e = session.answer(&[7; 6], 1, |_| Ok(())).unwrap_err();
    assert!(matches!(e, Error::PromptTooLong { prompt: 6, context: 5 }), "{e}");
}

#[test]
fn a_prompt_that_fills_the_context_is_refused() {
    let file = Gguf::from_bytes(tiny::llama(0).build()).unwrap();
    let language = Language::of(&file).unwrap();
    let e = language.prompt(&"hello ".repeat(tiny::CONTEXT)).unwrap_err().to_string();
    assert!(e.contains("context is 64") && e.contains("help: shorten"), "{e}");
    language.prompt("hello").unwrap();
}

#[test]
fn missing_tensors_are_listed_before_anything_is_loaded() {
    let mut builder = tiny::llama(0);
    builder.drop_tensor("blk.1.ffn_up.weight");
    builder.drop_tensor("output_norm.weight");
    let e = Language::of(&Gguf::from_bytes(builder.build()).unwrap()).map(drop).unwrap_err().to_string();
    assert!(e.contains("`output_norm.weight`, `blk.1.ffn_up.weight`, which the file does not have"), "{e}");
}

#[test]
fn misshapen_tensors_are_listed_together() {
    let mut builder = tiny::llama(0);
    builder.drop_tensor("blk.1.ffn_up.weight");
    builder.drop_tensor("output_norm.weight");
    let builder = builder.f32("output_norm.weight", &[3], &[1.0; 3]);
    let builder = builder.f32("blk.1.ffn_up.weight", &[5, 32], &[1.0; 160]);
    let file = Gguf::from_bytes(builder.build()).unwrap();
    let language = Language::of(&file).unwrap();
    let e = Session::<f32>::load(&file, language, Device::cpu(), Mode::None, 8, SamplingOptions::default());
    let e = e.map(|_| ()).unwrap_err().to_string();
    assert!(e.contains("blk.1.ffn_up.weight") && e.contains("output_norm.weight"), "{e}");
    assert!(
        e.contains("[3]") && e.contains("[32]") && e.contains("[5, 32]") && e.contains("[48, 32]"),
        "{e}"
    );
}

/// All of them together.
const SAMPLED: SamplingOptions = SamplingOptions {
    repetition_penalty: 1.1,
    presence_penalty: 0.2,
    temperature: 2.0,
    top_k: 100,
    top_p: 0.98,
    min_p: 0.01,
    seed: 7,
};

#[test]
fn sampled_answers_are_the_same_in_every_mode() {
    let file = Gguf::from_bytes(tiny::llama(1).build()).unwrap();
    let prompt: Vec<u32> = (0..18).map(|i| (i * 41 + 3) % 263).collect();
    let turns = |mut session: Session| {
        let mut turn = |prompt: &[u32]| session.reply(prompt, 10, |_| Ok(())).unwrap().tokens;
        let turns = [turn(&prompt), turn(&[9, 4, 100])];
        (turns, session.random_state().unwrap())
    };
    let want = turns(sampling(&file, Mode::None, 64, SAMPLED));
    assert_eq!(want.1.counter as usize, want.0.iter().map(Vec::len).sum::<usize>());
    assert_ne!(turns(sampling(&file, Mode::None, 64, SamplingOptions { seed: 8, ..SAMPLED })).0, want.0);
    for mode in Mode::ALL {
        for capture in [false, true] {
            let mut session = sampling(&file, mode, 64, SAMPLED);
            if capture {
                session.capture(|_, _| ()).unwrap();
            }
            assert_eq!(turns(session), want, "mode {mode}, captured ahead: {capture}");
        }
    }
}

#[test]
fn a_reply_continues_what_is_in_the_cache() {
    let file = Gguf::from_bytes(tiny::llama(1).build()).unwrap();
    let (prompt, more) = ([3, 1, 4, 1, 5], [9, 2, 6]);
    let mut session = load(&file, Mode::Full, 64);
    let said = ask(&mut session, &prompt, 6);
    let reply = session.reply(&more, 6, |_| Ok(())).unwrap();
    assert_eq!(reply.prompt_tokens, 3);
    let all = [&prompt[..], &said, &more].concat();
    assert_eq!(reply.tokens, naive(&file, &all, 6, |id| id == 1));
    // What was refused is not remembered, nor is what was said before it.
    assert!(matches!(session.reply(&[7; 60], 1, |_| Ok(())), Err(Error::PromptTooLong { .. })));
    let reply = session.reply(&prompt, 6, |_| Ok(())).unwrap();
    assert_eq!(reply.tokens, said);
}

#[test]
fn a_presence_penalty_keeps_tokens_from_coming_again() {
    let file = Gguf::from_bytes(tiny::llama(0).build()).unwrap();
    let options = SamplingOptions { presence_penalty: 1000.0, ..SamplingOptions::default() };
    let mut session = sampling(&file, Mode::Piecewise, 64, options);
    for _ in 0..2 {
        let mut tokens = ask(&mut session, &[5, 6, 7], 30);
        let count = tokens.len();
        tokens.sort_unstable();
        tokens.dedup();
        assert_eq!(tokens.len(), count);
    }
}

/// The step after the end is launched before the end is known.
#[test]
fn the_step_after_the_end_leaves_no_trace() {
    const MOST: usize = 40;
    let file = Gguf::from_bytes(tiny::llama(2).build()).unwrap();
    let prompt = [7, 8, 9];
    let hot = |seed| SamplingOptions { temperature: 4.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed, ..SAMPLED };
    let ended = (0..200).find_map(|seed| {
        let mut session = sampling(&file, Mode::None, 64, hot(seed));
        let answer = session.answer(&prompt, MOST, |_| Ok(())).unwrap();
        let ends =
            answer.finish == FinishReason::Stop && answer.tokens.len() > 1 && answer.tokens.len() < MOST;
        ends.then_some((seed, answer.tokens.len()))
    });
    let (seed, length) = ended.expect("an answer that the model ends");
    for mode in MODES {
        // With room for one more token, it is launched; with none, it is not.
        let turns = |most: usize| {
            let mut session = sampling(&file, mode, 64, hot(seed));
            session.capture(|_, _| ()).unwrap();
            session.runtime().keep_events(true);
            let answer = session.answer(&prompt, most, |_| Ok(())).unwrap();
            assert_eq!((answer.finish, answer.tokens.len()), (FinishReason::Stop, length), "{mode}");
            let calls = session.runtime().take_events().len();
            let state = (session.random_state().unwrap(), session.first_keys().unwrap());
            let reply = session.reply(&[11, 12], 12, |_| Ok(())).unwrap().tokens;
            (calls, (answer.tokens, state, reply, session.random_state().unwrap()))
        };
        let (late, without) = (turns(MOST), turns(length));
        assert!(late.1 == without.1, "{mode}: {:?} {:?}", late.1.2, without.1.2);
        assert!(mode == Mode::None || late.0 > without.0, "{mode}: {} events, {} without", late.0, without.0);
    }
}

/// A loop on the device gives the tokens of single launches, whatever it is cut by, and leaves the same state.
#[test]
fn a_loop_on_the_device_gives_the_same_tokens() {
    let file = Gguf::from_bytes(tiny::llama(2).build()).unwrap();
    let hot = |seed| SamplingOptions { temperature: 4.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed, ..SAMPLED };
    let turns = |options: SamplingOptions, tokens: Option<usize>, capacity: usize| {
        let mut session = sampling(&file, Mode::Full, capacity, options);
        if let Some(tokens) = tokens {
            session.use_device_loop(tokens).unwrap();
        }
        session.capture(|_, _| ()).unwrap();
        let before = session.runtime().stats().replays;
        let answers = [
            session.answer(&[7, 8, 9], 20, |_| Ok(())).unwrap(),
            session.reply(&[11, 12], 6, |_| Ok(())).unwrap(),
            session.reply(&[13], 100, |_| Ok(())).unwrap(),
        ];
        let replays = session.runtime().stats().replays - before;
        let state = (session.random_state().unwrap(), session.first_keys().unwrap());
        assert_eq!(session.runtime().stats().fallback_reasons, []);
        (answers.map(|answer| (answer.tokens, answer.text, answer.finish)), state, replays)
    };
    let mut finishes = Vec::new();
    for options in (0..6).map(hot).chain([SAMPLED, SamplingOptions::default()]) {
        for capacity in [36, 64] {
            let (want, state, single) = turns(options, None, capacity);
            finishes.extend(want.iter().map(|(.., finish)| *finish));
            for tokens in [1, 3, 64] {
                let (got, got_state, replays) = turns(options, Some(tokens), capacity);
                assert_eq!(got, want, "{options:?}, {tokens} at once, room for {capacity}");
                assert!(got_state == state, "{options:?}, {tokens} at once, room for {capacity}");
                assert!(
                    tokens < 64 || replays <= 6 && replays < single,
                    "{replays} replays, {single} without"
                );
            }
        }
    }
    for finish in [FinishReason::Stop, FinishReason::Length, FinishReason::Context] {
        assert!(finishes.contains(&finish), "no answer ended by {finish:?}");
    }
}

#[test]
fn a_loop_of_too_many_tokens_is_refused() {
    let file = Gguf::from_bytes(tiny::llama(0).build()).unwrap();
    let mut session = load(&file, Mode::Full, 16);
    for tokens in [0, 5000] {
        let e = session.use_device_loop(tokens).unwrap_err().to_string();
        assert!(e.contains(&format!("--device-loop {tokens}")) && e.contains("help:"), "{e}");
    }
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
            Mode::None => assert_eq!((stats.replays, stats.live_recordings), (0, 0)),
            _ => assert!(replayed > 0 && stats.live_recordings > 0, "{stats:?}"),
        }
    }
}
