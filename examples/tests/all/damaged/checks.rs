//! What must hold of any bytes that claim to be a file of a model.

use std::path::{Path, PathBuf};

use graphable::{
    BlockFormat, Error as RuntimeError,
    load::{Quantization, QuantizedTensors, SafeTensors, TensorSource},
};
use graphable_examples::{
    Error,
    chat::{Message, Template},
    checkpoint::Checkpoint,
    gguf::Gguf,
    llama::{AdapterFile, Config, Session},
    tokenizer::ChatTokenizer,
};

const TEXTS: [&str; 3] = ["", "hello  world\n", "<s>\u{1F469}\u{200D}\u{1F467} \u{2581}<|im_end|>\0"];

/// A folder that the checks write to, on a file system in memory if there is one; removed at the end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let path = parent.join(format!("graphable-damaged-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for tests");
        Self(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.join(name), bytes).expect("a file for tests");
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Whether it was accepted; a refusal says what to do.
fn accepted<T>(result: Result<T, Error>) -> Option<T> {
    result.inspect_err(|e| assert!(e.to_string().contains("help:"), "{e}")).ok()
}

fn encodes(tokenizer: &ChatTokenizer) {
    assert!(!tokenizer.stops().is_empty());
    for text in TEXTS {
        if let Some(ids) = accepted(tokenizer.encode(text)) {
            tokenizer.decode(&ids);
        }
    }
}

/// A GGUF file: refused, or its tensors can be read and what it says of the model can be asked for. Returns whether it was accepted.
pub(crate) fn gguf(bytes: &[u8]) -> bool {
    let file = match Gguf::from_bytes(bytes.to_vec()) {
        Ok(file) => file,
        Err(e) => {
            assert!(!e.help().is_empty() && !e.to_string().is_empty());
            return false;
        }
    };
    for name in file.tensor_names() {
        let info = file.tensor_info(name).expect("a tensor that was named");
        // Half a byte is what an element takes at least, so this is at most eight times the file.
        assert!(info.stored_bytes() <= bytes.len());
        let tensor = file.tensor(name).expect("a tensor that was named");
        assert_eq!(tensor.data.len(), tensor.shape.iter().product::<usize>());
    }
    if let Some(config) = accepted(file.config()) {
        sound(&config, file.tensor_names().len());
    }
    accepted(file.stored());
    if let Some(tokenizer) = accepted(file.tokenizer()) {
        encodes(&tokenizer);
        accepted(file.template(&tokenizer));
    }
    true
}

/// Sizes of a model that has so many tensors: what follows would divide by them, and allocate for them.
fn sound(config: &Config, tensors: usize) {
    assert!(config.layers > 0 && config.layers <= tensors, "{config:?}");
    assert!(config.dim > 0 && config.vocab > 0 && config.context > 0 && config.ffn > 0, "{config:?}");
    assert!(config.kv_heads > 0 && config.heads.is_multiple_of(config.kv_heads), "{config:?}");
    assert!(config.head_dim > 0 && config.eps.is_finite(), "{config:?}");
    assert!(config.window != Some(0), "{config:?}");
}

/// Quantised weights and the configuration that says how: refused, or each can be read as blocks and as floats.
pub(crate) fn quantised(config: &[u8], bytes: &[u8]) -> bool {
    let read = || {
        let quantization = Quantization::from_config("config.json", config)?;
        QuantizedTensors::new(SafeTensors::from_bytes("weights", bytes.to_vec())?, quantization)
    };
    let source = match read() {
        Ok(source) => source,
        Err(e) => {
            assert!(matches!(e, RuntimeError::File { .. } | RuntimeError::Config { .. }), "{e}");
            return false;
        }
    };
    for name in source.names() {
        let Ok(tensor) = source.tensor(&name) else { continue };
        let tensor = tensor.expect("a tensor that was named");
        assert_eq!(source.shape(&name).as_ref(), Some(&tensor.shape));
        if let Some(blocks) = source.blocks(&name).expect("weights were checked") {
            assert_eq!(Some(blocks.format), source.format(&name));
            assert_eq!(blocks.shape, tensor.shape);
        }
    }
    true
}

fn weight_bytes(shape: &[usize], format: BlockFormat) -> Option<usize> {
    shape[0].checked_mul(format.row_bytes(shape[1])?)
}

/// A folder: the first two numbers are the lengths of the index and of its first shard; the second one follows.
pub(crate) fn shards(folder: &Scratch, bytes: &[u8]) -> bool {
    let Some((lengths, rest)) = bytes.split_first_chunk::<4>() else { return false };
    let [index, first] =
        [[lengths[0], lengths[1]], [lengths[2], lengths[3]]].map(|n| usize::from(u16::from_le_bytes(n)));
    let (index, rest) = rest.split_at(index.min(rest.len()));
    let (first, second) = rest.split_at(first.min(rest.len()));
    folder.write("model.safetensors.index.json", index);
    folder.write("a.safetensors", first);
    folder.write("b.safetensors", second);
    let opened = match SafeTensors::open(&folder.0) {
        Ok(opened) => opened,
        Err(e) => {
            assert!(matches!(e, RuntimeError::File { .. }), "{e}");
            return false;
        }
    };
    for name in opened.names() {
        match opened.tensor(&name) {
            Ok(tensor) => {
                let tensor = tensor.expect("a tensor that was named");
                let elements = tensor.shape.iter().product::<usize>();
                assert_eq!(tensor.bytes.len(), elements * tensor.dtype.size());
                if let Some(blocks) = opened.blocks(&name).expect("weights were checked") {
                    assert_eq!(blocks.shape, tensor.shape);
                    assert_eq!(Some(blocks.bytes.len()), weight_bytes(&blocks.shape, blocks.format));
                }
            }
            Err(e) => assert!(e.to_string().contains("elements of type"), "{e}"),
        }
    }
    true
}

/// The tokenizer of a folder.
pub(crate) fn tokenizer(folder: &Scratch, bytes: &[u8]) -> bool {
    folder.write("tokenizer.json", bytes);
    folder.write("generation_config.json", br#"{"eos_token_id": [0, 1, 2]}"#);
    let tokenizer = accepted(ChatTokenizer::from_folder(&folder.0));
    tokenizer.inspect(encodes).is_some()
}

/// What stands beside `tokenizer.json`: which tokens begin and end, and a chat template, which ends whatever it is.
pub(crate) fn settings(folder: &Scratch, tokenizer: &[u8], settings: &[u8], generation: &[u8]) -> bool {
    folder.write("tokenizer.json", tokenizer);
    folder.write("tokenizer_config.json", settings);
    folder.write("generation_config.json", generation);
    let Some(tokenizer) = accepted(ChatTokenizer::from_folder(&folder.0)) else { return false };
    encodes(&tokenizer);
    if let Some(template) = accepted(Template::from_folder(&folder.0, &tokenizer)) {
        accepted(template.render(&[Message::user("hello")]));
    }
    true
}

/// An adapter for a model that has room for one: refused when it is opened or loaded, or computed with.
pub(crate) fn adapter(folder: &Scratch, session: &mut Session<f32>, config: &[u8], weights: &[u8]) -> bool {
    folder.write("adapter_config.json", config);
    folder.write("adapter_model.safetensors", weights);
    let file = match AdapterFile::open(&folder.0) {
        Ok(file) => file,
        Err(e) => {
            let text = e.to_string();
            // Of the runtime's errors, the remedy is a part.
            assert!(text.contains("help:") || text.contains("again"), "{text}");
            return false;
        }
    };
    let loaded = session.load_adapter(0, &file);
    assert!(matches!(loaded, Ok(()) | Err(Error::Graph(_))), "{loaded:?}");
    loaded.is_ok()
}

/// The sizes of a model that has the tensors of a Llama model with two layers.
pub(crate) fn config(bytes: &[u8]) -> bool {
    let path = Path::new("config.json");
    let parts = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"];
    let parts = parts.into_iter().chain(["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]);
    let parts = parts.chain(["input_layernorm", "post_attention_layernorm"]);
    let mut names: Vec<String> =
        parts.flat_map(|part| [0, 1].map(|i| format!("model.layers.{i}.{part}.weight"))).collect();
    names.extend(["model.embed_tokens", "model.norm", "lm_head"].map(|name| format!("{name}.weight")));
    let family = Config::family(path, bytes).is_ok();
    let config = accepted(Config::from_json(path, bytes, &names));
    assert!(family || config.is_none());
    config.inspect(|config| sound(config, names.len())).is_some()
}
