//! The times at which bytes were written.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::values::overlapping;
use crate::value::view::Range;

/// Writes are forgotten when that many commands have followed; nothing may ask about older ones.
pub(super) const WINDOW: usize = 1024;

/// The writes to each byte: pieces that do not overlap, by their start.
#[derive(Debug, Default)]
pub(super) struct Writes(BTreeMap<u64, Piece>);

#[derive(Clone, Debug)]
struct Piece {
    end: u64,
    /// The indices of the commands that wrote it, in order.
    by: SmallVec<[usize; 4]>,
}

impl Writes {
    /// Command `at` writes `range`.
    pub(super) fn note(&mut self, range: Range, at: usize) {
        if range.0 >= range.1 {
            return;
        }
        self.split(range.0);
        self.split(range.1);
        let mut from = range.0;
        let mut gaps: SmallVec<[Range; 2]> = SmallVec::new();
        for (start, piece) in self.0.range_mut(range.0..range.1) {
            if from < *start {
                gaps.push((from, *start));
            }
            from = piece.end;
            if piece.by.len() >= 4 && piece.by.len().is_power_of_two() {
                piece.by.retain(|by| *by + WINDOW >= at);
            }
            piece.by.push(at);
        }
        if from < range.1 {
            gaps.push((from, range.1));
        }
        for (start, end) in gaps {
            self.0.insert(start, Piece { end, by: SmallVec::from_elem(at, 1) });
        }
    }

    /// Makes a piece begin there, if there is one around it.
    fn split(&mut self, at: u64) {
        if let Some((_, piece)) = self.0.range_mut(..at).next_back()
            && at < piece.end
        {
            let rest = piece.clone();
            piece.end = at;
            self.0.insert(at, rest);
        }
    }

    /// Returns whether a command after `after`, other than those in `except`, wrote a byte of `range`.
    pub(super) fn has(&self, range: Range, after: usize, except: impl Fn(usize) -> bool) -> bool {
        overlapping(&self.0, range, |piece| piece.end)
            .any(|(_, piece)| piece.by.iter().rev().take_while(|by| **by > after).any(|by| !except(*by)))
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;

    /// Against a list of all writes.
    #[test]
    fn writes_are_found_by_range_and_time() {
        let mut rng = StdRng::seed_from_u64(11);
        for _ in 0..100 {
            let (mut writes, mut all) = (Writes::default(), Vec::new());
            for at in 0..200 {
                let start = rng.random_range(0..300u64);
                let range = (start, start + rng.random_range(0..40));
                writes.note(range, at);
                all.push((range, at));
                let start = rng.random_range(0..300u64);
                let asked = (start, start + rng.random_range(0..40));
                let (after, odd) = (rng.random_range(0..=at), rng.random::<bool>());
                let expected = all.iter().any(|&((start, end), by)| {
                    by > after && !(odd && by % 2 == 1) && start.max(asked.0) < end.min(asked.1)
                });
                assert_eq!(
                    writes.has(asked, after, |by| odd && by % 2 == 1),
                    expected,
                    "{asked:?} after {after}"
                );
            }
        }
    }
}
