//! One kernel for each type that elements are computed in.

use crate::{
    DType, Element, Real, kernel,
    kernel::definition::{Definition, Kernel},
};

/// Kernels of the same text.
#[derive(Debug)]
pub(super) struct ByType {
    floats: &'static Definition,
    i32: &'static Definition,
    u32: &'static Definition,
    u8: &'static Definition,
    further: Further,
}

/// Likewise, of `f64`, `i64` and `i8`.
#[derive(Debug)]
pub(super) struct Further {
    f64: &'static Definition,
    i64: &'static Definition,
    i8: &'static Definition,
}

impl ByType {
    pub(super) const fn new<F: Kernel, I: Kernel, U: Kernel, B: Kernel>(further: Further) -> Self {
        Self { floats: F::DEFINITION, i32: I::DEFINITION, u32: U::DEFINITION, u8: B::DEFINITION, further }
    }

    /// The one for elements `T`. Those of `bool` are their bytes.
    pub(super) fn of<T: Element>(&self) -> &'static Definition {
        match T::DTYPE {
            DType::F32 | DType::F16 | DType::Bf16 => self.floats,
            DType::I32 => self.i32,
            DType::U32 => self.u32,
            DType::U8 | DType::Bool => self.u8,
            DType::F64 => self.further.f64,
            DType::I64 => self.further.i64,
            DType::I8 => self.further.i8,
        }
    }
}

impl Further {
    pub(super) const fn new<D: Kernel, L: Kernel, S: Kernel>() -> Self {
        Self { f64: D::DEFINITION, i64: L::DEFINITION, i8: S::DEFINITION }
    }

    /// The one for elements `T`, if they are of these types.
    pub(super) fn of<T: Element>(&self) -> Option<&'static Definition> {
        match T::DTYPE {
            DType::F64 => Some(self.f64),
            DType::I64 => Some(self.i64),
            DType::I8 => Some(self.i8),
            _ => None,
        }
    }
}

/// Kernels of floats of the same text: of those that are computed in `f32`, and of `f64`.
#[derive(Debug)]
pub(super) struct OfReals {
    floats: &'static Definition,
    f64: &'static Definition,
}

impl OfReals {
    pub(super) const fn new<F: Kernel, D: Kernel>() -> Self {
        Self { floats: F::DEFINITION, f64: D::DEFINITION }
    }

    /// The one for elements `T`.
    pub(super) fn of<T: Real>(&self) -> &'static Definition {
        if T::DTYPE.is_computed_in_f32() { self.floats } else { self.f64 }
    }
}

/// An integer that orders as the `f64` with these bits does: one for both zeros, and `of_nan` for every NaN.
#[kernel]
pub(super) fn rank(bits: i64, #[key] of_nan: i64) -> i64 {
    let size = bits & i64::MAX;
    let ordered = if bits < 0 { -size } else { size };
    if size > 0x7ff0_0000_0000_0000 { of_nan } else { ordered }
}

/// The kernels of a name in the modules `floats`, `i32s`, `u32s`, `u8s`, `f64s`, `i64s` and `i8s`.
macro_rules! each_type {
    ($floats:ident::$name:ident) => {
        $crate::ops::by_type::ByType::new::<$floats::$name, i32s::$name, u32s::$name, u8s::$name>(
            $crate::ops::by_type::Further::new::<f64s::$name, i64s::$name, i8s::$name>(),
        )
    };
}

/// The one for floats `T` of two kernels.
macro_rules! of_reals {
    ($floats:path, $f64:path) => {
        const { &$crate::ops::by_type::OfReals::new::<$floats, $f64>() }.of::<T>()
    };
}

/// The definitions of kernels that each of some modules has, for CI to compile.
#[cfg(feature = "cuda")]
macro_rules! definitions {
    (@of $module:ident [$($name:ident),*]) => { [$($module::$name::DEFINITION),*] };
    ([$($module:ident),*] $names:tt) => {
        [$($crate::ops::by_type::definitions!(@of $module $names)),*].into_iter().flatten()
    };
}

#[cfg(feature = "cuda")]
pub(super) use definitions;
pub(super) use {each_type, of_reals};
