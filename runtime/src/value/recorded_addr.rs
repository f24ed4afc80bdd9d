//! The address of a live-in that a recording expects, if it expects one.

/// The fixed address of a live-in, or that the recording copies the live-in from its current address.
///
/// It is packed into one word, because the keys of replays are hashed and compared with those of recordings: an
/// `Option<u64>` takes two words and a branch. No memory has the address that stands for a copy, since a byte there
/// would be the last of the address space. Only this type sees the encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordedAddr(u64);

impl RecordedAddr {
    const COPIED: Self = Self(u64::MAX);

    /// Creates a fixed address.
    #[inline]
    pub(super) fn fixed(addr: u64) -> Self {
        Self(addr)
    }

    /// Creates the address of a copied live-in, which can be any.
    #[inline]
    pub(super) fn copied() -> Self {
        Self::COPIED
    }

    /// Returns the fixed address; `None` if the live-in is copied.
    #[inline]
    pub(super) fn get(self) -> Option<u64> {
        (self != Self::COPIED).then_some(self.0)
    }

    /// Returns the word that is hashed: the address itself if it is fixed.
    #[inline]
    pub(super) fn word(self) -> u64 {
        self.0
    }

    /// Returns the bits in which a fixed address differs from that one; 0 if it is that one. A copied live-in differs
    /// from every address.
    #[inline]
    pub(super) fn difference(self, addr: u64) -> u64 {
        self.0 ^ addr
    }
}

#[cfg(test)]
mod tests {
    use super::RecordedAddr;

    #[test]
    fn a_fixed_address_is_itself_and_a_copied_live_in_has_none() {
        for addr in [0, 1, 4096, u64::MAX - 1] {
            let fixed = RecordedAddr::fixed(addr);
            assert_eq!((fixed.get(), fixed.word(), fixed.difference(addr)), (Some(addr), addr, 0));
            assert_ne!(fixed.difference(addr ^ 64), 0);
            assert_ne!(fixed, RecordedAddr::copied());
            assert_ne!(RecordedAddr::copied().difference(addr), 0);
        }
        assert_eq!(RecordedAddr::copied().get(), None);
        assert_eq!(size_of::<RecordedAddr>(), size_of::<u64>());
    }
}
