//! One kernel for each type that elements are computed in.

use crate::{
    DType, Element,
    kernel::definition::{Definition, Kernel},
};

/// Kernels of the same text.
#[derive(Debug)]
pub(super) struct ByType {
    floats: &'static Definition,
    i32: &'static Definition,
    u32: &'static Definition,
    u8: &'static Definition,
}

impl ByType {
    pub(super) const fn new<F: Kernel, I: Kernel, U: Kernel, B: Kernel>() -> Self {
        Self { floats: F::DEFINITION, i32: I::DEFINITION, u32: U::DEFINITION, u8: B::DEFINITION }
    }

    /// The one for elements `T`. Those of `bool` are their bytes.
    pub(super) fn of<T: Element>(&self) -> &'static Definition {
        match T::DTYPE {
            DType::F32 | DType::F16 | DType::Bf16 => self.floats,
            DType::I32 => self.i32,
            DType::U32 => self.u32,
            DType::U8 | DType::Bool => self.u8,
        }
    }
}
