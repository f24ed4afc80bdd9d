//! Weights in blocks on a device that has these in tiles, from and to the host, which puts them in order.

use std::ops::Range;

use super::weights::Place;
use crate::{
    BlockFormat, Contents, DType, Eager, Error, PendingRead, Result,
    backend::{PendingBytes, View},
    quantized::tiles::{self, TILE},
    tensor::contents::Source,
    value::layout::Layout,
};

/// A weight in tiles: its format, and its rows and their elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiles {
    pub(super) format: BlockFormat,
    pub(super) shape: [usize; 2],
}

impl Tiles {
    /// Overwrites rows. `place` has them as they would lie in a file, and knows the memory of the weight.
    pub(super) fn write(
        self,
        cx: &Eager<'_>,
        place: &Place<'_>,
        rows: Range<usize>,
        Contents(source): Contents<'_, u8>,
    ) -> Result<()> {
        let refuse = |reason: String| Err(Error::Argument { op: place.op, reason });
        let Source::Host(blocks) = source else {
            return refuse(
                "this device has blocks in an order of its own, which the host makes: pass the bytes from the host, or write them before \
                 the weight is moved here"
                    .into(),
            );
        };
        place.check_count(blocks.len())?;
        let [all, width] = self.shape;
        let is_whole = rows.start.is_multiple_of(TILE) && (rows.end.is_multiple_of(TILE) || rows.end == all);
        if !rows.is_empty() && !is_whole {
            return refuse(format!(
                "rows {rows:?} of {all}; this device has blocks in tiles of {TILE} rows, so rows that are written begin at a multiple of \
                 {TILE}, and end at one or with the last: write {:?}",
                rows.start / TILE * TILE..rows.end.next_multiple_of(TILE).min(all)
            ));
        }
        let too_large = || Error::TooLarge { shape: self.shape[..].into() };
        let before = tiles::bytes(self.format, [rows.start, width]).ok_or_else(too_large)?;
        let stored = tiles::arrange(self.format, [rows.len(), width], blocks).ok_or_else(too_large)?;
        let view = self.view(place, before, stored.len())?;
        Place { view, ..*place }.write(cx, Contents::from(&stored))
    }

    /// Starts to read all blocks.
    pub(super) fn read(self, cx: &Eager<'_>, place: &Place<'_>) -> Result<PendingRead<u8>> {
        let bytes = tiles::bytes(self.format, self.shape)
            .ok_or_else(|| Error::TooLarge { shape: self.shape[..].into() })?;
        let view = self.view(place, 0, bytes)?;
        let read = Place { view, ..*place }.read::<u8>(cx)?;
        Ok(read.map(|bytes| Box::new(InTiles { bytes, tiles: self })))
    }

    /// The blocks of what is stored.
    fn restore(self, stored: &[u8]) -> Result<Vec<u8>> {
        tiles::restore(self.format, self.shape, stored)
            .ok_or_else(|| Error::TooLarge { shape: self.shape[..].into() })
    }

    /// Bytes of the weight's memory.
    fn view(self, place: &Place<'_>, offset: usize, bytes: usize) -> Result<View> {
        let addr = place.owned.memory.addr() + offset as u64;
        Ok(View { addr, dtype: DType::U8, layout: Layout::contiguous(&[bytes])? })
    }
}

/// Bytes in tiles that are under way.
struct InTiles {
    bytes: Box<dyn PendingBytes>,
    tiles: Tiles,
}

impl PendingBytes for InTiles {
    fn wait(self: Box<Self>) -> Result<Vec<u8>> {
        self.tiles.restore(&self.bytes.wait()?)
    }

    fn wait_without_faults(self: Box<Self>) -> Result<Vec<u8>> {
        self.tiles.restore(&self.bytes.wait_without_faults()?)
    }

    fn is_ready(&self) -> bool {
        self.bytes.is_ready()
    }
}
