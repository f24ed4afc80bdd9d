//! The model in the three float types.

use graphable::{BlockFormat, DType, Device, Float, Mode, ParamVisitor, load::TensorSource as _};
use graphable_examples::{
    checkpoint::{Blocks, Checkpoint, Files},
    gguf::Gguf,
    llama::{Language, Session},
    sampling::SamplingOptions,
};
use half::{bf16, f16};

use crate::{folders, smollm2, tiny};

/// Largest `|logits - f32's| / |f32's|` (lengths of the vectors), as in docs/ACCURACY.md.
pub(crate) const BF16: f32 = 0.05;
pub(crate) const F16: f32 = 0.01;
/// The same of weights in the blocks of the real file, whose products quantise activations to 8 bits: the mean of the prompts, their
/// median, and any one of them. Where an activation lies between two integers, the last bit of a sum decides which of them it becomes,
/// and from layer to layer that grows to all of what quantising loses; so the distance of one prompt is a sample.
const BLOCKS: f32 = 0.05;
const BLOCKS_OF_HALF: f32 = 0.03;
const BLOCKS_OF_ANY: f32 = 0.25;

fn load<T: Float>(file: &Gguf, mode: Mode, capacity: usize) -> Session<T> {
    let language = Language::of(file).unwrap();
    Session::load(file, language, Device::cpu(), mode, capacity, SamplingOptions::default()).unwrap()
}

fn length(v: impl Iterator<Item = f32>) -> f32 {
    v.map(|v| v * v).sum::<f32>().sqrt()
}

/// `|logits - wanted| / |wanted|`.
pub(crate) fn distance(logits: &[f32], wanted: &[f32]) -> f32 {
    length(logits.iter().zip(wanted).map(|(a, b)| a - b)) / length(wanted.iter().copied())
}

/// How far the logits after `prompt` of the model in bf16 and in f16 are from those of the model in f32.
fn from_f32(file: &Gguf, prompt: &[u32]) -> (f32, f32) {
    fn logits<T: Float>(file: &Gguf, prompt: &[u32]) -> Vec<f32> {
        load::<T>(file, Mode::None, 64).logits(prompt).unwrap()
    }
    let of_f32 = logits::<f32>(file, prompt);
    (distance(&logits::<bf16>(file, prompt), &of_f32), distance(&logits::<f16>(file, prompt), &of_f32))
}

#[test]
fn narrow_types_are_near_f32() {
    for seed in 0..3 {
        let file = Gguf::from_bytes(tiny::llama(seed).build()).unwrap();
        let prompt: Vec<u32> = (0..21).map(|i| (i * 37 + seed as u32 * 5) % 263).collect();
        let (b, h) = from_f32(&file, &prompt);
        // Not 0: then the type would not have been used.
        assert!(h > 0.0 && h < F16 && b > h && b < BF16, "seed {seed}: bf16 {b}, f16 {h}");
    }
}

#[test]
fn the_real_model_is_near_f32() {
    let file = smollm2::file();
    let prompt = Language::of(file).unwrap().prompt(smollm2::QUESTION).unwrap();
    let (b, h) = from_f32(file, &prompt);
    assert!(h > 0.0 && h < F16 && b > h && b < BF16, "bf16 {b}, f16 {h}");
}

/// Bits of logits, tokens and cache.
fn modes_agree<T: Float>() {
    let file = Gguf::from_bytes(tiny::llama(1).build()).unwrap();
    let prompt: Vec<u32> = (0..21).map(|i| i * 37 % 263).collect();
    let run = |mode, device_loop: Option<usize>| {
        let mut session = load::<T>(&file, mode, 64);
        if let Some(tokens) = device_loop {
            session.use_device_loop(tokens).unwrap();
        }
        session.capture(|_, _| ()).unwrap();
        let tokens = session.answer(&prompt, 20, |_| Ok(())).unwrap().tokens;
        let keys = session.first_keys().unwrap();
        let logits: Vec<u32> = session.logits(&prompt).unwrap().into_iter().map(f32::to_bits).collect();
        assert_eq!(session.runtime().stats().fallback_reasons, []);
        (tokens, keys, logits)
    };
    let want = run(Mode::None, None);
    assert!(want.1.iter().any(|k| k.to_f64() != 0.0));
    for mode in Mode::ALL {
        assert!(run(mode, None) == want, "{}, {mode}", T::DTYPE);
    }
    assert!(run(Mode::Full, Some(8)) == want, "{}, a loop on the device", T::DTYPE);
}

#[test]
fn modes_agree_bit_by_bit_in_every_type() {
    modes_agree::<f32>();
    modes_agree::<bf16>();
    modes_agree::<f16>();
}

pub(crate) fn load_blocks(files: &impl Checkpoint, mode: Mode, blocks: Blocks) -> Session<f32> {
    load_on(Device::cpu(), files, mode, blocks)
}

pub(crate) fn load_on(device: Device, files: &impl Checkpoint, mode: Mode, blocks: Blocks) -> Session<f32> {
    let language = Language::of(&Gguf::from_bytes(tiny::llama(0).build()).unwrap()).unwrap();
    let greedy = SamplingOptions::default();
    Session::load_with(files, language, device, mode, 64, greedy, blocks, &mut |_| ()).unwrap()
}

/// The real file, whose matrices are in Q4_1 but for the embedding: near the dequantised model, and a fraction of its memory.
#[test]
fn blocks_of_a_file_stay_blocks() {
    let file = smollm2::file();
    let mut floats = load_blocks(file, Mode::None, Blocks::Never);
    let mut blocks = load_blocks(file, Mode::None, Blocks::Stored);
    let language = Language::of(file).unwrap();
    assert_eq!((floats.model().stored(), blocks.model().stored()), ("f32".into(), "Q4_1".into()));
    let mut far = [
        smollm2::QUESTION,
        "Hi",
        "Who was Ada Lovelace?",
        "What is 17 times 23?",
        "Write a poem about rain.",
        "Name three rivers.",
        "How tall is Everest?",
        "Why is the sky blue?",
        "What do bees eat?",
        "Tell me a joke.",
        "Explain gravity.",
        "What is a prime number?",
    ]
    .map(|question| {
        let prompt = language.prompt(question).unwrap();
        distance(&blocks.logits(&prompt).unwrap(), &floats.logits(&prompt).unwrap())
    });
    let mean = far.iter().sum::<f32>() / far.len() as f32;
    far.sort_by(f32::total_cmp);
    let [least, half, most] = [0, far.len() / 2, far.len() - 1].map(|i| far[i]);
    // Not 0: activations are quantised to 8 bits.
    assert!(least > 0.0 && mean < BLOCKS && half < BLOCKS_OF_HALF && most < BLOCKS_OF_ANY, "{mean}: {far:?}");
    let bytes = |session: &Session<f32>| ParamVisitor::bytes(session.model());
    // The embedding is in Q8_0, the other matrices are in Q4_1: 5 bits a weight.
    assert!(5 * bytes(&blocks) < bytes(&floats), "{} of {}", bytes(&blocks), bytes(&floats));
}

/// Floats become blocks where the format divides the rows, and stay floats elsewhere (`ffn_down` has 48 columns).
#[test]
fn floats_become_blocks_as_they_are_loaded() {
    let file = Gguf::from_bytes(tiny::llama(2).build()).unwrap();
    let folder = folders::chat("blocks");
    let files = Files::open(folder.path()).unwrap();
    let prompt: Vec<u32> = (0..21).map(|i| i * 37 % 263).collect();
    let mut far = Vec::new();
    for format in [BlockFormat::Q8_0, BlockFormat::Q5_1, BlockFormat::Q4_1, BlockFormat::Q4_0] {
        let mut session = load_blocks(&file, Mode::None, Blocks::Format(format));
        let down = session.model().formats().filter(|format| format.is_none()).count();
        assert_eq!((session.model().stored(), down), (format.to_string(), 2));
        let wanted = load_blocks(&file, Mode::None, Blocks::Never).logits(&prompt).unwrap();
        far.push(distance(&session.logits(&prompt).unwrap(), &wanted));
        // Stored in bf16, and the embedding also leads back to logits.
        let of_folder = load_blocks(&files, Mode::None, Blocks::Format(format));
        assert_eq!(of_folder.model().formats().filter(|stored| *stored == Some(format)).count(), 14);
    }
    assert!(far[0] > 0.0 && far[0] < 0.02 && far.is_sorted(), "{far:?}");
}

#[test]
fn modes_agree_bit_by_bit_with_blocks() {
    let file = Gguf::from_bytes(tiny::llama(1).build()).unwrap();
    let prompt: Vec<u32> = (0..21).map(|i| i * 37 % 263).collect();
    let run = |mode, device_loop: Option<usize>| {
        let mut session = load_blocks(&file, mode, Blocks::Format(BlockFormat::Q8_0));
        if let Some(tokens) = device_loop {
            session.use_device_loop(tokens).unwrap();
        }
        session.capture(|_, _| ()).unwrap();
        let tokens = session.answer(&prompt, 20, |_| Ok(())).unwrap().tokens;
        let keys: Vec<u32> = session.first_keys().unwrap().into_iter().map(f32::to_bits).collect();
        assert_eq!(session.runtime().stats().fallback_reasons, []);
        (tokens, keys)
    };
    let want = run(Mode::None, None);
    for mode in Mode::ALL {
        assert!(run(mode, None) == want, "{mode}");
    }
    assert!(run(Mode::Full, Some(8)) == want, "a loop on the device");
}

/// All weights are numbers in f16; what they add to the residual stream is not.
#[test]
fn values_above_the_largest_of_f16_are_explained() {
    fn answer<T: Float>(file: &Gguf) -> Result<(), String> {
        load::<T>(file, Mode::None, 64).answer(&[5, 6, 7], 3, |_| Ok(())).map(drop).map_err(|e| e.to_string())
    }
    let mut builder = tiny::llama(0);
    builder.drop_tensor("blk.1.attn_output.weight");
    let weights: Vec<f32> = (0..32 * 32).map(|i| if i % 3 == 0 { -60000.0 } else { 60000.0 }).collect();
    let file =
        Gguf::from_bytes(builder.f32("blk.1.attn_output.weight", &[32, 32], &weights).build()).unwrap();
    answer::<f32>(&file).unwrap();
    answer::<bf16>(&file).unwrap();
    let e = answer::<f16>(&file).unwrap_err();
    assert!(e.contains("no logit that is a number") && e.contains("65504"), "{e}");
    assert!(e.contains("help:") && e.contains("`--dtype bf16` or `--dtype f32`"), "{e}");

    builder = tiny::llama(0);
    builder.drop_tensor("output_norm.weight");
    let file = Gguf::from_bytes(builder.f32("output_norm.weight", &[32], &[f32::NAN; 32]).build()).unwrap();
    let e = answer::<f32>(&file).unwrap_err();
    assert!(e.contains("the weights are damaged") && !e.contains("65504"), "{e}");
}

/// What a model of floats gets is the dequantised value, rounded once.
#[test]
fn weights_are_rounded_once() {
    fn check<T: Float>(file: &Gguf) {
        let weights = file.weights::<T>();
        for name in ["blk.0.attn_q.weight", "blk.0.attn_norm.weight"] {
            let info = file.tensor_info(name).unwrap();
            let tensor = weights.tensor(name).unwrap().unwrap();
            let values = file.tensor(name).unwrap().data;
            let bytes: Vec<u8> = match T::DTYPE {
                _ if info.ty.float().is_some() => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
                DType::F16 => values.iter().flat_map(|v| f16::from_f32(*v).to_le_bytes()).collect(),
                DType::Bf16 => values.iter().flat_map(|v| bf16::from_f32(*v).to_le_bytes()).collect(),
                _ => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            };
            assert_eq!(tensor.dtype, info.ty.float().unwrap_or(T::DTYPE), "{name}");
            assert!(tensor.shape == info.shape && *tensor.bytes == bytes[..], "{name} as {}", T::DTYPE);
        }
    }
    check::<f32>(smollm2::file());
    check::<bf16>(smollm2::file());
    check::<f16>(smollm2::file());
}

#[test]
fn what_a_file_stores_is_known() {
    assert_eq!(smollm2::file().stored().unwrap(), None);
    assert_eq!(Gguf::from_bytes(tiny::llama(0).build()).unwrap().stored().unwrap(), Some(DType::F32));
}
