//! Sizes without their runtime.

/// The properties of a size without its runtime, as stored in outputs and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawDim {
    /// The size in the call; larger than the real size if it is padded.
    pub(crate) size: usize,
    pub(crate) kind: DimKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DimKind {
    /// The same number in every mode.
    Number,
    /// The size of a dimension that this symbol pads.
    Padded(u8),
    /// A value computed from the size of a dimension that this symbol pads.
    Computed(u8),
    /// Arithmetic without a result.
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

    /// Returns the size as a word of a key.
    pub(crate) fn word(self) -> u64 {
        match self.kind {
            DimKind::Number => 0,
            DimKind::Padded(symbol) => 1 << 8 | u64::from(symbol),
            DimKind::Computed(symbol) => 2 << 8 | u64::from(symbol),
            DimKind::Impossible(_) => 3 << 8,
        }
    }
}

/// The size of a dimension in a call, and the symbol that pads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MarkedSize {
    pub(crate) size: usize,
    pub(crate) symbol: Option<u8>,
}

impl MarkedSize {
    /// A size that nothing pads.
    pub(crate) fn fixed(size: usize) -> Self {
        Self { size, symbol: None }
    }
}
