//! GGUF files as a source of weights.

use std::{borrow::Cow, sync::Arc};

use super::{Bytes, Gguf};
use crate::elements::push_floats;
use graphable::{
    DType, Element,
    load::{HostBlocks, HostTensor, MappedFile, TensorSource},
};

/// The weights of a file for a model whose elements are of one float type.
///
/// Tensors of floats are given as they are stored. Matrices in blocks are given as they are stored to those who ask for blocks, and
/// dequantised to the model's type, some blocks at a time, to those who ask for floats: there is no copy of a tensor in `f32`,
/// unless that is the type.
#[derive(Clone, Copy, Debug)]
pub struct GgufWeights<'a> {
    file: &'a Gguf,
    blocks: DType,
}

impl Gguf {
    /// The weights for a model whose elements are `T`; those that are stored in blocks become `f32` if `T` is not a float type.
    pub fn weights<T: Element>(&self) -> GgufWeights<'_> {
        GgufWeights { file: self, blocks: if T::DTYPE.is_float() { T::DTYPE } else { DType::F32 } }
    }
}

impl Gguf {
    /// The file, if it is mapped.
    fn mapped(&self) -> Option<&Arc<MappedFile>> {
        match &self.bytes {
            Bytes::Owned(_) => None,
            Bytes::Mapped(file) => Some(file),
        }
    }
}

impl TensorSource for GgufWeights<'_> {
    fn name(&self) -> String {
        self.file.name.clone()
    }

    fn names(&self) -> Vec<String> {
        self.file.tensor_names().map(str::to_owned).collect()
    }

    fn tensor(&self, name: &str) -> graphable::Result<Option<HostTensor<'_>>> {
        let Some(info) = self.file.header.tensors.get(name) else { return Ok(None) };
        let (stored, shape) = (self.file.stored(info), info.shape.clone());
        if let Some(dtype) = info.ty.float() {
            return Ok(Some(HostTensor {
                dtype,
                shape,
                bytes: Cow::Borrowed(stored),
                file: self.file.mapped(),
            }));
        }
        let dtype = self.blocks;
        let count = stored.len() / info.ty.block_bytes() * info.ty.block_elements();
        let mut bytes = Vec::with_capacity(count * dtype.size());
        info.ty.for_each_piece(stored, |values| push_floats(values, dtype, &mut bytes));
        Ok(Some(HostTensor { dtype, shape, bytes: Cow::Owned(bytes), file: None }))
    }

    fn blocks(&self, name: &str) -> graphable::Result<Option<HostBlocks<'_>>> {
        let matrix = self.file.header.tensors.get(name).filter(|info| info.shape.len() == 2);
        Ok(matrix.and_then(|info| {
            let file = self.file.mapped();
            let bytes = Cow::Borrowed(self.file.stored(info));
            Some(HostBlocks { format: info.ty.blocks()?, shape: info.shape.clone(), bytes, file })
        }))
    }
}
