//! Weights of norms that are stored less 1.

use std::borrow::Cow;

use graphable::{
    DType,
    load::{HostBlocks, HostTensor, TensorSource},
};

use crate::elements::floats;

/// A source whose norms are given as they are multiplied with, plus 1, if it `adds_one`: folders of Gemma have them less 1. They are
/// given in f32, so that they are rounded once.
pub(super) struct Norms<'a, S> {
    pub(super) source: &'a S,
    pub(super) adds_one: bool,
}

impl<S: TensorSource> TensorSource for Norms<'_, S> {
    fn name(&self) -> String {
        self.source.name()
    }

    fn names(&self) -> Vec<String> {
        self.source.names()
    }

    fn tensor(&self, name: &str) -> graphable::Result<Option<HostTensor<'_>>> {
        let tensor = self.source.tensor(name)?;
        Ok(tensor.map(|tensor| {
            // Other types are refused by who asked.
            let values =
                if self.adds_one && is_norm(name) { floats(&tensor.bytes, tensor.dtype) } else { None };
            let Some(values) = values else { return tensor };
            let bytes: Vec<u8> = values.iter().flat_map(|v| (v + 1.0).to_le_bytes()).collect();
            HostTensor { dtype: DType::F32, shape: tensor.shape, bytes: Cow::Owned(bytes), file: None }
        }))
    }

    fn blocks(&self, name: &str) -> graphable::Result<Option<HostBlocks<'_>>> {
        self.source.blocks(name)
    }
}

/// Whether a tensor of this name is the weight of a norm, in folders and in GGUF files.
pub(crate) fn is_norm(name: &str) -> bool {
    name.ends_with("norm.weight")
}
