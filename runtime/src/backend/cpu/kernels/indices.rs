//! Indices in device memory.

use super::strided::Walk;
use crate::backend::{
    Launch, View,
    cpu::{Access, Fault},
};

/// The elements of a u32 view, in order.
pub(crate) fn values(access: &Access<'_>, view: &View) -> Vec<u32> {
    let mut values = vec![0; view.layout.count()];
    Walk::new(&view.layout).copy(access.slice::<u32>(view), 0, &mut values);
    values
}

/// Returns the first index that is out of range, as a fault.
pub(crate) fn check(launch: &Launch, index: &[u32], rows: usize) -> Result<(), Fault> {
    match index.iter().find(|&&i| i as usize >= rows) {
        None => Ok(()),
        Some(&index) => Err(Fault::Index { op: launch.op.name(), index: index.into(), bound: rows as u64 }),
    }
}
