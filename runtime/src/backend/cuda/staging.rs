//! Host bytes that are too many for a kernel's parameter: through pinned memory.

use std::{collections::VecDeque, sync::Arc};

use super::{
    driver::{Event, Pinned},
    shared::Shared,
};
use crate::Result;

/// Bytes that one pinned buffer holds at most: enough to keep the link busy.
const PIECE: usize = 4 << 20;
/// The number of pieces in flight before the host waits for the first of them.
const DEPTH: usize = 16;

/// Copies bytes to their addresses, in order. Returns when every byte is in pinned memory: waits for
/// the device only where there are more than [`DEPTH`] pieces.
///
/// # Errors
/// Returns errors of the driver.
pub(super) fn write<'a>(
    shared: &Arc<Shared>,
    writes: impl IntoIterator<Item = (u64, &'a [u8])>,
) -> Result<()> {
    let mut pieces = Pieces { shared, under_way: VecDeque::new() };
    for (addr, bytes) in writes {
        for (piece, data) in bytes.chunks(PIECE).enumerate() {
            pieces.make_room()?;
            let (mut pinned, event) = shared.take_pinned(data.len())?;
            pinned.write(0, data);
            pinned.copy_to(&shared.stream, 0, addr + (piece * PIECE) as u64, data.len())?;
            pieces.under_way.push_back(shared.mark_use(pinned, event)?);
        }
    }
    Ok(())
}

/// Pinned memory whose copies may still run. In every case, it is reused only after them.
struct Pieces<'a> {
    shared: &'a Shared,
    under_way: VecDeque<(Pinned, Event)>,
}

impl Pieces<'_> {
    /// Waits for the oldest if there are as many as there may be.
    fn make_room(&mut self) -> Result<()> {
        if self.under_way.len() == DEPTH
            && let Some((_, event)) = self.under_way.front()
        {
            self.shared.wait_for_staging(event)?;
            if let Some((pinned, event)) = self.under_way.pop_front() {
                self.shared.put_pinned(pinned, event);
            }
        }
        Ok(())
    }
}

impl Drop for Pieces<'_> {
    fn drop(&mut self) {
        for (pinned, event) in self.under_way.drain(..) {
            self.shared.put_pinned(pinned, event);
        }
    }
}
