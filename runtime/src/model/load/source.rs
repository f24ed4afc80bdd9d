//! Sources of weights.

use std::{borrow::Cow, sync::Arc};

use super::MappedFile;
use crate::{BlockFormat, DType, Result};

/// A tensor on the host. Two are equal if their elements are, wherever those lie.
#[derive(Clone, Debug)]
pub struct HostTensor<'a> {
    /// Element type.
    pub dtype: DType,
    /// Sizes, outermost first.
    pub shape: Vec<usize>,
    /// The elements, row-major, little-endian; `bool` is one byte.
    pub bytes: Cow<'a, [u8]>,
    /// The file of which borrowed bytes are a part, if it is mapped. A [`Weight`](crate::Weight) uses them where they are, if the device
    /// can and they are aligned for their type.
    pub file: Option<&'a Arc<MappedFile>>,
}

impl PartialEq for HostTensor<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.dtype == other.dtype && self.shape == other.shape && self.bytes == other.bytes
    }
}

impl Eq for HostTensor<'_> {}

/// A weight on the host, in blocks.
#[derive(Clone, Debug)]
pub struct HostBlocks<'a> {
    /// The format of the blocks.
    pub format: BlockFormat,
    /// Rows, and elements of one.
    pub shape: Vec<usize>,
    /// The blocks, row by row.
    pub bytes: Cow<'a, [u8]>,
    /// The file of which borrowed bytes are a part, if it is mapped: they are used where they are, if the device can.
    pub file: Option<&'a Arc<MappedFile>>,
}

/// Named tensors on the host: a file, an archive, a map.
///
/// Implement it for a custom format; [`SafeTensors`](crate::model::load::SafeTensors) and
/// [`TensorMap`](crate::model::load::TensorMap) are provided.
pub trait TensorSource {
    /// Returns the name of the source in errors, usually a path.
    fn name(&self) -> String;

    /// Returns every tensor name, in any order.
    fn names(&self) -> Vec<String>;

    /// Returns the tensor with that name; `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if an existing tensor cannot be read, for example because its element type has no
    /// [`DType`].
    fn tensor(&self, name: &str) -> Result<Option<HostTensor<'_>>>;

    /// Returns the weight with that name in blocks, for a field of type [`Weight`](crate::Weight); `None` if there is none, or it is
    /// not stored in blocks: then [`tensor`](Self::tensor) is asked for it. A source that returns blocks should also return their
    /// values as floats there: those are loaded for fields of other types, and for tensors that do not have two dimensions.
    ///
    /// # Errors
    /// As [`tensor`](Self::tensor).
    fn blocks(&self, name: &str) -> Result<Option<HostBlocks<'_>>> {
        let _ = name;
        Ok(None)
    }
}
