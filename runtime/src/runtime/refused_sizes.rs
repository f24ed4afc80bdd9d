//! Comparisons of padded sizes, which have no answer.

use std::cmp::Ordering;

use crate::{Error, Result};

/// Comparisons of padded sizes, until the segment or call that made them ends.
#[derive(Debug, Default)]
pub(crate) struct RefusedSizes {
    first: std::cell::RefCell<Option<Error>>,
    answers: std::cell::Cell<u8>,
}

impl RefusedSizes {
    pub(crate) fn answer(&self, error: impl FnOnce() -> Error) -> Option<Ordering> {
        if self.first.borrow().is_none() {
            let error = error();
            *self.first.borrow_mut() = Some(error);
        }
        let turn = self.answers.get();
        self.answers.set(turn.wrapping_add(1));
        [None, Some(Ordering::Equal), Some(Ordering::Less), Some(Ordering::Greater)][usize::from(turn % 4)]
    }

    /// Returns the first of them as an error, which is reported once more at the end.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.first.borrow().is_none() { Ok(()) } else { self.repeat() }
    }

    #[cold]
    fn repeat(&self) -> Result<()> {
        match &*self.first.borrow() {
            None => Ok(()),
            Some(Error::PaddedSize { op, symbol, at }) => {
                Err(Error::PaddedSize { op, symbol: symbol.clone(), at: *at })
            }
            Some(other) => Err(Error::Argument { op: "a comparison of sizes", reason: other.to_string() }),
        }
    }

    /// Forgets the comparisons of a call that panicked.
    pub(crate) fn clear(&self) {
        drop(self.take());
    }

    /// Returns the first of them as an error, and forgets it.
    pub(crate) fn take(&self) -> Result<()> {
        self.answers.set(0);
        self.first.borrow_mut().take().map_or(Ok(()), Err)
    }
}
