//! Hugging Face folders as models.

use std::{
    io,
    path::{Path, PathBuf},
};

use graphable::{
    DType, Float, Runtime,
    load::{MappedFile, Quantization, QuantizedTensors, SafeTensors, TensorSource},
};

use super::{
    Blocks, Checkpoint, LoadProgress, Watched, fill,
    norms::Norms,
    stored::{self, Stored},
};
use crate::{
    Error, Result,
    chat::Template,
    llama::{Config, Llama, StoredRope, hugging_face_name},
    tokenizer::ChatTokenizer,
};

/// A folder with `config.json`, weights in `model.safetensors` or in several files with their index, and `tokenizer.json`.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    config: Config,
    /// The contents of `config.json`.
    text: Vec<u8>,
    weights: QuantizedTensors,
}

impl Folder {
    /// Opens a folder, or the one in which the file or index of weights at `path` is. Weights are read into memory.
    ///
    /// # Errors
    /// If `config.json` or the weights are missing or damaged; if the model is of a family or has a variant that is not computed, or
    /// quantised in a way that is not read; if the weights have tensors that it does not use.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_by(path, |path| SafeTensors::open(path))
    }

    /// Opens what [`open`](Self::open) opens without reading weights into memory: `map` maps their files. The duty that comes with
    /// mapped files is that of whoever maps them ([`MappedFile::open`]).
    ///
    /// # Errors
    /// Those of [`open`](Self::open), and those of `map`.
    pub fn open_mapped(path: &Path, map: impl FnMut(&Path) -> io::Result<MappedFile>) -> Result<Self> {
        Self::open_by(path, |path| SafeTensors::open_mapped(path, map))
    }

    fn open_by(path: &Path, weights: impl FnOnce(&Path) -> graphable::Result<SafeTensors>) -> Result<Self> {
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
        let file = folder.join("config.json");
        let text = std::fs::read(&file).map_err(|e| Error::io(&file, "read", &e))?;
        // The family, and how weights are quantised, are told before it matters whether the weights are complete.
        Config::family(&file, &text)?;
        let quantization = Quantization::from_config(&file, &text).map_err(|e| Error::File {
            path: file.clone(),
            reason: e.to_string(),
            help: "use weights in fp8, AWQ, GPTQ or pack-quantized as said, in floats, or a GGUF file".into(),
        })?;
        let help = "download the files of the model again, with its own config.json";
        let weights = QuantizedTensors::new(weights(path)?, quantization)
            .map_err(|source| Error::Weights { source, help })?;
        let mut config = Config::from_json(&file, &text, &weights.names())?;
        // What the files have counts, and not `tie_word_embeddings`, as in transformers.
        config.tied = config.tied && !has_output(&weights)?;
        Ok(Self { path: folder.into(), config, text, weights })
    }
}

/// Whether files have a matrix for logits that is another one than the embedding.
fn has_output(weights: &QuantizedTensors) -> Result<bool> {
    let [output, embedding] = ["lm_head.weight", "model.embed_tokens.weight"];
    if weights.format(output).is_some() || weights.format(embedding).is_some() {
        return Ok(weights.shape(output).is_some());
    }
    let Some(output) = weights.tensor(output)? else { return Ok(false) };
    let Some(embedding) = weights.tensor(embedding)? else { return Ok(true) };
    Ok((output.dtype, output.shape, output.bytes) != (embedding.dtype, embedding.shape, embedding.bytes))
}

impl Folder {
    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The weights, by the names of transformers.
    pub(crate) fn weights(&self) -> &QuantizedTensors {
        &self.weights
    }

    /// How queries and keys turn, as a GGUF file says it.
    ///
    /// # Errors
    /// If it cannot.
    pub(crate) fn stored_rope(&self) -> Result<StoredRope> {
        self.config.stored_rope(&self.path.join("config.json"), &self.text)
    }
}

impl Checkpoint for Folder {
    fn config(&self) -> Result<Config> {
        Ok(self.config.clone())
    }

    fn stored(&self) -> Result<Option<DType>> {
        let mut tensors = Vec::new();
        // What else the files have may be stored in any way.
        for name in self.config.tensors() {
            let name = hugging_face_name(&name, &self.config);
            if let (Some(_), Some(shape)) = (self.weights.format(&name), self.weights.shape(&name)) {
                tensors.push((Stored::Blocks, shape));
            } else if let Some(tensor) = self.weights.tensor(&name)? {
                tensors.push((Stored::of(tensor.dtype), tensor.shape));
            }
        }
        match stored::most(tensors.iter().map(|(stored, shape)| (*stored, shape.as_slice()))) {
            Stored::Floats(dtype) => Ok(Some(dtype)),
            Stored::Blocks => Ok(None),
            Stored::Other => Err(Error::Model {
                what: self.weights.name(),
                reason: "most of its weights are integers, and config.json does not say how they are quantised".into(),
                help: "use weights in F32, F16 or BF16, quantised ones with their own config.json, or a GGUF file".into(),
            }),
        }
    }

    fn tokenizer(&self) -> Result<ChatTokenizer> {
        let tokenizer = ChatTokenizer::from_folder(&self.path)?;
        let (largest, vocab) = (tokenizer.largest(), self.config.vocab);
        if largest as usize >= vocab {
            return Err(Error::Tokenizer {
                reason: format!("it has a token {largest}, and the model has {vocab} tokens"),
                help: "fetch the tokenizer of this model".into(),
            });
        }
        Ok(tokenizer)
    }

    fn template(&self, tokenizer: &ChatTokenizer) -> Result<Template> {
        Template::from_folder(&self.path, tokenizer)
    }

    fn load<T: Float>(
        &self,
        rt: &Runtime,
        config: &Config,
        blocks: Blocks,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<Llama<T>> {
        let rename = |name: &str| hugging_face_name(name, config);
        if let Some(name) = self.weights.sorted_weight().filter(|_| blocks == Blocks::Stored) {
            return Err(Error::Model {
                what: format!("`{name}`"),
                reason: "it is quantised with columns in another order (desc_act), and groups of elements that are not neighbours make no blocks"
                    .into(),
                help: "pass `--dtype bf16`, `f16` or `f32`, which make floats of it, or `--dtype int4`, which quantises these again".into(),
            });
        }
        let size = |name: &str| self.weights.stored_bytes(name);
        let tensors = config.tensors().into_iter().map(|name| rename(&name));
        let weights = Norms { source: &self.weights, adds_one: config.family.is_gemma() };
        fill(rt, Watched::new(&weights, tensors, &size, progress), rename, config, blocks)
    }
}
