//! The running call.

use std::sync::Arc;

use crate::{
    DType, Limits, Policy,
    backend::{SharedMemory, View},
    base::mode::Mode,
    tensor::RawTensor,
    value::layout::Layout,
};

use super::{Core, Placement};

/// One `#[dims]` symbol in the running call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol {
    pub(crate) name: &'static str,
    /// Size of the inputs.
    pub(crate) real: usize,
    /// Size in the call; larger when padded.
    pub(crate) padded: usize,
    /// Whether the symbol has buckets. Its dimensions are marked as padded then in every mode, also where the size
    /// fits exactly, so that modes and sizes agree on what is refused.
    pub(crate) bucketed: bool,
    /// Whether the builder asks for this size, by buckets or by a list.
    pub(crate) asked: bool,
}

/// What the core knows of the running call.
#[derive(Debug)]
pub(crate) struct FrameState {
    pub(crate) name: &'static str,
    /// Id of the graph object.
    pub(crate) function: u64,
    pub(crate) mode: Mode,
    pub(crate) symbols: Vec<Symbol>,
    /// Whether the call was told apart from others by its batch.
    pub(crate) dispatched: bool,
    /// The count of adapters that recordings of this call are for, where it makes a difference.
    pub(crate) adapters: Option<usize>,
    /// The static host block; the counts of the symbols stand after `scalars` slots.
    pub(crate) block: SharedMemory,
    pub(crate) block_id: u64,
    pub(crate) scalars: usize,
    pub(crate) audit_every: u32,
    pub(crate) limits: Limits,
    pub(crate) policy: Option<Arc<dyn Policy>>,
    pub(crate) or_error: bool,
    pub(crate) warmups_before: u64,
    /// Whether the call counts among the shapes of the function.
    pub(crate) counted_shape: bool,
}

impl FrameState {
    /// The sizes that the builder asks for: shapes are counted for each combination.
    pub(crate) fn asked_sizes(&self) -> Vec<usize> {
        let sizes = self.symbols.iter().filter(|s| s.asked).map(|s| s.padded);
        // Whole calls and segments of one size are both asked for.
        let batch = [usize::from(self.mode.rank()), self.adapters.unwrap_or(0)];
        sizes.chain(batch.into_iter().filter(|_| self.dispatched)).collect()
    }
}

impl Core {
    /// Tells sizes of one call from those of another.
    pub(crate) fn call_number(&self) -> u64 {
        self.calls
    }

    /// A tensor of the caller's enters the call as it is: its padding, of no elements, is that of this call.
    pub(crate) fn belongs_to_call(&mut self, slot: u32) {
        self.slots[slot as usize].call = self.calls;
    }

    /// Name, real size and size in the call of dimensions padded by `symbol`.
    pub(crate) fn padding_of(&self, symbol: u8) -> Option<(&'static str, usize, usize)> {
        let symbol = self.frame.as_ref()?.symbols.get(usize::from(symbol))?;
        Some((symbol.name, symbol.real, symbol.padded))
    }

    /// The real size of dimensions padded by `symbol`.
    pub(crate) fn real_size(&self, symbol: u8) -> Option<usize> {
        Some(self.frame.as_ref()?.symbols.get(usize::from(symbol))?.real)
    }

    pub(crate) fn symbol_name(&self, symbol: u8) -> String {
        self.frame
            .as_ref()
            .and_then(|f| f.symbols.get(usize::from(symbol)))
            .map_or_else(|| format!("#{symbol}"), |s| s.name.to_owned())
    }

    /// The device-side number of real rows along dimensions padded by `symbol`.
    pub(crate) fn symbol_count(&self, symbol: u8) -> Option<View> {
        let frame = self.frame.as_ref()?;
        frame.symbols.get(usize::from(symbol))?;
        Some(View {
            addr: frame.block.addr() + 16 * (frame.scalars as u64 + u64::from(symbol)),
            dtype: DType::U32,
            layout: Layout::contiguous(&[]).ok()?,
        })
    }

    /// Whether graphs are in play: not in mode `None`, not in a fallback.
    pub(crate) fn graphs(&self) -> bool {
        self.frame.as_ref().is_some_and(|f| f.mode != Mode::None)
    }

    /// Starts a call.
    pub(crate) fn begin_frame(&mut self, frame: FrameState) {
        // A borrow of the pool that was forgotten: the call needs it.
        self.end_scratch();
        self.calls += 1;
        self.occurrences.clear();
        self.call_warm_ups.clear();
        self.lost_inputs = None;
        self.forget_states();
        self.frame = Some(frame);
    }

    /// Gives back the count that a call holds of one of its inputs. Static inputs are void from here on:
    /// the next call writes over them.
    pub(crate) fn end_input(&mut self, raw: &RawTensor) {
        if raw.epoch == self.epoch {
            let slot = &mut self.slots[raw.slot as usize];
            // A copy of one, which an earlier call returned, is its owner's.
            if slot.home == Placement::StaticInput {
                slot.home = Placement::Invalid;
            }
        }
        self.release(raw.slot, raw.epoch);
    }

    /// Leaves the call. Tensors that it left in the pool are void: their memory is the next call's.
    pub(crate) fn end_frame(&mut self) -> Option<(u64, &'static str)> {
        self.calls += 1;
        // Host data that nothing used goes nowhere: its buffers may be freed before the next launch.
        self.pending = None;
        self.lost_inputs = None;
        let mut left = None;
        if !self.pool.is_empty() {
            for slot in &mut self.slots {
                slot.stands_for = None;
                if slot.home == Placement::Pool && slot.refs > 0 {
                    left.get_or_insert((slot.bytes, slot.made_by));
                    slot.home = Placement::Invalid;
                }
            }
            self.pool.reset();
        }
        self.frame = None;
        self.region = None;
        self.phase = super::Phase::Idle;
        left
    }
}
