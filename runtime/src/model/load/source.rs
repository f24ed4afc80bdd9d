//! Sources of weights.

use std::borrow::Cow;

use crate::{DType, Result};

/// A tensor on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTensor<'a> {
    /// Element type.
    pub dtype: DType,
    /// Sizes, outermost first.
    pub shape: Vec<usize>,
    /// The elements, row-major, little-endian; `bool` is one byte.
    pub bytes: Cow<'a, [u8]>,
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
}
