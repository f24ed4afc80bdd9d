//! The methods that views have.

use super::model::Scalar;

/// A view as helps show it.
pub(super) struct Shown {
    pub(super) name: String,
    pub(super) scalar: Scalar,
    /// Number of dimensions.
    pub(super) rank: usize,
    /// If it is a state, which the kernel writes.
    pub(super) is_written: bool,
}

/// A method of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ViewOp {
    At,
    AtOr,
    Dim,
    /// The place of a value that is written.
    Set,
}

impl ViewOp {
    const ALL: [Self; 4] = [Self::At, Self::AtOr, Self::Dim, Self::Set];

    /// The methods of a view, which may be one that is written.
    pub(super) fn of(is_written: bool) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |op| is_written || *op != Self::Set)
    }

    /// As Rust and the CUDA text spell it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::At => "at",
            Self::AtOr => "at_or",
            Self::Dim => "dim",
            Self::Set => "set",
        }
    }

    pub(super) fn named(name: &str, is_written: bool) -> Option<Self> {
        Self::of(is_written).find(|op| op.name() == name)
    }

    /// A call, as a help shows it.
    pub(super) fn example(self, view: &Shown) -> String {
        let Shown { name, scalar, rank, .. } = view;
        let (index, other) = (
            index(*rank),
            match scalar {
                Scalar::F32 | Scalar::F64 => "0.0",
                Scalar::Bool => "false",
                _ => "0",
            },
        );
        match self {
            Self::At => format!("{name}.at({index})"),
            Self::AtOr => format!("{name}.at_or({index}, {other})"),
            Self::Dim => format!("{name}.dim({})", rank - 1),
            Self::Set => format!("{name}.set({index}, {other})"),
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
        "put" | "write" | "store" if view.is_written => format!("write `{}`", ViewOp::Set.example(view)),
        "set" | "put" | "write" | "store" => {
            let (name, scalar, rank) = (&view.name, view.scalar.name(), view.rank);
            format!(
                "return the value: each element of the result is computed from its own index; a state that is written is `{name}: &mut View<{scalar}, {rank}>`"
            )
        }
        "read" | "load" | "index" | "value" => format!("write `{at}`"),
        _ => return None,
    })
}
