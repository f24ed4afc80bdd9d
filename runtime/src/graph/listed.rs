//! Sizes of which graphs are made, as the builder lists them.

use crate::{Error, Result, base::reason::FallbackReason, record::Symbol};

/// Sizes of some symbols, as listed by the builder.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    pub(super) symbols: Vec<&'static str>,
    /// One size for each of them.
    pub(super) sizes: Vec<Vec<usize>>,
}

impl Listed {
    /// Checks it against the function's symbols, and sorts it.
    pub(super) fn checked(mut self, function: &str, known: &[&'static str]) -> Result<Self> {
        let what = || format!("`capture_only` of {}", self.symbols.join(", "));
        let wrong = |reason: String| Err(Error::Config { what: what(), reason });
        if self.symbols.is_empty() {
            return wrong("it names no symbol; give the `#[dims]` symbols that it lists".into());
        }
        for (i, symbol) in self.symbols.iter().enumerate() {
            if !known.contains(symbol) {
                let all = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return wrong(format!("`{function}` has no `#[dims]` symbol `{symbol}`; it has {all}"));
            }
            if self.symbols[..i].contains(symbol) {
                return wrong(format!("{symbol} is named twice"));
            }
        }
        if self.sizes.is_empty() {
            return wrong("an empty list would never record; use `Mode::None` for that".into());
        }
        if self.sizes.iter().flatten().any(|&n| n == 0) {
            return wrong("a size of 0 holds nothing; sizes start at 1".into());
        }
        self.sizes.sort_unstable();
        self.sizes.dedup();
        Ok(self)
    }

    /// Returns whether it lists sizes of that symbol.
    pub(super) fn names(&self, symbol: &str) -> bool {
        self.symbols.contains(&symbol)
    }

    fn holds(&self, size: impl Fn(&str) -> Option<usize>) -> Result<(), Vec<usize>> {
        let sizes: Vec<usize> = self.symbols.iter().map(|s| size(s).unwrap_or(0)).collect();
        if self.sizes.binary_search(&sizes).is_ok() { Ok(()) } else { Err(sizes) }
    }

    /// Returns the reason why the sizes of a call are not captured, if they are not.
    pub(super) fn refuses(&self, symbols: &[Symbol]) -> Option<FallbackReason> {
        let size = |name: &str| symbols.iter().find(|s| s.name == name).map(|s| s.padded);
        let sizes = self.holds(size).err()?;
        Some(FallbackReason::SizeNotListed { symbols: self.symbols.clone(), sizes })
    }

    /// Returns whether it lists this combination of sizes, one for each of the function's symbols.
    pub(super) fn allows(&self, names: &[&'static str], sizes: &[usize]) -> bool {
        let size = |name: &str| names.iter().position(|n| *n == name).map(|i| sizes[i]);
        self.holds(size).is_ok()
    }

    /// Returns the sizes of one symbol.
    pub(super) fn sizes_of(&self, symbol: &str) -> Option<Vec<usize>> {
        let at = self.symbols.iter().position(|s| *s == symbol)?;
        let mut sizes: Vec<usize> = self.sizes.iter().map(|s| s[at]).collect();
        sizes.sort_unstable();
        sizes.dedup();
        Some(sizes)
    }
}
