//! The memory limit of graphs.

use std::env;

use crate::{Error, Result, Runtime};

/// The environment variable that sets the limit of every new runtime.
const VARIABLE: &str = "GRAPHABLE_GRAPH_MEMORY";

impl Runtime {
    /// Stops recording once graphs have taken this many bytes: the segment pool and all executables together.
    /// Segments that would be recorded after that run without a graph and are counted with
    /// [`FallbackReason::OverGraphMemory`](crate::FallbackReason::OverGraphMemory), which `deny_fallback`
    /// makes an error. Existing recordings can still be replayed; recording resumes when memory has been
    /// freed, for example by [`reset`](Self::reset). `None`, the default, means no limit. Memory that another
    /// process allocates on the GPU during a capture is counted as part of the executable: the driver reports
    /// how much memory is free, but not who uses it.
    ///
    /// The limit is checked before each recording, whose size is not yet known, so the last one may exceed
    /// it. The environment variable `GRAPHABLE_GRAPH_MEMORY` sets the limit without code changes, in bytes or
    /// as `512M` or `2G` (powers of 1024).
    ///
    /// ```
    /// # fn main() -> graphable::Result<()> {
    /// let rt = graphable::Runtime::new(graphable::Device::cpu())?;
    /// rt.limit_graph_memory(Some(2 << 30));
    /// # Ok(())
    /// # }
    /// ```
    pub fn limit_graph_memory(&self, bytes: Option<u64>) {
        self.core.borrow_mut().settings.limit_graph_memory(bytes);
    }
}

/// Returns the limit set by the environment.
///
/// # Errors
/// Returns [`Error::Config`] if the value is not a number of bytes: ignoring it would mean no limit.
pub(crate) fn of_environment() -> Result<Option<u64>> {
    let Some(text) = env::var_os(VARIABLE) else { return Ok(None) };
    let text = text.to_string_lossy();
    match parse(&text) {
        Some(limit) => Ok(limit),
        None => Err(Error::Config {
            what: VARIABLE.into(),
            reason: format!(
                "`{text}` is not a number of bytes; write `1073741824`, `1024M` or `1G`, or unset it"
            ),
        }),
    }
}

/// Parses a number of bytes, with K, M, G or T for powers of 1024; an empty value means no limit.
fn parse(text: &str) -> Option<Option<u64>> {
    let text = text.trim();
    if text.is_empty() {
        return Some(None);
    }
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    digits.trim_end().parse::<u64>().ok()?.checked_mul(1 << shift).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_or_powers_of_1024() {
        assert_eq!(parse("1000"), Some(Some(1000)));
        assert_eq!(parse(" 2G "), Some(Some(2 << 30)));
        assert_eq!(parse("512 MiB"), Some(Some(512 << 20)));
        assert_eq!(parse("0"), Some(Some(0)));
        assert_eq!(parse(""), Some(None));
        for bad in ["G", "2X", "-1", "1.5G", "1e9", "99999999999T"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
