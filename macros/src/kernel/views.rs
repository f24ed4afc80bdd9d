//! The methods that views have.

use super::model::Scalar;

/// A view as helps show it.
pub(super) struct Shown {
    pub(super) name: String,
    pub(super) scalar: Scalar,
    /// Number of dimensions.
    pub(super) rank: usize,
}

/// A method of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ViewOp {
    At,
    AtOr,
    Dim,
}

impl ViewOp {
    pub(super) const ALL: [Self; 3] = [Self::At, Self::AtOr, Self::Dim];

    /// As Rust and the CUDA text spell it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::At => "at",
            Self::AtOr => "at_or",
            Self::Dim => "dim",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.name() == name)
    }

    /// A call, as a help shows it.
    pub(super) fn example(self, view: &Shown) -> String {
        let Shown { name, scalar, rank } = view;
        let (index, other) = (
            index(*rank),
            match scalar {
                Scalar::F32 => "0.0",
                Scalar::Bool => "false",
                Scalar::I32 | Scalar::U32 | Scalar::U8 | Scalar::Random => "0",
            },
        );
        match self {
            Self::At => format!("{name}.at({index})"),
            Self::AtOr => format!("{name}.at_or({index}, {other})"),
            Self::Dim => format!("{name}.dim({})", rank - 1),
        }
    }
}

/// An index of so many dimensions, as a help shows it.
pub(super) fn index(rank: usize) -> String {
    const NAMES: [&str; 6] = ["i", "j", "k", "l", "m", "n"];
    format!("[{}]", NAMES[..rank.min(NAMES.len())].join(", "))
}

/// Returns what to write instead of a method of tensors, slices or rows that views do not have.
pub(super) fn instead(name: &str, view: &Shown) -> Option<String> {
    let at = ViewOp::At.example(view);
    Some(match name {
        "len" | "shape" | "size" | "sizes" | "count" => {
            format!("write the size of a dimension, `{}`", ViewOp::Dim.example(view))
        }
        "get" | "get_or" | "unwrap_or" => {
            format!("write `{}`, with the value that stands out of range", ViewOp::AtOr.example(view))
        }
        "iter" | "into_iter" | "map" | "sum" | "max" | "min" | "fold" | "zip" | "enumerate" => {
            format!("write the loop: `for k in 0..{} {{ … }}`", ViewOp::Dim.example(view))
        }
        "set" | "put" | "write" | "store" => {
            "return the value: each element of the result is computed from its own index".to_owned()
        }
        "read" | "load" | "index" | "value" => format!("write `{at}`"),
        _ => return None,
    })
}
