//! Which instructions the machine has.

/// What the products are computed with. All give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Rust without instructions of a kind of its own.
    Plain,
}

impl Level {
    /// The fastest that this machine has.
    pub(crate) fn best() -> Self {
        Self::Plain
    }

    /// All that this machine has.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Self> {
        vec![Self::Plain]
    }
}
