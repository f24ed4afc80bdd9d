//! Host bytes that are too many for a kernel's parameter: through pinned memory.

use std::sync::Arc;

use super::shared::Shared;
use crate::{Result, backend::HostBlock};

/// Bytes that one pinned buffer holds at most: enough to keep the link busy.
const PIECE: usize = 4 << 20;
/// Pieces under way at once, before the host waits for the first of them.
const DEPTH: usize = 4;

/// Copies all writes of a block, in order. Returns when every byte is in pinned memory: waits for
/// the device only where a block has more than [`DEPTH`] pieces.
///
/// # Errors
/// What the driver says.
pub(super) fn write(shared: &Arc<Shared>, block: &HostBlock) -> Result<()> {
    let mut under_way = std::collections::VecDeque::new();
    for &(addr, offset, bytes) in &block.writes {
        for (piece, data) in block.bytes[offset..offset + bytes].chunks(PIECE).enumerate() {
            if under_way.len() == DEPTH
                && let Some((pinned, event)) = under_way.pop_front()
            {
                let event: super::driver::Event = event;
                event.wait()?;
                shared.put_pinned(pinned, event);
            }
            let (mut pinned, event) = shared.take_pinned(data.len())?;
            pinned.write(0, data);
            pinned.copy_to(&shared.stream, 0, addr + (piece * PIECE) as u64, data.len())?;
            event.record(&shared.stream)?;
            under_way.push_back((pinned, event));
        }
    }
    for (pinned, event) in under_way {
        shared.put_pinned(pinned, event);
    }
    Ok(())
}
