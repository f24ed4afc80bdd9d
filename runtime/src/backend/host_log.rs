//! Host memory to which operations append while the host looks at it.

use std::{
    any::Any,
    fmt,
    sync::atomic::{AtomicU32, AtomicU64},
};

/// Host memory that one operation of a device writes and the host reads at the same time. On a GPU it is pinned.
///
/// Every access is atomic. The device writes words first and the header after them, with the order that
/// [`Release`](std::sync::atomic::Ordering::Release) has for the host; so whoever loads the header with
/// [`Acquire`](std::sync::atomic::Ordering::Acquire) may read the words that it counts. It may be
/// dropped at any time: what was launched before keeps what it uses, and recordings keep a reference.
pub trait HostLog: Any + Send + Sync + fmt::Debug {
    /// Returns the number of the reading in the upper half, and in the lower one how many elements it was given.
    fn header(&self) -> &AtomicU64;

    /// Returns the words, one for each element.
    fn words(&self) -> &[AtomicU32];

    /// Returns the address of the header for the device's code, which finds the words behind it. On the CPU, operations use
    /// the references instead, and this is 0.
    fn device_addr(&self) -> u64;
}
