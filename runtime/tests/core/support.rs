//! What the macro would generate, as plain functions; and a short form of the events.

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, LazyLock},
};

pub(crate) use graphable::__private::{Dim, Piecewise};
use graphable::{
    __private::{
        DimsSpec, FunctionSpec, GraphObject, InputKind, InputSpec, Inputs, LiveIn, LiveOut, Options, Plan,
        PlanItem, Site, Support, Synthetic, capture_all,
    },
    CaptureProgress, DType, Eager, Error, Event, HostSlice, Mode, Result, Runtime, Scalar, Step, Tensor,
    backend::{
        cpu::CpuOptions,
        faulty::{FaultPlan, FaultyBackend},
    },
    ops,
};

pub(crate) type T<'s> = Tensor<'s, f32>;

pub(crate) fn options() -> CpuOptions {
    CpuOptions::default().test_mode(1).threads(1)
}

/// The reason of an error that a fault plan injects.
pub(crate) const INJECTED: &str = "the test said so";

/// Returns whether an error is one that a fault plan injected, exactly as the backend returned it.
pub(crate) fn injected(error: &Error) -> bool {
    matches!(error, Error::Device { device, reason, .. } if device == "faulty" && reason == INJECTED)
}

/// A runtime that is looked at when its test is over: after a reset nothing is alive, and nothing recorded.
#[derive(Debug)]
pub(crate) struct Checked(Runtime);

impl Checked {
    pub(crate) fn new(rt: Runtime) -> Self {
        rt.keep_events(true);
        Self(rt)
    }

    fn check(&mut self) -> Result<()> {
        self.0.reset()?;
        let memory = self.0.memory();
        assert_eq!((self.0.stats().live_recordings, memory.recordings.len()), (0, 0));
        for arena in [memory.pool, memory.results, memory.eager] {
            assert_eq!(arena.live_bytes, 0, "{memory:?}");
        }
        self.0.check_memory()
    }
}

impl Deref for Checked {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        &self.0
    }
}

impl DerefMut for Checked {
    fn deref_mut(&mut self) -> &mut Runtime {
        &mut self.0
    }
}

impl Drop for Checked {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        // What no earlier call could report is reported here, once.
        match self.check().or_else(|_| self.check()) {
            Ok(()) | Err(Error::ContextLost { .. }) => {}
            Err(error) => panic!("after the test: {error}"),
        }
    }
}

pub(crate) fn runtime() -> Checked {
    Checked::new(Runtime::new(crate::device::device(options())).unwrap())
}

pub(crate) fn faulty() -> (Checked, Arc<FaultPlan>) {
    let plan = Arc::new(FaultPlan::default());
    let inner = crate::device::backend(options());
    let rt = Runtime::with_backend(Box::new(FaultyBackend::new(inner, Arc::clone(&plan)))).unwrap();
    (Checked::new(rt), plan)
}

/// A site that is named in events.
macro_rules! site {
    ($name:literal) => {{
        const SITE: &graphable::__private::Site = &graphable::__private::Site {
            function: $name,
            index: 0,
            file: file!(),
            first_line: line!(),
            last_line: line!(),
        };
        SITE
    }};
}

/// A segment as generated code writes it: `seg!("name", cx, (&a, &b), |k| body)`.
macro_rules! seg {
    ($name:literal, $cx:expr, $key:expr, |$k:ident| $body:expr) => {
        $cx.segment($crate::support::site!($name), $key, |$k| -> graphable::Result<_> { $body })
    };
}

/// An eager region as generated code writes it, of an expression that gives a `Result`; `|e|` is the
/// capability.
macro_rules! eager {
    ($name:literal, $cx:expr, |$e:ident| $body:expr) => {
        $crate::support::eager!($name, Never, $cx, |$e| $body)
    };
    ($name:literal, $support:ident, $cx:expr, |$e:ident| $body:expr) => {{
        #[allow(unused_imports)]
        use graphable::__private::{EagerOther as _, EagerResult as _, EagerTensors as _};
        let region = $cx.eager($crate::support::site!($name), graphable::Support::$support)?;
        #[allow(unused_variables)]
        let $e: &graphable::Eager<'_> = &region;
        let value = $body?;
        (&&&graphable::__private::RegionResult::new(value)).finish(region)?
    }};
}

pub(crate) use {eager, seg, site};

pub(crate) fn plan(items: &'static [PlanItem]) -> &'static Plan {
    Box::leak(Box::new(Plan { function: "test", file: file!(), items, host_statement: None }))
}

/// A plan with one boundary of that support.
pub(crate) fn boundary(site: &'static Site, support: Support) -> &'static Plan {
    plan(vec![PlanItem::Boundary { site, call: "test", support, moved: None }].leak())
}

/// Inputs of a function, in order.
pub(crate) fn host(name: &'static str, dims: &'static [Dim]) -> InputSpec {
    InputSpec { name, kind: InputKind::HostTensor, dtype: DType::F32, dims: DimsSpec::Some(dims) }
}

pub(crate) fn ids(name: &'static str, dims: &'static [Dim]) -> InputSpec {
    InputSpec { dtype: DType::U32, ..host(name, dims) }
}

pub(crate) fn scalar(name: &'static str) -> InputSpec {
    InputSpec { name, kind: InputKind::HostScalar, dtype: DType::F32, dims: DimsSpec::Unspecified }
}

pub(crate) fn device(name: &'static str, dims: &'static [Dim]) -> InputSpec {
    InputSpec { kind: InputKind::DeviceTensor, ..host(name, dims) }
}

pub(crate) fn any_device(name: &'static str) -> InputSpec {
    InputSpec { dims: DimsSpec::Unspecified, ..device(name, &[]) }
}

/// The graph object.
pub(crate) struct Graph {
    pub(crate) function: GraphObject,
    mode: Mode,
}

/// How a graph is made.
pub(crate) struct Spec {
    pub(crate) plan: &'static Plan,
    pub(crate) symbols: &'static [&'static str],
    pub(crate) inputs: Vec<InputSpec>,
    pub(crate) options: Options,
    pub(crate) mode: Mode,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            plan: plan(&[]),
            symbols: &[],
            inputs: Vec::new(),
            options: Options::default(),
            mode: Mode::default(),
        }
    }
}

impl Spec {
    pub(crate) fn inputs(inputs: Vec<InputSpec>) -> Self {
        Self { inputs, ..Self::default() }
    }

    pub(crate) fn mode(mut self, mode: Mode) -> Self {
        self.options.mode(mode);
        self.mode = mode;
        self
    }

    pub(crate) fn with(mut self, set: impl FnOnce(&mut Options)) -> Self {
        set(&mut self.options);
        self
    }

    pub(crate) fn build(self, rt: &mut Runtime) -> Graph {
        self.try_build(rt).unwrap()
    }

    pub(crate) fn try_build(self, rt: &mut Runtime) -> Result<Graph> {
        let Self { plan, symbols, inputs, options, mode } = self;
        let spec = FunctionSpec { name: "test", plan, symbols, inputs: inputs.into() };
        Ok(Graph { function: GraphObject::new(rt, spec, options)?, mode })
    }
}

/// An argument of a call.
pub(crate) enum In<'a, 's> {
    Host(HostSlice<'a, f32>),
    Ids(HostSlice<'a, u32>),
    Scalar(f32),
    Device(&'a T<'s>),
}

/// What the driver gets, by kind and in order.
#[derive(Default)]
pub(crate) struct Args<'s> {
    pub(crate) t: Vec<T<'s>>,
    pub(crate) ids: Vec<Tensor<'s, u32>>,
    pub(crate) scalars: Vec<Scalar<'s, f32>>,
}

impl Graph {
    /// Whether it was made in that mode.
    pub(crate) fn is(&self, mode: Mode) -> bool {
        self.mode == mode
    }

    /// As the `capture_all` of a generated graph.
    pub(crate) fn capture_all(
        &self,
        rt: &mut Runtime,
        mut call: impl FnMut(&Step<'_>, &Synthetic<'_>) -> Result<()>,
        mut progress: impl FnMut(CaptureProgress<'_>),
    ) -> Result<()> {
        capture_all(&self.function, rt, &mut call, &mut progress)
    }

    /// The body of a generated `call`.
    pub(crate) fn call<'s, O>(
        &self,
        step: &Step<'s>,
        ins: &[In<'_, 's>],
        key: impl LiveIn,
        driver: impl FnOnce(Piecewise<'s>, &Args<'s>) -> Result<O>,
    ) -> Result<O>
    where
        O: LiveOut<'s>,
    {
        let mut inputs = Inputs::new(step, &self.function);
        for (i, given) in ins.iter().enumerate() {
            match given {
                In::Host(data) => inputs.host(i, *data),
                In::Ids(data) => inputs.host(i, *data),
                In::Scalar(value) => inputs.scalar(i, *value),
                In::Device(t) => inputs.device(i, *t),
            }
        }
        let frame = inputs.enter(key)?;
        let mut args = Args::default();
        for (i, given) in ins.iter().enumerate() {
            match given {
                In::Host(_) | In::Device(_) => args.t.push(frame.tensor(i)),
                In::Ids(_) => args.ids.push(frame.tensor(i)),
                In::Scalar(_) => args.scalars.push(frame.host_scalar(i)),
            }
        }
        let out = frame.run(|cx| driver(cx, &args));
        drop(args);
        // Whatever the call did: what is alive is what tensors have.
        step.check_memory().unwrap();
        out
    }
}

/// The events since the last call, without file names: `warmed a`, `recorded a`, `replayed a`, …
pub(crate) fn events(step: &Eager<'_>) -> Vec<String> {
    list(&step.take_events())
}

pub(crate) fn list(events: &[Event]) -> Vec<String> {
    events.iter().map(short).collect()
}

fn short(event: &Event) -> String {
    let name = |segment: &str| segment.split('`').nth(1).unwrap_or(segment).to_owned();
    match event {
        Event::Warmed { segment } => format!("warmed {}", name(segment)),
        Event::Waited { segment, reason, .. } => {
            format!("waits {}: {}", name(segment), name(&reason.to_string()))
        }
        Event::Recorded { segment, .. } => format!("recorded {}", name(segment)),
        Event::Replayed { segment, .. } => format!("replayed {}", name(segment)),
        Event::Rerecorded { segment, reason } => format!("again {}: {reason:?}", name(segment)),
        Event::RanEager { boundary } => format!("eager {}", name(boundary)),
        Event::Copied { slot, bytes } => format!("copied {slot:?} {bytes}"),
        Event::FellBack { reason, .. } => format!("fell back: {reason}"),
        Event::Evicted { recordings } => format!("evicted {recordings}"),
        Event::Aborted { segment } => format!("aborted {}", name(segment)),
        Event::Audited { segment } => format!("audited {}", name(segment)),
        Event::SwitchedToCopy { segment, live_in, moves } => {
            format!("demoted {live_in} of {} after {moves}", name(segment))
        }
        Event::ManyShapes { shapes, .. } => format!("{shapes} shapes"),
        other => format!("{other:?}"),
    }
}

/// The node of each recording and replay among `events`, with its segment.
pub(crate) fn nodes(events: &[Event]) -> Vec<usize> {
    events
        .iter()
        .filter_map(|e| match e {
            Event::Recorded { recording, .. } | Event::Replayed { recording, .. } => Some(recording.number()),
            _ => None,
        })
        .collect()
}

/// What most tests put in.
pub(crate) const X: [f32; 2] = [1.0, 2.0];
pub(crate) const MODES: [Mode; 3] = [Mode::None, Mode::Piecewise, Mode::Full];

/// A graph of one host input of two elements.
pub(crate) fn vector(rt: &mut Runtime, mode: Mode) -> Graph {
    Spec::inputs(vec![host("x", &[Dim::Const(2)])]).mode(mode).build(rt)
}

pub(crate) fn x() -> In<'static, 'static> {
    In::Host((&X).into())
}

/// A graph that nothing went wrong with: works in every state of the runtime.
pub(crate) fn still_usable(rt: &mut Runtime) {
    let graph = vector(rt, Mode::Piecewise);
    rt.take_events();
    for i in 0..4 {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], (), |cx, a| {
            let (h,) = seg!("p", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
            let e = eager!("q", cx, |_e| ops::scale(&h, 3.0));
            seg!("r", cx, (&e,), |k| ops::neg(k.0))
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), [-6.0, -12.0]);
        let log = events(&step);
        assert!(!log.iter().any(|e| e.starts_with("aborted") || e.starts_with("fell back")), "{log:?}");
        if i > 1 {
            assert_eq!(log, ["replayed p", "eager q", "replayed r"]);
        }
    }
}

/// While there is one subscriber only, `tracing` asks that of the thread which meets a place of the code first, and
/// remembers the answer for all: a test without one would silence the test that listens.
pub(crate) fn several_subscribers() {
    static ANOTHER: LazyLock<tracing::Dispatch> =
        LazyLock::new(|| tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default()));
    LazyLock::force(&ANOTHER);
}
