//! Choices, read off bytes.

/// Every choice takes the next byte or two; when they run out, it is the first one.
pub(crate) struct Choices<'a> {
    bytes: &'a [u8],
}

impl<'a> Choices<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    fn byte(&mut self) -> usize {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        usize::from(*first)
    }

    /// A number below `n`, or 0 for none.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        let high = if n > 256 { self.byte() << 8 } else { 0 };
        (high | self.byte()) % n.max(1)
    }

    /// One of `list`, if it has any.
    pub(crate) fn of<'l, T>(&mut self, list: &'l [T]) -> Option<&'l T> {
        if list.is_empty() { None } else { list.get(self.below(list.len())) }
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    /// What no choice has taken.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes
    }
}
