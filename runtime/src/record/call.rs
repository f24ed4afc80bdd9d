//! The running call: its arguments, what host code may currently do, and what is known about calls of its
//! function.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{exec_reuse::CallOrdinals, waits::CallWarmUps};
use crate::{
    DType, Error, Limits, Numerics, Passes, Policy, Result,
    backend::{SharedMemory, View},
    base::{mode::Mode, plan::Site, reason::FallbackReason},
    memory::RegionKey,
    value::{
        dim::{DimKind, RawDim},
        key::{KeyOperand, KeyWriter},
        layout::{Layout, PaddedDims},
        owned::OwnerId,
        raw::RawTensor,
    },
};

/// One `#[dims]` symbol in the running call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol {
    pub(crate) name: &'static str,
    /// Size of the inputs.
    pub(crate) real: usize,
    /// Size in the call; larger when padded.
    pub(crate) padded: usize,
    /// Set if the symbol has buckets. Its dimensions are then marked as padded in every mode, even if the
    /// size fits exactly, so that all modes and sizes reject the same operations.
    pub(crate) bucketed: bool,
    /// Set if the builder specifies this size, by buckets or by a list.
    pub(crate) asked: bool,
}

/// The running call as its graph object describes it.
#[derive(Debug)]
pub(crate) struct ActiveCall {
    pub(crate) name: &'static str,
    /// The graph object.
    pub(crate) graph: OwnerId,
    pub(crate) mode: Mode,
    pub(crate) symbols: Vec<Symbol>,
    /// Set if the call was distinguished from others by its batch.
    pub(crate) dispatched: bool,
    /// The count of adapters that recordings of this call are for, where it makes a difference.
    pub(crate) adapters: Option<usize>,
    /// The switches of the numerics.
    pub(crate) numerics: Numerics,
    /// The passes over new recordings.
    pub(crate) passes: Passes,
    /// The static host block; the counts of the symbols follow `scalars` slots.
    pub(crate) block: SharedMemory,
    pub(crate) block_id: OwnerId,
    pub(crate) scalars: usize,
    pub(crate) audit_every: u32,
    pub(crate) limits: Limits,
    pub(crate) policy: Option<Arc<dyn Policy>>,
    pub(crate) deny_fallback: bool,
    /// Set if segments with conditional nodes may run without a graph where the device has none.
    pub(crate) eager_conditionals: bool,
    pub(crate) warmups_before: u64,
    /// Set if the call counts among the shapes of the function.
    pub(crate) counted_shape: bool,
}

impl ActiveCall {
    /// The sizes that the builder asks for: shapes are counted for each combination.
    fn asked_sizes(&self) -> Vec<usize> {
        let sizes = self.symbols.iter().filter(|s| s.asked).map(|s| s.padded);
        // Whole calls and segments of one size are both asked for.
        let batch = [usize::from(self.mode.rank()), self.adapters.unwrap_or(0)];
        sizes.chain(batch.into_iter().filter(|_| self.dispatched)).collect()
    }
}

/// The actions that host code may currently take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Between calls: everything.
    Idle,
    /// Between segments: no device operations.
    HostCode,
    /// In an eager region: everything, unless a recording of the whole call captures the region.
    Eager { captured: bool },
    /// In a segment: operations, no capabilities.
    Segment(&'static Site),
}

/// The number of distinct shapes with which a graph object was called, including this call's, and whether
/// this call's shape is new to the segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShapeCount {
    pub(crate) shapes: usize,
    pub(crate) is_new: bool,
}

/// The distinct shapes that one graph object was called with.
#[derive(Debug, Default)]
struct Shapes {
    /// The number of shapes for each combination of the sizes that were specified.
    met: FxHashMap<Vec<usize>, usize>,
    warned: bool,
}

/// Observations from earlier calls of graph objects, by their ids.
#[derive(Debug, Default)]
pub(crate) struct CallHistory {
    shapes: FxHashMap<OwnerId, Shapes>,
    /// The region that passes a value to host code, so that the whole call cannot be a graph.
    host_values: FxHashMap<OwnerId, &'static Site>,
}

impl CallHistory {
    /// Returns whether anything is known about a graph object.
    pub(crate) fn knows(&self, graph: OwnerId) -> bool {
        self.shapes.contains_key(&graph) || self.host_values.contains_key(&graph)
    }

    /// Forgets a graph object that was dropped.
    pub(crate) fn forget(&mut self, graph: OwnerId) {
        self.shapes.remove(&graph);
        self.host_values.remove(&graph);
    }

    /// A region of a call that is captured as a whole gives host code a value: the graph would hold the value of that call
    /// indefinitely, so later calls are captured piece by piece.
    pub(crate) fn add_host_value(&mut self, graph: OwnerId, site: &'static Site) {
        self.host_values.entry(graph).or_insert(site);
    }

    /// Returns the number of graph objects whose shapes are counted, and of those with a region that was
    /// observed to pass a value to host code.
    pub(crate) fn lens(&self) -> (usize, usize) {
        (self.shapes.len(), self.host_values.len())
    }
}

/// The running call, and observations from earlier ones.
#[derive(Debug)]
pub(crate) struct CallState {
    active: Option<ActiveCall>,
    phase: Phase,
    /// The number of conditional nodes that are open.
    bodies: u32,
    warm_ups: CallWarmUps,
    ordinals: CallOrdinals,
    history: CallHistory,
}

impl Default for CallState {
    fn default() -> Self {
        Self {
            active: None,
            phase: Phase::Idle,
            bodies: 0,
            warm_ups: CallWarmUps::default(),
            ordinals: CallOrdinals::default(),
            history: CallHistory::default(),
        }
    }
}

impl CallState {
    /// A step begins: a call that was forgotten is over.
    pub(crate) fn begin_step(&mut self) {
        self.phase = Phase::Idle;
        self.bodies = 0;
        self.active = None;
    }

    pub(crate) fn begin(&mut self, call: ActiveCall) {
        self.ordinals.clear();
        self.warm_ups.clear();
        self.active = Some(call);
    }

    pub(crate) fn end(&mut self) {
        self.active = None;
        self.phase = Phase::Idle;
    }

    pub(crate) fn active(&self) -> Option<&ActiveCall> {
        self.active.as_ref()
    }

    #[inline]
    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// Host code runs, between segments.
    pub(crate) fn enter_host_code(&mut self) {
        self.phase = Phase::HostCode;
    }

    /// A segment's body runs. Returns the phase to [go back to](Self::restore).
    pub(crate) fn enter_segment(&mut self, site: &'static Site) -> Phase {
        std::mem::replace(&mut self.phase, Phase::Segment(site))
    }

    pub(crate) fn restore(&mut self, phase: Phase) {
        self.phase = phase;
    }

    /// An eager region runs; `captured` if it is part of a recording of the whole call. Returns the graph object of that
    /// call then.
    pub(crate) fn enter_region(&mut self, captured: bool) -> Option<OwnerId> {
        self.phase = Phase::Eager { captured };
        self.active.as_ref().filter(|_| captured).map(|call| call.graph)
    }

    pub(crate) fn leave_region(&mut self) {
        if matches!(self.phase, Phase::Eager { .. }) {
            self.phase = Phase::HostCode;
        }
    }

    /// The code of a conditional node's bodies runs.
    pub(super) fn enter_body(&mut self) {
        self.bodies += 1;
    }

    pub(super) fn leave_body(&mut self) {
        self.bodies -= 1;
    }

    /// Refuses what a body cannot do: its code only describes it, and runs whether or not the body does.
    ///
    /// # Errors
    /// Returns [`Error::InsideBody`].
    pub(crate) fn outside_body(&self, call: &'static str) -> Result<()> {
        if self.bodies > 0 { Err(Error::InsideBody { call }) } else { Ok(()) }
    }

    pub(crate) fn warm_ups_mut(&mut self) -> &mut CallWarmUps {
        &mut self.warm_ups
    }

    #[inline]
    pub(crate) fn ordinals_mut(&mut self) -> &mut CallOrdinals {
        &mut self.ordinals
    }

    pub(crate) fn ordinals(&self) -> &CallOrdinals {
        &self.ordinals
    }

    pub(crate) fn history(&self) -> &CallHistory {
        &self.history
    }

    pub(crate) fn history_mut(&mut self) -> &mut CallHistory {
        &mut self.history
    }

    /// The name of the function, for messages.
    pub(crate) fn function_name(&self) -> &'static str {
        self.active.as_ref().map_or("?", |call| call.name)
    }

    /// Refuses operations where nothing would record or order them.
    ///
    /// # Errors
    /// Returns [`Error::OutsideSegment`].
    pub(crate) fn may_operate(&self, op: &'static str) -> Result<()> {
        match self.phase {
            Phase::HostCode => Err(Error::OutsideSegment { op, function: self.function_name() }),
            _ => Ok(()),
        }
    }

    /// Refuses an operation that no capture may hold where there is one, or would be in another mode.
    ///
    /// # Errors
    /// [`Error::NotCapturable`].
    pub(crate) fn may_not_capture(&self, op: &'static str) -> Result<()> {
        let segment = match self.phase {
            Phase::Segment(site) => site.to_string(),
            Phase::Eager { captured: true } => "a region that full mode captures".into(),
            Phase::Idle | Phase::HostCode | Phase::Eager { captured: false } => return Ok(()),
        };
        Err(Error::NotCapturable { op, segment })
    }

    /// Refuses capabilities inside a segment, in every mode.
    ///
    /// # Errors
    /// Returns [`Error::CapabilityInSegment`], [`Error::OutsideSegment`].
    pub(crate) fn may_look(&self, call: &'static str) -> Result<()> {
        match self.phase {
            Phase::Segment(site) => Err(Error::CapabilityInSegment { call, segment: site.to_string() }),
            Phase::HostCode => Err(Error::OutsideSegment { op: call, function: self.function_name() }),
            Phase::Eager { captured: true } => {
                Err(Error::CapabilityInSegment { call, segment: "a region that full mode captures".into() })
            }
            Phase::Idle | Phase::Eager { captured: false } => self.outside_body(call),
        }
    }

    /// Returns whether graphs are in use: not in mode `None`, and not in a fallback.
    pub(crate) fn graphs(&self) -> bool {
        self.active.as_ref().is_some_and(|call| call.mode != Mode::None)
    }

    /// Returns whether something was warmed up in this call; `warm_ups` is the total number of warm-ups.
    pub(crate) fn has_warmed_up(&self, warm_ups: u64) -> bool {
        self.active.as_ref().is_some_and(|call| call.warmups_before != warm_ups)
    }

    /// Returns whether the next replay of a recording that ran `hits` times is to be compared with its body.
    #[inline]
    pub(crate) fn audit_is_due(&self, hits: u64) -> bool {
        let every = self.active.as_ref().map_or(0, |call| call.audit_every);
        every > 0 && (hits + 1).is_multiple_of(u64::from(every))
    }

    /// Returns the switches of the numerics of the active call.
    pub(super) fn numerics(&self) -> Numerics {
        self.numerics_or(Numerics::default())
    }

    /// Returns the switches of the numerics of the active call, or those outside of calls.
    pub(crate) fn numerics_or(&self, outside: Numerics) -> Numerics {
        self.active.as_ref().map_or(outside, |call| call.numerics)
    }

    /// Returns the passes over recordings that the active call makes.
    pub(super) fn passes(&self) -> Passes {
        self.active.as_ref().map(|call| call.passes.clone()).unwrap_or_default()
    }

    /// Adds what a key must contain besides the live-ins: the memory of the counts of padded dimensions, the
    /// properties of the batch that distinguish recordings, the switches of the numerics, and the passes.
    pub(crate) fn write_key(&self, key: &mut KeyWriter) {
        let Some(call) = &self.active else { return };
        if key.has_padding() {
            key.operands.push(KeyOperand { owner: Some(call.block_id), addr: call.block.addr() });
        }
        if let Some(adapters) = call.adapters {
            key.word(adapters as u64);
        }
        if let Some(numerics) = call.numerics.key_word() {
            key.word(numerics);
        }
        call.passes.write_key(key);
    }

    /// Returns the key of a region's profile, if graphs are in use.
    pub(super) fn region_key(&self, number: u64) -> Option<RegionKey> {
        let call = self.active.as_ref().filter(|call| call.mode != Mode::None)?;
        Some(RegionKey { graph: call.graph, sizes: call.asked_sizes(), call: number })
    }
}

/// Padding: the real sizes of dimensions with bucketed symbols.
impl CallState {
    fn symbol(&self, symbol: u8) -> Option<&Symbol> {
        self.active.as_ref()?.symbols.get(usize::from(symbol))
    }

    /// Name, real size and size in the call of dimensions padded by `symbol`.
    pub(crate) fn padding_of(&self, symbol: u8) -> Option<(&'static str, usize, usize)> {
        self.symbol(symbol).map(|s| (s.name, s.real, s.padded))
    }

    /// The real size of dimensions padded by `symbol`.
    pub(crate) fn real_size(&self, symbol: u8) -> Option<usize> {
        self.symbol(symbol).map(|s| s.real)
    }

    pub(crate) fn symbol_name(&self, symbol: u8) -> String {
        self.symbol(symbol).map_or_else(|| format!("#{symbol}"), |s| s.name.to_owned())
    }

    /// The device-side number of real rows along dimensions padded by `symbol`.
    pub(crate) fn symbol_count(&self, symbol: u8) -> Option<View> {
        let call = self.active.as_ref()?;
        call.symbols.get(usize::from(symbol))?;
        Some(View {
            addr: call.block.addr() + 16 * (call.scalars as u64 + u64::from(symbol)),
            dtype: DType::U32,
            layout: Layout::contiguous(&[]).ok()?,
        })
    }

    /// A layout without its padding.
    pub(crate) fn real_layout(&self, layout: Layout, marks: PaddedDims) -> Layout {
        (0..layout.rank()).fold(layout, |real, axis| {
            match marks.get(axis).and_then(|symbol| self.real_size(symbol)) {
                Some(size) => real.with_dim(axis, size.min(layout.shape()[axis])),
                None => real,
            }
        })
    }

    /// A size without its padding.
    ///
    /// # Errors
    /// Returns [`Error::PaddedSize`] for a size computed from a padded one: its real value is not known where
    /// it was computed, and outside the call it would never be a number.
    pub(crate) fn unpadded_size(&self, dim: RawDim) -> Result<RawDim> {
        match dim.kind {
            DimKind::Padded(symbol) => Ok(RawDim::number(self.real_size(symbol).unwrap_or(dim.size))),
            DimKind::Computed(symbol) if self.active.is_some() => {
                let symbol = self.padding_of(symbol).map_or("?", |(name, ..)| name).to_owned();
                Err(Error::PaddedSize { op: "a computed size that leaves", symbol, at: None })
            }
            _ => Ok(dim),
        }
    }

    /// The tensor without its padding: padded dimensions are narrowed to their real size.
    pub(crate) fn unpadded(&self, mut raw: RawTensor) -> RawTensor {
        if self.active.is_some() {
            raw.layout = self.real_layout(raw.layout, raw.marks);
            raw.marks = PaddedDims::NONE;
        }
        raw
    }
}

/// Limits, fallbacks, and observations from earlier calls.
impl CallState {
    /// Refuses a fallback where the builder forbids it, and the program did not ask for it.
    ///
    /// # Errors
    /// Returns [`Error::FallbackForbidden`].
    pub(crate) fn may_fall_back(&self, reason: &FallbackReason) -> Result<()> {
        match &self.active {
            Some(call) if call.deny_fallback && !reason.is_wanted() => {
                Err(Error::FallbackForbidden { function: call.name, reason: reason.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Counts the distinct shapes with which the function was called; `is_new` states that this call's is new
    /// to the segment.
    pub(crate) fn count_shapes(&self, is_new: bool) -> ShapeCount {
        let Some(call) = &self.active else { return ShapeCount { shapes: 0, is_new } };
        let shapes = self.history.shapes.get(&call.graph);
        let met = shapes.and_then(|s| s.met.get(&call.asked_sizes())).copied().unwrap_or(0);
        // One call counts once, however many segments use its shape.
        ShapeCount { shapes: met + usize::from(is_new && !call.counted_shape), is_new }
    }

    /// Counts the call among the shapes of its function, whose number is now `shapes`. Returns the function's
    /// name if that is the number at which a warning is due.
    pub(crate) fn add_shape(&mut self, shapes: usize) -> Option<&'static str> {
        let call = self.active.as_mut().filter(|call| !call.counted_shape)?;
        call.counted_shape = true;
        let all = self.history.shapes.entry(call.graph).or_default();
        all.met.insert(call.asked_sizes(), shapes);
        if shapes == call.limits.warn_shapes && !all.warned {
            all.warned = true;
            return Some(call.name);
        }
        None
    }

    /// Returns the region of the graph object that passes a value to host code.
    pub(crate) fn host_value(&self, graph: OwnerId) -> Option<&'static Site> {
        self.history.host_values.get(&graph).copied()
    }
}
