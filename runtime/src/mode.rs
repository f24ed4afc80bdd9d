//! Modes of capture, and what boundaries support.

use std::{fmt, str::FromStr};

use crate::Error;

/// How much of a function becomes graphs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Nothing: every operation is launched on its own.
    None,
    /// The segments; boundaries run on each call.
    #[default]
    Piecewise,
    /// The whole call is one graph, where every boundary supports it.
    Full,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Piecewise => "piecewise",
            Self::Full => "full",
        })
    }
}

impl FromStr for Mode {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self, Error> {
        match s {
            "none" => Ok(Self::None),
            "piecewise" => Ok(Self::Piecewise),
            "full" => Ok(Self::Full),
            _ => Err(Error::Config {
                what: format!("mode `{s}`"),
                why: "there is no such mode; choose none, piecewise or full".into(),
            }),
        }
    }
}

/// What batches an `#[eager(support = …)]` boundary can be captured for, weakest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Support {
    /// It must run on each call.
    #[default]
    Never,
    /// Batches in which every sequence has exactly one new token.
    UniformSingleTokenDecode,
    /// Batches in which all sequences have the same number of new tokens.
    UniformBatch,
    /// Any batch.
    Always,
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
