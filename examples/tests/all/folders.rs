//! Hugging Face folders for tests: those of the fixtures, and a chat model with random weights.

use std::path::{Path, PathBuf};

use rand::{Rng, SeedableRng, rngs::StdRng};
use safetensors::{Dtype, tensor::TensorView};
use serde_json::{Value, json};

/// A folder of one test, removed at its end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("graphable-folders-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Self {
        std::fs::write(self.0.join(name), bytes).unwrap();
        self
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).unwrap()
    }

    pub(crate) fn remove(&self, name: &str) -> &Self {
        std::fs::remove_file(self.0.join(name)).unwrap();
        self
    }

    /// Gives `config.json` other values; `null` takes a key out.
    pub(crate) fn configure(&self, changes: Value) -> &Self {
        let mut config: Value = serde_json::from_slice(&self.read("config.json")).unwrap();
        for (key, value) in changes.as_object().unwrap() {
            match value {
                Value::Null => drop(config.as_object_mut().unwrap().remove(key)),
                value => config[key] = value.clone(),
            }
        }
        self.write("config.json", config.to_string())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// A tensor with its name.
pub(crate) type Named = (String, Dtype, Vec<usize>, Vec<u8>);

/// A safetensors file.
pub(crate) fn serialise(tensors: &[Named]) -> Vec<u8> {
    let views = tensors.iter().map(|(name, dtype, shape, data)| {
        (name.as_str(), TensorView::new(*dtype, shape.clone(), data).unwrap())
    });
    safetensors::serialize(views, None).unwrap()
}

/// The tensors of a safetensors file, in the order of their names.
pub(crate) fn tensors(file: &[u8]) -> Vec<Named> {
    let file = safetensors::SafeTensors::deserialize(file).unwrap();
    let mut all: Vec<Named> = file
        .tensors()
        .into_iter()
        .map(|(name, view)| (name, view.dtype(), view.shape().to_vec(), view.data().to_vec()))
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// A chat model of the family Llama in bf16, with random weights and the tokenizer `bytes` of the fixtures.
pub(crate) fn chat(name: &str) -> Folder {
    const VOCAB: usize = 304;
    let folder = Folder::new(name);
    let config = json!({
        "model_type": "llama", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "max_position_embeddings": 96,
        "vocab_size": VOCAB, "tie_word_embeddings": true, "eos_token_id": [303],
    });
    let mut random = StdRng::seed_from_u64(18);
    let mut weights = vec![];
    let mut add = |name: String, shape: &[usize]| {
        let centre = if shape.len() == 1 { 1.0 } else { 0.0 };
        let count = shape.iter().product();
        let values =
            (0..count).map(|_| half::bf16::from_f32(centre + 0.4 * random.random_range(-1.0..1.0f32)));
        let data = values.flat_map(half::bf16::to_le_bytes).collect();
        weights.push((name, Dtype::BF16, shape.to_vec(), data));
    };
    add("model.embed_tokens.weight".into(), &[VOCAB, 32]);
    add("model.norm.weight".into(), &[32]);
    for i in 0..2 {
        for (part, shape) in [
            ("input_layernorm", &[32][..]),
            ("self_attn.q_proj", &[32, 32]),
            ("self_attn.k_proj", &[16, 32]),
            ("self_attn.v_proj", &[16, 32]),
            ("self_attn.o_proj", &[32, 32]),
            ("post_attention_layernorm", &[32]),
            ("mlp.gate_proj", &[48, 32]),
            ("mlp.up_proj", &[48, 32]),
            ("mlp.down_proj", &[32, 48]),
        ] {
            add(format!("model.layers.{i}.{part}.weight"), shape);
        }
    }
    folder
        .write("config.json", config.to_string())
        .write("model.safetensors", serialise(&weights))
        .write("tokenizer.json", include_bytes!("../tokenizers/bytes/tokenizer.json"))
        .write("tokenizer_config.json", include_bytes!("../tokenizers/bytes/tokenizer_config.json"))
        .write("chat_template.jinja", include_bytes!("../tokenizers/bytes/chat_template.jinja"));
    folder
}
