//! Where weights come from.

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
/// Implement it for a format of your own; [`SafeTensors`](crate::model::load::SafeTensors) and
/// [`TensorMap`](crate::model::load::TensorMap) are here.
pub trait TensorSource {
    /// What to call the source in errors: a path, usually.
    fn name(&self) -> String;

    /// Every tensor name, in any order.
    fn names(&self) -> Vec<String>;

    /// The tensor of that name; `None` when there is none.
    ///
    /// # Errors
    /// What keeps an existing tensor from being read, such as an element type that has no [`DType`].
    fn tensor(&self, name: &str) -> Result<Option<HostTensor<'_>>>;
}
