//! What a GGUF file of a model is made of.

use std::borrow::Cow;

use graphable::{DType, load::TensorSource};

use super::tensor::{Change, Tensor};
use crate::{
    Error, Result, chat,
    checkpoint::{Checkpoint, Files, Folder, is_norm},
    gguf::{Gguf, TensorType, write::Metadata},
    llama::{Config, DIVISORS, Family, StoredScaling, hugging_face_name},
    tokenizer,
};

/// Metadata and tensors.
pub(super) struct Source<'a> {
    pub(super) metadata: Metadata,
    pub(super) tensors: Vec<Tensor<'a>>,
}

impl<'a> Source<'a> {
    /// What a file of this model has.
    ///
    /// # Errors
    /// If the model is none that `generate` reads, or a GGUF file cannot describe it.
    pub(super) fn of(files: &'a Files) -> Result<Self> {
        // All that is checked before a model is used.
        let config = files.config()?;
        files.tokenizer()?;
        files.stored()?;
        match files {
            Files::Gguf(file) => of_gguf(file),
            Files::Folder(folder) => of_folder(folder, &config),
        }
    }
}

/// The same metadata and tensors.
fn of_gguf(file: &Gguf) -> Result<Source<'_>> {
    let unreadable = |e: crate::gguf::GgufError| Error::Model {
        what: "model".into(),
        reason: e.to_string(),
        help: e.help().into(),
    };
    let tensors = file.tensor_names().filter_map(|name| {
        let info = file.tensor_info(name)?;
        let bytes = Cow::Borrowed(file.stored_tensor(name)?);
        Some(Tensor {
            name: name.into(),
            shape: info.shape.clone(),
            ty: info.ty,
            bytes,
            change: Change::None,
        })
    });
    Ok(Source { metadata: file.metadata().map_err(unreadable)?, tensors: tensors.collect() })
}

/// Metadata that describes the folder, and its tensors by other names.
fn of_folder<'a>(folder: &'a Folder, config: &Config) -> Result<Source<'a>> {
    let rope = folder.stored_rope()?;
    let mut metadata = Metadata::default();
    config.describe(&rope, &mut metadata)?;
    if let Some(name) = folder.path().canonicalize().ok().as_deref().and_then(|path| path.file_name()) {
        metadata.str("general.name", &name.to_string_lossy());
    }
    let tokenizer = folder.tokenizer()?;
    tokenizer::describe(folder.path(), &tokenizer, config.vocab, &mut metadata)?;
    // A model that only completes text has none.
    if let Some(template) = chat::source(folder.path())? {
        metadata.str("tokenizer.chat_template", &template);
    }

    let mut tensors = Vec::new();
    if let StoredScaling::Divisors(divisors) = &rope.scaling {
        tensors.push(Tensor {
            name: DIVISORS.into(),
            shape: vec![divisors.len()],
            ty: TensorType::F32,
            bytes: divisors.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>().into(),
            change: Change::None,
        });
    }
    for name in config.tensors() {
        let stored = hugging_face_name(&name, config);
        let Some(tensor) = folder.weights().tensor(&stored)? else { continue };
        let ty = match tensor.dtype {
            DType::F32 => TensorType::F32,
            DType::F16 => TensorType::F16,
            DType::Bf16 => TensorType::BF16,
            other => {
                return Err(Error::Model {
                    what: stored,
                    reason: format!("it holds {other}, and only floats are converted"),
                    help: "use weights in F32, F16 or BF16".into(),
                });
            }
        };
        let change = change(config, &name);
        tensors.push(Tensor { name, shape: tensor.shape, ty, bytes: tensor.bytes, change });
    }
    Ok(Source { metadata, tensors })
}

/// What GGUF files have otherwise than folders.
fn change(config: &Config, name: &str) -> Change {
    let turned = [".attn_q.weight", ".attn_k.weight"].iter().any(|end| name.ends_with(end));
    match config.family {
        Family::Llama if turned => Change::Interleave(config.head_dim),
        family if family.is_gemma() && is_norm(name) => Change::AddOne,
        _ => Change::None,
    }
}
