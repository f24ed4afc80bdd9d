//! The examples on a GPU, where there is one: the answers are those of the CPU.

use std::io::Write as _;

use graphable::{Device, Float, Mode, backend::cuda};
use graphable_examples::{
    bert::Encoder,
    checkpoint::Files,
    gguf::Gguf,
    llama::{Language, Session},
    sampling::SamplingOptions,
};
use half::{bf16, f16};

use crate::{
    adapters, families, listen,
    minilm::{self, COSINES, SENTENCES},
    smollm2, tiny, types,
};

const MODES: [Mode; 3] = [Mode::None, Mode::Piecewise, Mode::Full];
/// Their answers are longer than [`LENGTH`].
const PROMPTS: [&str; 3] = [
    "Tell me a story about a fox and a river.",
    "Explain how a bicycle stays upright.",
    "Write a long letter to a friend who moved to another country.",
];
const LENGTH: usize = 64;
/// Logits closer than this are a tie: their order depends on the order of additions.
const TIE: f32 = 1e-3;

/// Not captured by the test harness.
fn say(line: &str) {
    // A closed standard error is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn skipped(test: &str) -> bool {
    match cuda::check(0) {
        Ok(()) => false,
        Err(error) => {
            say(&format!("GPU tests: skipped {test} of the examples: {error}"));
            true
        }
    }
}

fn load(file: &Gguf, device: Device, mode: Mode, capacity: usize) -> Session {
    let language = Language::of(file).unwrap();
    Session::load(file, language, device, mode, capacity, SamplingOptions::default()).unwrap()
}

fn ask(session: &mut Session, prompt: &[u32], n: usize) -> Vec<u32> {
    session.answer(prompt, n, |_| Ok(())).unwrap().tokens
}

/// Compares answers to `prompt` of at most [`LENGTH`] tokens; past a tie, the GPU goes on from the CPU's choice.
fn same_but_for_ties(cpu: &mut Session, gpu: &mut Session, prompt: &[u32], want: &[u32]) {
    let mut from = 0;
    loop {
        let read = [prompt, &want[..from]].concat();
        let got = ask(gpu, &read, want.len() - from);
        let Some(differs) = (from..want.len()).find(|&i| got.get(i - from) != Some(&want[i])) else { return };
        let other = got.get(differs - from).copied();
        let logits = cpu.logits(&[prompt, &want[..differs]].concat()).unwrap();
        let gap = other.map(|id| logits[want[differs] as usize] - logits[id as usize]);
        match gap {
            Some(gap) if gap.abs() < TIE => {
                say(&format!("a tie at token {differs}: {} and {other:?} are {gap} apart", want[differs]));
            }
            _ => panic!(
                "token {differs} is {other:?} instead of {}, whose logit is {gap:?} larger",
                want[differs]
            ),
        }
        from = differs + 1;
    }
}

#[test]
fn a_random_model_answers_as_on_the_cpu() {
    if skipped("a_random_model_answers_as_on_the_cpu") {
        return;
    }
    for seed in 0..3 {
        let file = Gguf::from_bytes(tiny::llama(seed).build()).unwrap();
        let prompt: Vec<u32> = (0..21).map(|i| (i * 37 + seed as u32 * 5) % 263).collect();
        let mut cpu = load(&file, Device::cpu(), Mode::None, 64);
        let want = ask(&mut cpu, &prompt, 20);
        for mode in MODES {
            same_but_for_ties(&mut cpu, &mut load(&file, Device::cuda(0), mode, 64), &prompt, &want);
        }
    }
}

/// Every family in every mode, three times: warmed up, recorded, replayed.
#[test]
fn families_have_the_logits_of_transformers() {
    if skipped("families_have_the_logits_of_transformers") {
        return;
    }
    let (prompts, models) = families::expected();
    for (name, family, logits) in &models {
        let folder = families::folder("gpu", name, family);
        let files = Files::open(folder.path()).unwrap();
        for mode in MODES {
            let mut session = families::session_on::<f32>(Device::cuda(0), &files, mode);
            for _ in 0..3 {
                for (prompt, wanted) in prompts.iter().zip(logits) {
                    let far = types::distance(&session.logits(prompt).unwrap(), wanted);
                    assert!(far < families::F32, "{name}, {mode}, {} tokens: {far}", prompt.len());
                }
            }
        }
    }
}

/// A GPU multiplies activations as they are.
#[test]
fn adapters_add_to_weights_in_blocks() {
    if skipped("adapters_add_to_weights_in_blocks of a GPU") {
        return;
    }
    adapters::adapters_over_blocks(&Device::cuda(0), 1e-4);
}

#[test]
fn the_real_model_gives_the_same_64_tokens_for_three_prompts() {
    if skipped("the_real_model_gives_the_same_64_tokens_for_three_prompts") {
        return;
    }
    let file = smollm2::file();
    let mut cpu = load(file, Device::cpu(), Mode::Piecewise, 256);
    let prompts = PROMPTS.map(|p| cpu.language().prompt(p).unwrap());
    let wanted = prompts.each_ref().map(|p| ask(&mut cpu, p, LENGTH));
    for mode in MODES {
        let mut gpu = load(file, Device::cuda(0), mode, 256);
        for (prompt, want) in prompts.iter().zip(&wanted) {
            assert_eq!(want.len(), LENGTH, "an answer ended early: another prompt is needed");
            same_but_for_ties(&mut cpu, &mut gpu, prompt, want);
        }
        let question = gpu.language().prompt(smollm2::QUESTION).unwrap();
        assert_eq!(ask(&mut gpu, &question, LENGTH), smollm2::ANSWER, "{mode}");
        assert_eq!(gpu.runtime().stats().fallback_reasons, [], "{mode}");
    }
}

/// Logits in 16 bits, in every mode within the bounds of docs/ACCURACY.md of those of the CPU in f32; a replay repeats its bits.
#[test]
fn the_real_model_in_16_bits_is_near_f32() {
    fn check<T: Float>(prompt: &[u32], wanted: &[f32], bound: f32) {
        for mode in MODES {
            let file = smollm2::file();
            let language = Language::of(file).unwrap();
            let greedy = SamplingOptions::default();
            let mut gpu = Session::<T>::load(file, language, Device::cuda(0), mode, 64, greedy).unwrap();
            let logits = gpu.logits(prompt).unwrap();
            let far = types::distance(&logits, wanted);
            assert!(far > 0.0 && far < bound, "{}, {mode}: {far}", T::DTYPE);
            if mode != Mode::None {
                // The first run warms up, the second is recorded.
                let [recorded, replayed] = [(); 2].map(|()| gpu.logits(prompt).unwrap());
                assert!(recorded == replayed, "{}, {mode}: a replay differs", T::DTYPE);
            }
        }
    }
    if skipped("the_real_model_in_16_bits_is_near_f32") {
        return;
    }
    let mut cpu = load(smollm2::file(), Device::cpu(), Mode::None, 64);
    let prompt = cpu.language().prompt(smollm2::QUESTION).unwrap();
    let wanted = cpu.logits(&prompt).unwrap();
    check::<bf16>(&prompt, &wanted, types::BF16);
    check::<f16>(&prompt, &wanted, types::F16);
}

#[test]
fn sentences_have_the_cosines_of_the_cpu() {
    if skipped("sentences_have_the_cosines_of_the_cpu") {
        return;
    }
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    for mode in MODES {
        let mut encoder = Encoder::load(&minilm::folder(), Device::cuda(0), mode).unwrap();
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
fn speech_has_the_probabilities_of_the_onnx_model() {
    if skipped("speech_has_the_probabilities_of_the_onnx_model") {
        return;
    }
    for mode in MODES {
        listen::assert_heard(&mut listen::listener(Device::cuda(0), mode), &mode.to_string());
    }
}
