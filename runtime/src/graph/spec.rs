//! The macro's description of a function and of its inputs.

use std::borrow::Cow;

use crate::{DType, Element, base::plan::Plan};

/// The macro's description of a function.
#[derive(Debug)]
pub struct FunctionSpec {
    /// Its name.
    pub name: &'static str,
    /// Its partition.
    pub plan: &'static Plan,
    /// `#[dims]` symbols.
    pub symbols: &'static [&'static str],
    /// Tensor and scalar parameters, in order.
    pub inputs: Cow<'static, [InputSpec]>,
}

/// One entry of `#[dims(...)]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dim {
    /// A fixed size.
    Const(usize),
    /// The index of a symbol of the function.
    Symbol(usize),
}

/// The `#[dims]` of an input.
#[derive(Clone, Copy, Debug)]
pub enum DimsSpec {
    /// No dimensions are specified: any shape; a host slice is one-dimensional.
    Unspecified,
    /// One entry per dimension.
    Some(&'static [Dim]),
}

/// The kind of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// `#[host] &Tensor<T>`
    HostTensor,
    /// `#[host] &Scalar<T>`
    HostScalar,
    /// `&Tensor<T>`
    DeviceTensor,
}

/// One tensor or scalar parameter.
#[derive(Clone, Copy, Debug)]
pub struct InputSpec {
    /// Its name.
    pub name: &'static str,
    /// Its kind.
    pub kind: InputKind,
    /// Its element type.
    pub dtype: DType,
    /// Its dimensions.
    pub dims: DimsSpec,
}

impl InputSpec {
    /// Describes a `#[host] &Tensor<T>`.
    pub const fn host<T: Element>(name: &'static str) -> Self {
        Self { name, kind: InputKind::HostTensor, dtype: T::DTYPE, dims: DimsSpec::Unspecified }
    }

    /// Describes a `#[host] &Scalar<T>`.
    pub const fn scalar<T: Element>(name: &'static str) -> Self {
        Self { name, kind: InputKind::HostScalar, dtype: T::DTYPE, dims: DimsSpec::Unspecified }
    }

    /// Describes a `&Tensor<T>`.
    pub const fn device<T: Element>(name: &'static str) -> Self {
        Self { name, kind: InputKind::DeviceTensor, dtype: T::DTYPE, dims: DimsSpec::Unspecified }
    }

    /// Sets its dimensions.
    #[must_use]
    pub const fn dims(self, dims: &'static [Dim]) -> Self {
        Self { dims: DimsSpec::Some(dims), ..self }
    }
}
