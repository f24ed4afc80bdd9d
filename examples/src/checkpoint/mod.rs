//! A chat model's files: a GGUF file, or a Hugging Face folder.
//!
//! Opening reads or maps the weights, and reads what describes the model. Families and variants that are not computed, sizes that
//! contradict each other, damaged headers, and missing or unknown tensors are refused before any weight is read; shapes and
//! element types that do not fit when weights are loaded, all in one error.

mod blocks;
mod folder;
mod gguf;
mod norms;
mod stored;
mod watched;

use std::{io, path::Path};

use graphable::{
    DType, Float, Runtime,
    load::{LoadParams, Loader, MappedFile, TensorSource},
};
use serde_json::Value;

pub(crate) use self::norms::is_norm;
use self::{blocks::Blocked, watched::Watched};
pub use self::{blocks::Blocks, folder::Folder, watched::LoadProgress};
use crate::{
    Error, Result,
    chat::Template,
    gguf::Gguf,
    llama::{Config, Llama},
    tokenizer::ChatTokenizer,
};

/// What a chat model is made from.
pub trait Checkpoint {
    /// The model's sizes.
    ///
    /// # Errors
    /// If the model is of a family or has a variant that is not computed, or contradicts itself.
    fn config(&self) -> Result<Config>;

    /// The float type that most weights are stored as; `None` if most are stored in quantised blocks.
    ///
    /// # Errors
    /// If a weight is stored as something else.
    fn stored(&self) -> Result<Option<DType>>;

    /// The tokenizer.
    ///
    /// # Errors
    /// If there is none, or it cannot be built.
    fn tokenizer(&self) -> Result<ChatTokenizer>;

    /// The chat template.
    ///
    /// # Errors
    /// If there is none.
    fn template(&self, tokenizer: &ChatTokenizer) -> Result<Template>;

    /// Loads the weights onto a device: matrices in blocks as `blocks` says, the others rounded to `T` if they are stored as another
    /// type. `progress` is told before the first tensor and after each.
    ///
    /// # Errors
    /// If tensors are missing or have other shapes than `config` says (all of them in one error), or the device has no room.
    fn load<T: Float>(
        &self,
        rt: &Runtime,
        config: &Config,
        blocks: Blocks,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<Llama<T>>;
}

/// The files of a model, of whatever kind.
#[derive(Debug)]
pub enum Files {
    /// One file with everything.
    Gguf(Gguf),
    /// A folder, or weights in one.
    Folder(Box<Folder>),
}

impl Files {
    /// Opens a GGUF file; a Hugging Face folder; or the weights in one, `*.safetensors` or `*.safetensors.index.json`. Files are
    /// read into memory.
    ///
    /// # Errors
    /// If a file is missing, damaged or of another kind.
    pub fn open(path: &Path) -> Result<Self> {
        if in_folder(path) {
            Folder::open(path).map(|folder| Self::Folder(Box::new(folder)))
        } else {
            Gguf::open(path).map(Self::Gguf)
        }
    }

    /// Opens what [`open`](Self::open) opens without reading weights into memory: `map` maps their files. The duty that comes with
    /// mapped files is that of whoever maps them ([`MappedFile::open`]).
    ///
    /// # Errors
    /// Those of [`open`](Self::open), and those of `map`.
    pub fn open_mapped(path: &Path, map: impl FnMut(&Path) -> io::Result<MappedFile>) -> Result<Self> {
        if in_folder(path) {
            Folder::open_mapped(path, map).map(|folder| Self::Folder(Box::new(folder)))
        } else {
            Gguf::open_mapped(path, map).map(Self::Gguf)
        }
    }
}

/// Whether it is a Hugging Face folder, or names weights in one.
fn in_folder(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    path.is_dir() || name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json")
}

impl Checkpoint for Files {
    fn config(&self) -> Result<Config> {
        match self {
            Self::Gguf(file) => file.config(),
            Self::Folder(folder) => folder.config(),
        }
    }

    fn stored(&self) -> Result<Option<DType>> {
        match self {
            Self::Gguf(file) => file.stored(),
            Self::Folder(folder) => folder.stored(),
        }
    }

    fn tokenizer(&self) -> Result<ChatTokenizer> {
        match self {
            Self::Gguf(file) => file.tokenizer(),
            Self::Folder(folder) => folder.tokenizer(),
        }
    }

    fn template(&self, tokenizer: &ChatTokenizer) -> Result<Template> {
        match self {
            Self::Gguf(file) => file.template(tokenizer),
            Self::Folder(folder) => folder.template(tokenizer),
        }
    }

    fn load<T: Float>(
        &self,
        rt: &Runtime,
        config: &Config,
        blocks: Blocks,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<Llama<T>> {
        match self {
            Self::Gguf(file) => file.load(rt, config, blocks, progress),
            Self::Folder(folder) => folder.load(rt, config, blocks, progress),
        }
    }
}

/// Fills the model; floats of other types are converted. `rename` says what the source calls a tensor.
fn fill<T: Float>(
    rt: &Runtime,
    source: Watched<'_, impl TensorSource>,
    rename: impl Fn(&str) -> String,
    config: &Config,
    blocks: Blocks,
) -> Result<Llama<T>> {
    let help = "use the complete files of one model, or download them again";
    let blocked = Blocked { source: &source, blocks };
    let mut loader = Loader::new(rt, &blocked).rename(rename).cast_floats(true);
    let model = Llama::load(&mut loader, config);
    let model = loader.finish(model).map_err(|source| Error::Weights { source, help })?;
    source.finish();
    Ok(model.with_layers_of(config))
}

/// The contents of a JSON file, if it exists.
///
/// # Errors
/// If it cannot be read, or is not JSON.
pub(crate) fn json(path: &Path) -> Result<Option<Value>> {
    match std::fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|e| Error::File {
            path: path.to_owned(),
            reason: format!("is damaged, or not JSON: {e}"),
            help: "fetch it again".into(),
        }),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io(path, "read", &e)),
    }
}
