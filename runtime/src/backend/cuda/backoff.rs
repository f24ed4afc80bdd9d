//! Something that failed and is tried again, ever more seldom.

/// Decides when to try again. A permanent failure costs a few tries in total, and a temporary one is
/// eventually overcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Backoff {
    failures: u32,
    /// Uses that pass without a try.
    skip: u64,
}

impl Backoff {
    /// Returns whether this use should try.
    pub(super) fn is_due(&mut self) -> bool {
        if self.skip == 0 {
            return true;
        }
        self.skip -= 1;
        false
    }

    /// The try failed: as many uses pass as there were before, and the same again. Whether it was the first.
    pub(super) fn failed(&mut self) -> bool {
        self.skip = 1 << self.failures.min(62);
        self.failures += 1;
        self.failures == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_for_good_is_tried_seldom() {
        let mut backoff = Backoff::default();
        let tries: Vec<usize> =
            (0..1000).filter(|_| backoff.is_due().then(|| backoff.failed()).is_some()).collect();
        assert_eq!(tries, [0, 2, 5, 10, 19, 36, 69, 134, 263, 520]);
    }

    #[test]
    fn what_failed_in_passing_is_tried_soon() {
        let mut backoff = Backoff::default();
        assert!(backoff.is_due());
        assert!(backoff.failed());
        assert!(!backoff.is_due());
        assert!(backoff.is_due(), "the second use after it");
        assert!(!backoff.failed(), "said once");
    }
}
