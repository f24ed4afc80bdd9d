//! Reading numbers and strings from bytes that may end anywhere.

use super::GgufError;

/// Bytes of one string. Chat templates, the longest ones, have some thousands.
const MAX_STRING: usize = 1 << 24;

/// A position in a file.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    fn truncated(&self, what: &str, needed: u64) -> GgufError {
        GgufError::Truncated { what: what.into(), at: self.at, needed, available: self.remaining() }
    }

    pub(super) fn take(&mut self, n: usize, what: &str) -> Result<&'a [u8], GgufError> {
        if n > self.remaining() {
            return Err(self.truncated(what, n as u64));
        }
        let taken = &self.bytes[self.at..self.at + n];
        self.at += n;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], GgufError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N, what)?);
        Ok(out)
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32, GgufError> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64, GgufError> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// A number of things that follow, each of at least `min_size` bytes. A count that the rest of the file cannot hold is refused;
    /// one that it could hold is still only a claim.
    pub(super) fn count(&mut self, what: &str, min_size: usize) -> Result<usize, GgufError> {
        let n = self.u64(what)?;
        match usize::try_from(n).ok().and_then(|n| n.checked_mul(min_size)) {
            Some(bytes) if bytes <= self.remaining() => Ok(n as usize),
            Some(bytes) => Err(self.truncated(what, bytes as u64)),
            None => Err(GgufError::TooLarge { what: what.into() }),
        }
    }

    pub(super) fn string(&mut self, what: &str) -> Result<String, GgufError> {
        let n = self.count(what, 1)?;
        if n > MAX_STRING {
            return Err(GgufError::TooLong { what: what.into(), len: n, unit: "bytes", most: MAX_STRING });
        }
        let at = self.at;
        let bytes = self.take(n, what)?;
        match std::str::from_utf8(bytes) {
            Ok(s) => Ok(s.to_owned()),
            Err(_) => Err(GgufError::NotUtf8 { what: what.into(), at }),
        }
    }
}
