//! What is done another way than by recording once more: live-ins that keep moving, too many shapes, sizes
//! that are not listed, what is switched off, too small, or refused by a policy. Events are asserted as
//! well as values.

#![allow(clippy::drop_non_drop, reason = "dropping a step says where it ends")]

#[path = "../common/device.rs"]
mod device;
#[allow(dead_code, reason = "shared with the tests of the core")]
#[path = "../core/support.rs"]
mod support;

mod aliases;
mod builder;
mod copied;
mod forbidden;
mod moves;
mod policy;
mod shapes;
mod strict;
mod switches;
mod warnings;
