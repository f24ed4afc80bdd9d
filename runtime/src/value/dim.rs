//! Sizes without their runtime.

/// What is known of a size, without its runtime: what outputs and keys hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawDim {
    /// The size in the call; larger than the real one where it is padded.
    pub(crate) size: usize,
    pub(crate) kind: DimKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DimKind {
    /// The same number in every mode.
    Number,
    /// The size of a dimension that this symbol pads.
    Padded(u8),
    /// Computed from the size of a dimension that this symbol pads.
    Computed(u8),
    /// Arithmetic that has no result.
    Impossible(&'static str),
}

impl RawDim {
    pub(crate) fn number(size: usize) -> Self {
        Self { size, kind: DimKind::Number }
    }

    pub(crate) fn symbol(self) -> Option<u8> {
        match self.kind {
            DimKind::Padded(symbol) | DimKind::Computed(symbol) => Some(symbol),
            DimKind::Number | DimKind::Impossible(_) => None,
        }
    }

    /// For keys.
    pub(crate) fn word(self) -> u64 {
        match self.kind {
            DimKind::Number => 0,
            DimKind::Padded(symbol) => 1 << 8 | u64::from(symbol),
            DimKind::Computed(symbol) => 2 << 8 | u64::from(symbol),
            DimKind::Impossible(_) => 3 << 8,
        }
    }
}
