//! The arguments of a launch.

use crate::backend::Constant;

/// One argument of a launch, in the order of the kernel's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Argument {
    /// The address of an input's first element.
    Input(u8),
    /// An input's address, sizes and strides.
    View(u8),
    /// The address of an output.
    Output(u8),
    /// The address of a state that is written.
    State(u8),
    /// A value of up to eight bytes.
    Value {
        /// The value, in the byte order of the host.
        bytes: [u8; 8],
        /// Its type; it has so many of the bytes.
        of: ScalarType,
    },
    /// The address of the real size of a padded dimension, a u32; none where the dimension is not padded.
    RealSize(Option<u8>),
    /// The address of the workspace.
    Workspace,
}

/// A host value that a kernel takes by value: `f32`, `f64`, and integers of 32 and 64 bits.
#[diagnostic::on_unimplemented(
    message = "a kernel does not take `{Self}` by value",
    label = "expected `f32`, `f64`, or an integer of 32 or 64 bits",
    note = "convert it, `u32::from(flag)` or `n as u64`; sizes of tensors are passed with `size(x.dim(0))`"
)]
pub trait ScalarArgument: bytemuck::Pod + sealed::Sealed {}

pub(crate) use sealed::ScalarType;

mod sealed {
    macro_rules! scalars {
        ($($of:ident $t:ident),*) => {
            /// The type of a host value.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub enum ScalarType { $($of),* }

            impl ScalarType {
                /// Its name in Rust.
                pub(crate) fn name(self) -> &'static str {
                    match self { $(Self::$of => stringify!($t)),* }
                }

                /// Its size.
                pub(crate) fn bytes(self) -> usize {
                    match self { $(Self::$of => size_of::<$t>()),* }
                }
            }

            $(
                impl Sealed for $t {
                    const TYPE: ScalarType = ScalarType::$of;
                }
                impl super::ScalarArgument for $t {}
            )*
        };
    }

    pub trait Sealed {
        const TYPE: ScalarType;
    }

    scalars! { F32 f32, F64 f64, I32 i32, U32 u32, I64 i64, U64 u64 }
}

impl Argument {
    /// Returns what it is, as a message says it.
    #[cfg(feature = "cuda")]
    pub(crate) fn described(&self) -> String {
        match self {
            Self::Input(_) => "the address of an input".into(),
            Self::View(_) => "a `graphable_view`".into(),
            Self::Output(_) => "the address of an output".into(),
            Self::State(_) => "the address of a state".into(),
            Self::Value { of, .. } => format!("a `{}`", of.name()),
            Self::RealSize(_) => "the address of a real size".into(),
            Self::Workspace => "the address of the workspace".into(),
        }
    }

    /// Returns the value, if it is one.
    pub(crate) fn constant(&self) -> Option<Constant> {
        let Self::Value { bytes, of } = self else { return None };
        let [a, b, c, d, ..] = *bytes;
        let low = [a, b, c, d];
        Some(match of {
            ScalarType::F32 => Constant::Float(f32::from_ne_bytes(low).into()),
            ScalarType::F64 => Constant::Float(f64::from_ne_bytes(*bytes)),
            ScalarType::I32 => Constant::Integer(i32::from_ne_bytes(low).into()),
            ScalarType::U32 => Constant::Integer(u32::from_ne_bytes(low).into()),
            ScalarType::I64 => Constant::Integer(i64::from_ne_bytes(*bytes).into()),
            ScalarType::U64 => Constant::Integer(u64::from_ne_bytes(*bytes).into()),
        })
    }

    /// A value.
    pub(crate) fn value<T: ScalarArgument>(value: T) -> Self {
        let given = bytemuck::bytes_of(&value);
        let mut bytes = [0; 8];
        bytes[..given.len()].copy_from_slice(given);
        Self::Value { bytes, of: T::TYPE }
    }
}
