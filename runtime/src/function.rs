//! A graph object's runtime side: its specification, static inputs, and calls.

use std::{cell::RefCell, fmt, marker::PhantomData, sync::Arc};

use crate::{
    Element, Error, Result, Runtime, Scalar, Step, Tensor,
    backend::{HostBlock, Op, SharedMemory, View},
    bucket::Schedule,
    core::{FrameState, Phase, Symbol},
    driver::Driver,
    event::{CopySlot, FallbackReason},
    inputs::{Dim, DimsSpec, Given, InputKind, InputSpec, Inputs},
    key::{KeyWriter, LiveIn},
    layout::{Layout, Marks},
    mode::{Mode, Support},
    output::{Decoder, Encoder, LiveOut},
    param::{Owned, RetireQueue, next_id},
    plan::{Plan, PlanItem, Site},
    tensor::RawTensor,
    tree::Identity,
};

/// How slots of static inputs are marked.
pub(crate) const STATIC_INPUT: &str = "a static input";

/// What the macro knows of a function.
#[derive(Debug)]
pub struct FunctionSpec {
    /// Its name.
    pub name: &'static str,
    /// Its partition.
    pub plan: &'static Plan,
    /// `#[dims]` symbols.
    pub symbols: &'static [&'static str],
    /// Tensor and scalar parameters, in order.
    pub inputs: Vec<InputSpec>,
}

/// What a builder collects.
#[derive(Clone, Debug)]
pub struct Options {
    mode: Mode,
    schedules: Vec<(&'static str, Schedule)>,
    audit_every: u32,
    or_error: bool,
    max_recordings: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            schedules: Vec::new(),
            audit_every: 0,
            or_error: false,
            max_recordings: 128,
        }
    }
}

impl Options {
    /// Buckets of a symbol.
    pub fn bucket(&mut self, symbol: &'static str, schedule: Schedule) {
        self.schedules.retain(|(s, _)| *s != symbol);
        self.schedules.push((symbol, schedule));
    }

    /// The mode.
    pub fn mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// Compare every `n`-th replay with its body; 0 never.
    pub fn audit_every(&mut self, n: u32) {
        self.audit_every = n;
    }

    /// Errors instead of fallbacks.
    pub fn or_error(&mut self, on: bool) {
        self.or_error = on;
    }

    /// How often one segment may be recorded on one edge of the tree.
    pub fn max_recordings(&mut self, n: usize) {
        self.max_recordings = n;
    }
}

/// The static buffers of one input: capacity in bytes, memory.
type Capacities = Vec<(u64, Arc<Owned>)>;

/// The runtime side of a generated graph object. Dropping it evicts what was recorded with it.
pub struct Function {
    pub(crate) runtime: u64,
    pub(crate) spec: FunctionSpec,
    id: u64,
    options: Options,
    /// One schedule per symbol.
    schedules: Vec<Option<Schedule>>,
    scalars: Vec<usize>,
    block: Arc<Owned>,
    statics: RefCell<Vec<Capacities>>,
    /// The first boundary or host statement that full mode cannot capture.
    not_full: Option<&'static Site>,
    retire: Arc<RetireQueue>,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function")
            .field("name", &self.spec.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        self.retire.push(self.id);
    }
}

impl Function {
    /// Checks the options and allocates the host block.
    ///
    /// # Errors
    /// [`Error::Config`] for buckets of unknown symbols or impossible sizes.
    pub fn new(rt: &mut Runtime, spec: FunctionSpec, options: Options) -> Result<Self> {
        for (symbol, schedule) in &options.schedules {
            if !spec.symbols.contains(symbol) {
                let known = if spec.symbols.is_empty() { "none".to_owned() } else { spec.symbols.join(", ") };
                return Err(Error::Config {
                    what: format!("buckets of `{symbol}`"),
                    why: format!("`{}` has no such `#[dims]` symbol; it has {known}", spec.name),
                });
            }
            schedule.check(symbol)?;
        }
        if options.max_recordings == 0 {
            return Err(Error::Config {
                what: "max_recordings".into(),
                why: "0 would never record; use `Mode::None` for that".into(),
            });
        }
        let schedules = spec
            .symbols
            .iter()
            .map(|s| options.schedules.iter().find(|(n, _)| n == s).map(|(_, schedule)| schedule.clone()))
            .collect();
        let scalars: Vec<usize> =
            (0..spec.inputs.len()).filter(|&i| spec.inputs[i].kind == InputKind::HostScalar).collect();
        let block = rt.allocate_owned(16 * (scalars.len() + spec.symbols.len()) as u64, None)?;
        let not_full = spec.plan.host_statement.or_else(|| {
            spec.plan.items.iter().find_map(|item| match item {
                PlanItem::Boundary { site, support: Support::Never, .. } => Some(*site),
                // What the inner function's boundaries support is not known here.
                PlanItem::Piecewise { site, .. } => Some(*site),
                _ => None,
            })
        });
        Ok(Self {
            runtime: rt.id(),
            id: next_id(),
            statics: RefCell::new(spec.inputs.iter().map(|_| Vec::new()).collect()),
            retire: Arc::clone(&rt.retire),
            spec,
            options,
            schedules,
            scalars,
            block,
            not_full,
        })
    }

    /// Starts to collect the inputs of a call.
    ///
    /// # Errors
    /// [`Error::DifferentRuntimes`], [`Error::NestedCall`].
    pub fn inputs<'s>(&self, step: &Step<'s>) -> Result<Inputs<'s, '_>> {
        Inputs::new(step, self)
    }

    /// The static buffer of an input for `bytes` bytes: one per capacity, kept.
    fn static_memory(&self, rt: &Runtime, i: usize, bytes: u64) -> Result<Arc<Owned>> {
        let mut statics = self.statics.borrow_mut();
        let fitting = statics[i].iter().filter(|(cap, _)| *cap >= bytes).min_by_key(|(cap, _)| *cap);
        if let Some((_, owned)) = fitting {
            return Ok(Arc::clone(owned));
        }
        let largest: usize = match self.spec.inputs[i].dims {
            DimsSpec::Some(dims) => dims
                .iter()
                .map(|d| match *d {
                    Dim::Const(n) => Some(n),
                    Dim::Symbol(s) => self.schedules[s].as_ref().map(Schedule::largest),
                })
                .product::<Option<usize>>()
                .unwrap_or(0),
            DimsSpec::Unspecified => 0,
        };
        let planned = (largest * self.spec.inputs[i].dtype.size()) as u64;
        let capacity = if planned >= bytes { planned } else { bytes.next_power_of_two() };
        let owned = rt.allocate_owned(capacity, None)?;
        statics[i].push((capacity, Arc::clone(&owned)));
        Ok(owned)
    }

    /// Runs `call` for every combination of bucket sizes, largest first, until nothing new is recorded.
    /// State that the calls write is put back at the end.
    ///
    /// # Errors
    /// [`Error::Config`] when the function has inputs whose size is not known from buckets; what the
    /// calls say.
    pub fn capture_all(
        &self,
        rt: &mut Runtime,
        mut call: impl FnMut(&Step<'_>, &Synthetic<'_>) -> Result<()>,
        mut progress: impl FnMut(CaptureProgress<'_>),
    ) -> Result<()> {
        if self.options.mode == Mode::None {
            return Ok(());
        }
        let combinations = self.combinations()?;
        let total = combinations.len();
        rt.core.get_mut().begin_saving();
        let mut outcome = Ok(());
        'all: for (done, sizes) in combinations.iter().enumerate() {
            progress(CaptureProgress { done, total, sizes, symbols: self.spec.symbols });
            let synthetic = Synthetic { function: self, sizes };
            // Warm up, record, and once more when results were placed better meanwhile.
            for _pass in 0..4 {
                let before = rt.stats();
                outcome = rt.step().and_then(|step| call(&step, &synthetic));
                if outcome.is_err() {
                    break 'all;
                }
                let after = rt.stats();
                if (after.warmups, after.recordings) == (before.warmups, before.recordings) {
                    break;
                }
            }
        }
        let restored = rt.core.get_mut().end_saving();
        outcome.and(restored)?;
        progress(CaptureProgress { done: total, total, sizes: &[], symbols: self.spec.symbols });
        rt.synchronize()
    }

    fn combinations(&self) -> Result<Vec<Vec<usize>>> {
        let mut all: Vec<Vec<usize>> = vec![Vec::new()];
        for (symbol, schedule) in self.spec.symbols.iter().zip(&self.schedules) {
            let Some(schedule) = schedule else {
                return Err(Error::Config {
                    what: format!("`{}`", self.spec.name),
                    why: format!(
                        "`capture_all` needs sizes of {symbol}: `.bucket(\"{symbol}\", Schedule::default())`"
                    ),
                });
            };
            all = schedule
                .sizes()
                .iter()
                .flat_map(|&size| {
                    all.iter().map(move |rest| {
                        let mut one = rest.clone();
                        one.push(size);
                        one
                    })
                })
                .collect();
        }
        all.sort_by_key(|sizes| std::cmp::Reverse(sizes.iter().product::<usize>()));
        Ok(all)
    }
}

/// How far `capture_all` is.
#[derive(Clone, Copy, Debug)]
pub struct CaptureProgress<'a> {
    /// Combinations of sizes that are captured.
    pub done: usize,
    /// All of them.
    pub total: usize,
    /// The sizes now at work, one per symbol; empty at the end.
    pub sizes: &'a [usize],
    /// Names of the symbols.
    pub symbols: &'static [&'static str],
}

/// Inputs of zeros, for `capture_all`.
#[derive(Debug)]
pub struct Synthetic<'f> {
    function: &'f Function,
    sizes: &'f [usize],
}

impl Synthetic<'_> {
    fn shape(&self, i: usize) -> Result<Vec<usize>> {
        let spec = &self.function.spec.inputs[i];
        let DimsSpec::Some(dims) = spec.dims else {
            return Err(Error::Config {
                what: format!("input `{}` of `{}`", spec.name, self.function.spec.name),
                why: "`capture_all` needs its shape: give it `#[dims(...)]`".into(),
            });
        };
        Ok(dims
            .iter()
            .map(|d| match *d {
                Dim::Const(n) => n,
                Dim::Symbol(s) => self.sizes[s],
            })
            .collect())
    }

    /// Zeros for a `#[host]` tensor, with their shape.
    ///
    /// # Errors
    /// [`Error::Config`] without `#[dims]`.
    pub fn host<T: Element>(&self, i: usize) -> Result<SyntheticSlice<T>> {
        let shape = self.shape(i)?;
        Ok(SyntheticSlice { data: vec![T::from_f64(0.0); shape.iter().product()], shape })
    }

    /// Zero, for a `#[host]` scalar.
    pub fn scalar<T: Element>(&self, _i: usize) -> T {
        T::from_f64(0.0)
    }

    /// Zeros for a device tensor.
    ///
    /// # Errors
    /// [`Error::Config`] without `#[dims]`.
    pub fn device<'s, T: Element>(&self, step: &Step<'s>, i: usize) -> Result<Tensor<'s, T>> {
        let shape = self.shape(i)?;
        step.tensor(&shape, &vec![T::from_f64(0.0); shape.iter().product()])
    }
}

/// Owned zeros with a shape.
#[derive(Debug)]
pub struct SyntheticSlice<T> {
    data: Vec<T>,
    shape: Vec<usize>,
}

impl<'a, T> From<&'a SyntheticSlice<T>> for crate::HostSlice<'a, T> {
    fn from(s: &'a SyntheticSlice<T>) -> Self {
        Self { data: &s.data, shape: Some(&s.shape) }
    }
}

/// The static buffers of one input: memory that keeps its address from call to call.
pub struct StaticInput<T> {
    index: usize,
    _type: PhantomData<fn() -> T>,
}

impl<T: Element> StaticInput<T> {
    /// The buffers of input `index`.
    pub fn new(_function: &Function, index: usize) -> Self {
        Self { index, _type: PhantomData }
    }

    /// Index among the tensor and scalar inputs of the function.
    pub fn index(&self) -> usize {
        self.index
    }
}

impl<T> fmt::Debug for StaticInput<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticInput").field("index", &self.index).finish()
    }
}

/// A running call. Dropping it ends the call.
pub struct Frame<'s> {
    rt: &'s Runtime,
    name: &'static str,
    function: u64,
    plan: &'static Plan,
    inputs: Vec<Option<RawTensor>>,
    full_key: Option<KeyWriter>,
}

impl fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame").field("function", &self.name).finish_non_exhaustive()
    }
}

impl<'s> Frame<'s> {
    pub(crate) fn enter(inputs: Inputs<'s, '_>, block: &[u8], key: &dyn LiveIn) -> Result<Self> {
        let Inputs { step: rt, function, given, sizes, .. } = inputs;
        let name = function.spec.name;
        let mut mode = function.options.mode;
        let fall_back = |reason: FallbackReason| {
            if function.options.or_error {
                return Err(Error::FallbackForbidden { function: name, reason });
            }
            rt.core.borrow_mut().log.fell_back(name, reason);
            Ok(())
        };
        if mode == Mode::Full
            && let Some(site) = function.not_full
        {
            fall_back(FallbackReason::FullNotSupported {
                boundary: format!("{}:{}", site.file, site.first_line),
            })?;
            mode = Mode::Piecewise;
        }
        let mut symbols = Vec::with_capacity(sizes.len());
        for (index, size) in sizes.iter().enumerate() {
            let (real, input) = size.unwrap_or((0, ""));
            let symbol = function.spec.symbols[index];
            let mut padded = real;
            let mut bucketed = false;
            if let (Some(schedule), true) = (&function.schedules[index], mode != Mode::None) {
                if real == 0 {
                    return Err(Error::Input {
                        function: name,
                        input,
                        why: format!("{symbol} is 0; there is nothing to do"),
                    });
                }
                match schedule.round_up(real) {
                    // A bucket of 1 is never padded, and a mark on a dimension of size 1 could not be
                    // told from its neighbours by `reshape`.
                    Some(size) => (padded, bucketed) = (size, size > 1),
                    None => {
                        fall_back(FallbackReason::OverLargestBucket {
                            symbol,
                            size: real,
                            largest: schedule.largest(),
                        })?;
                        mode = Mode::None;
                    }
                }
            }
            symbols.push(Symbol { name: symbol, real, padded, bucketed });
        }
        if mode == Mode::None {
            // A fallback found at a later symbol takes the padding of the earlier ones back.
            for s in &mut symbols {
                (s.padded, s.bucketed) = (s.real, false);
            }
        }
        let mut frame = Self {
            rt,
            name,
            function: function.id,
            plan: function.spec.plan,
            inputs: Vec::new(),
            full_key: None,
        };
        {
            let mut core = rt.core.borrow_mut();
            core.flush()?;
            let warmups_before = core.log.stats.warmups;
            core.frame = Some(FrameState {
                name,
                mode,
                symbols: symbols.clone(),
                block: SharedMemory::clone(&function.block.memory),
                block_id: function.block.id,
                scalars: function.scalars.len(),
                audit_every: function.options.audit_every,
                max_recordings: function.options.max_recordings,
                or_error: function.options.or_error,
                warmups_before,
            });
            core.tree.enter(function.id);
        }
        // From here on, dropping `frame` ends the call.
        frame.bind(function, &given, &symbols, block)?;
        if mode == Mode::Full {
            let mut writer = rt.take_writer();
            writer.collect = true;
            for raw in frame.inputs.iter().flatten() {
                writer.tensor(raw);
            }
            key.write_key(&mut writer);
            frame.full_key = Some(writer);
        }
        rt.core.borrow_mut().phase = Phase::Driver;
        Ok(frame)
    }

    /// Gives every input its memory, and gets the host data under way.
    fn bind(&mut self, function: &Function, given: &[Given], symbols: &[Symbol], block: &[u8]) -> Result<()> {
        let rt = self.rt;
        let mut host = HostBlock::default();
        let mut put = |addr: u64, bytes: &[u8], padded: usize| {
            let at = host.bytes.len();
            host.bytes.extend_from_slice(bytes);
            host.bytes.resize(at + padded.max(bytes.len()), 0);
            let len = host.bytes.len() - at;
            if len > 0 {
                host.writes.push((addr, at, len));
            }
        };
        put(function.block.memory.addr(), block, 0);
        let mut pads: Vec<(View, View)> = Vec::new();
        for (i, given) in given.iter().enumerate() {
            let spec = &function.spec.inputs[i];
            let padded_shape = |shape: &[usize]| -> (Vec<usize>, Marks) {
                let mut marks = Marks::NONE;
                let mut padded = shape.to_vec();
                if let DimsSpec::Some(dims) = spec.dims {
                    for (axis, dim) in dims.iter().enumerate() {
                        if let Dim::Symbol(s) = *dim {
                            padded[axis] = symbols[s].padded;
                            if symbols[s].bucketed {
                                marks = marks.with(axis, Some(s as u8));
                            }
                        }
                    }
                }
                (padded, marks)
            };
            let raw = match given {
                Given::Missing => None,
                Given::Scalar => {
                    let slot = function.scalars.iter().position(|&s| s == i).unwrap_or(0) as u64;
                    let layout = Layout::contiguous(&[])?;
                    let mut raw = rt.adopt_static(&function.block, spec.dtype, layout, Marks::NONE);
                    raw.addr += 16 * slot;
                    Some(raw)
                }
                Given::Host { bytes, shape, .. } => {
                    let shape = shape.clone().unwrap_or_default();
                    let (padded, marks) = padded_shape(&shape);
                    let layout = Layout::contiguous(&padded)?;
                    let size = (layout.count() * spec.dtype.size()) as u64;
                    let owned = function.static_memory(rt, i, size)?;
                    if padded.len() > 1 && padded[1..] != shape[1..] {
                        put(
                            owned.memory.addr(),
                            &pad_rows(bytes, spec.dtype.size(), &shape, &padded),
                            size as usize,
                        );
                    } else {
                        put(owned.memory.addr(), bytes, size as usize);
                    }
                    Some(rt.adopt_static(&owned, spec.dtype, layout, marks))
                }
                Given::Device(raw) => {
                    let (padded, marks) = padded_shape(raw.layout.shape());
                    if marks.any() {
                        let layout = Layout::contiguous(&padded)?;
                        let size = (layout.count() * spec.dtype.size()) as u64;
                        let owned = function.static_memory(rt, i, size)?;
                        let input = rt.adopt_static(&owned, spec.dtype, layout, marks);
                        pads.push((raw.view(), input.view()));
                        Some(input)
                    } else {
                        rt.retain(raw.slot, raw.epoch);
                        Some(*raw)
                    }
                }
            };
            self.inputs.push(raw);
        }
        let mut core = rt.core.borrow_mut();
        core.pending = (!host.writes.is_empty()).then_some(host);
        for (from, to) in pads {
            core.launch_now(Op::Pad, &[from], &[to])?;
            let (_, end) = to.range();
            core.log.copied(CopySlot::Input, end - to.addr);
        }
        Ok(())
    }

    fn input(&self, i: usize) -> Result<RawTensor> {
        self.inputs.get(i).copied().flatten().ok_or_else(|| Error::Config {
            what: format!("`{}`", self.name),
            why: format!("input {i} was not given; this is a bug of generated code"),
        })
    }

    /// An input as the body sees it.
    ///
    /// # Errors
    /// When the input was not given: a bug of generated code.
    pub fn tensor<T: Element>(&self, i: usize, buffer: &StaticInput<T>) -> Result<Tensor<'s, T>> {
        debug_assert_eq!(buffer.index, i);
        let raw = self.input(i)?;
        self.rt.retain(raw.slot, raw.epoch);
        Ok(Tensor::from_raw(self.rt, raw))
    }

    /// A host scalar as the body sees it.
    ///
    /// # Errors
    /// As [`tensor`](Self::tensor).
    pub fn host_scalar<T: Element>(&self, i: usize, buffer: &StaticInput<T>) -> Result<Scalar<'s, T>> {
        self.tensor(i, buffer).and_then(Scalar::from_tensor)
    }

    /// Runs the driver, in the call's mode.
    ///
    /// # Errors
    /// The driver's; those of the runtime, converted.
    pub fn run<O, E, F>(mut self, driver: F) -> Result<O, E>
    where
        O: LiveOut<'s>,
        E: From<Error>,
        F: FnOnce(Driver<'s>) -> Result<O, E>,
    {
        let rt = self.rt;
        let cx = Driver { rt };
        let full_key = self.full_key.take();
        rt.graphs.set(rt.core.borrow().graphs());
        let out = match full_key {
            None => driver(cx)?,
            Some(key) => {
                let site = self.plan.items.first().map_or(&NO_SITE, PlanItem::site);
                let out = rt.run_segment(
                    site,
                    Identity::Full(self.function),
                    |k| key.copy_to(k),
                    || {
                        rt.core.borrow_mut().phase = Phase::Driver;
                        driver(cx)
                    },
                );
                rt.put_writer(key);
                out?
            }
        };
        let mut encoder = Encoder::default();
        out.encode(&mut encoder);
        let finished = rt.core.borrow_mut().finish_outputs(&encoder.entries)?;
        let out = match finished {
            Some(entries) => {
                let moved = O::decode(&mut Decoder::new(rt, entries));
                // What was moved out of the pool leaves it here: whatever is left after that was leaked.
                drop(out);
                moved
            }
            None => out,
        };
        match self.end() {
            None => Ok(out),
            Some((bytes, op)) => {
                Err(Error::UnownedAllocation { segment: format!("`{}`", self.name), op, bytes }.into())
            }
        }
    }

    /// Ends the call; tells what was left in the pool.
    fn end(&mut self) -> Option<(u64, &'static str)> {
        for raw in self.inputs.drain(..).flatten() {
            self.rt.release(raw.slot, raw.epoch);
        }
        self.rt.graphs.set(false);
        self.rt.core.borrow_mut().end_frame()
    }
}

/// A function without any part, such as one that returns its input.
static NO_SITE: Site = Site { function: "", index: 0, file: "", first_line: 0, last_line: 0 };

impl Drop for Frame<'_> {
    fn drop(&mut self) {
        if self.rt.core.borrow().frame.is_some() {
            self.end();
        }
    }
}

/// Host rows spread out to a larger inner shape, zeros between.
fn pad_rows(bytes: &[u8], element: usize, shape: &[usize], padded: &[usize]) -> Vec<u8> {
    let mut out = vec![0; padded.iter().product::<usize>() * element];
    let row = shape[shape.len() - 1] * element;
    if row == 0 {
        return out;
    }
    let layout = Layout::contiguous(padded).unwrap_or_else(|_| unreachable!("checked by the caller"));
    let mut index = vec![0; shape.len()];
    for chunk in bytes.chunks_exact(row) {
        let at = layout.offset_of(&index) * element;
        out[at..at + row].copy_from_slice(chunk);
        for axis in (0..shape.len() - 1).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    out
}
