//! What loading says of itself.

use graphable::{Device, Runtime};
use graphable_examples::{
    checkpoint::{Blocks, Checkpoint, Files, LoadProgress},
    gguf::Gguf,
};

use crate::{
    folders::{self, tensors},
    smollm2, tiny,
};

/// What loading `files` says, once to each tensor and once before.
fn told(files: &impl Checkpoint) -> Vec<LoadProgress> {
    let (rt, config) = (Runtime::new(Device::cpu()).unwrap(), files.config().unwrap());
    let mut told = Vec::new();
    files.load::<f32>(&rt, &config, Blocks::Never, &mut |p| told.push(p)).unwrap();
    told
}

fn check(told: &[LoadProgress], tensors: usize, bytes: u64) {
    assert_eq!(told.len(), tensors + 1, "{told:?}");
    assert_eq!(told[0], LoadProgress { done: 0, total: bytes });
    assert_eq!(told[tensors], LoadProgress { done: bytes, total: bytes });
    assert!(told.array_windows().all(|[a, b]| a.done < b.done && a.total == b.total), "{told:?}");
}

#[test]
fn progress_counts_the_bytes_of_files() {
    let file = Gguf::from_bytes(tiny::llama(0).build()).unwrap();
    let bytes = |file: &Gguf| {
        file.tensor_names().map(|name| file.tensor_info(name).unwrap().stored_bytes() as u64).sum()
    };
    check(&told(&file), 20, bytes(&file));
    let file = smollm2::file();
    // Blocks are counted as they are stored.
    let whole = std::fs::metadata(smollm2::path()).unwrap().len();
    assert!((whole * 9 / 10..whole).contains(&bytes(file)), "{} of {whole}", bytes(file));
    check(&told(file), 272, bytes(file));

    // The embedding leads back to logits, and is one tensor.
    let folder = folders::chat("progress");
    let bytes = tensors(&folder.read("model.safetensors")).iter().map(|(.., data)| data.len() as u64).sum();
    check(&told(&Files::open(folder.path()).unwrap()), 20, bytes);
}

#[test]
fn loading_that_fails_does_not_end() {
    let mut builder = tiny::llama(0);
    builder.drop_tensor("blk.1.ffn_down.weight");
    let file = Gguf::from_bytes(builder.f32("blk.1.ffn_down.weight", &[3], &[0.0; 3]).build()).unwrap();
    let (rt, config) = (Runtime::new(Device::cpu()).unwrap(), file.config().unwrap());
    let mut last = LoadProgress { done: 0, total: 0 };
    let e =
        file.load::<f32>(&rt, &config, Blocks::Never, &mut |p| last = p).map(drop).unwrap_err().to_string();
    assert!(e.contains("`blk.1.ffn_down.weight` has shape [3]"), "{e}");
    assert!(0 < last.done && last.done < last.total, "{last:?}");
}
