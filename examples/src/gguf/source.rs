//! GGUF files as a source of weights.

use std::borrow::Cow;

use graphable::{
    DType,
    load::{HostTensor, TensorSource},
};

use super::Gguf;

/// Every tensor is `f32`, whatever it is stored as.
impl TensorSource for Gguf {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn names(&self) -> Vec<String> {
        self.tensor_names().map(str::to_owned).collect()
    }

    fn tensor(&self, name: &str) -> graphable::Result<Option<HostTensor<'_>>> {
        let Some(info) = self.tensors.get(name) else { return Ok(None) };
        let data = info.ty.dequantise(self.stored(info));
        let bytes = data.iter().flat_map(|v| v.to_le_bytes()).collect();
        Ok(Some(HostTensor { dtype: DType::F32, shape: info.shape.clone(), bytes: Cow::Owned(bytes) }))
    }
}
