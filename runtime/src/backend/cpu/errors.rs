//! The device's name, and its failures.

use crate::Error;

/// The CPU as a device, in errors too.
pub(super) const NAME: &str = "cpu";

/// A call that failed and did nothing.
pub(super) fn failed(call: &'static str, reason: String) -> Error {
    Error::Device { device: NAME.into(), call, reason }
}
