//! Tensors in memory.

use std::{borrow::Cow, collections::BTreeMap};

use super::{HostTensor, TensorSource};
use crate::{Element, Error, Result, base::dtype::to_bytes, value::layout::Layout};

/// Named tensors in host memory: for tests, for random weights, or for a custom reader.
#[derive(Clone, Debug, Default)]
pub struct TensorMap {
    tensors: BTreeMap<String, HostTensor<'static>>,
}

impl TensorMap {
    /// Creates a map without tensors.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tensor with elements `data` (row-major), or replaces the one with that name.
    ///
    /// # Errors
    /// Returns [`Error::Argument`] if the length of `data` does not match `shape`; [`Error::Rank`] or
    /// [`Error::TooLarge`] for an invalid shape.
    pub fn insert<T: Element>(
        &mut self,
        name: impl Into<String>,
        shape: &[usize],
        data: &[T],
    ) -> Result<&mut Self> {
        let name = name.into();
        let count = Layout::contiguous(shape)?.count();
        if count != data.len() {
            return Err(Error::Argument {
                op: "TensorMap::insert",
                reason: format!("`{name}`: shape {shape:?} has {count} elements, the data {}", data.len()),
            });
        }
        let tensor = HostTensor {
            dtype: T::DTYPE,
            shape: shape.to_vec(),
            bytes: Cow::Owned(to_bytes(data)),
            file: None,
        };
        self.tensors.insert(name, tensor);
        Ok(self)
    }

    /// Removes and returns a tensor.
    pub fn remove(&mut self, name: &str) -> Option<HostTensor<'static>> {
        self.tensors.remove(name)
    }
}

impl TensorSource for TensorMap {
    fn name(&self) -> String {
        "the tensor map".into()
    }

    fn names(&self) -> Vec<String> {
        self.tensors.keys().cloned().collect()
    }

    fn tensor(&self, name: &str) -> Result<Option<HostTensor<'_>>> {
        Ok(self.tensors.get(name).map(|t| HostTensor {
            dtype: t.dtype,
            shape: t.shape.clone(),
            bytes: Cow::Borrowed(&t.bytes),
            file: None,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    #[test]
    fn holds_what_was_put_in() {
        let mut map = TensorMap::new();
        map.insert("a", &[2], &[1.0f32, 2.0]).unwrap().insert("b", &[], &[true]).unwrap();
        assert_eq!(map.names(), ["a", "b"]);
        let a = map.tensor("a").unwrap().unwrap();
        assert_eq!((a.dtype, a.shape.as_slice(), a.bytes.len()), (DType::F32, [2].as_slice(), 8));
        assert!(map.tensor("c").unwrap().is_none());
    }

    #[test]
    fn refuses_data_of_another_length() {
        let error = TensorMap::new().insert("w", &[2, 2], &[1u32; 3]).unwrap_err().to_string();
        assert!(error.contains("`w`: shape [2, 2] has 4 elements, the data 3"), "{error}");
    }
}
