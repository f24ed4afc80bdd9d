//! A timeline of what the runtime and its device did, for Perfetto or `chrome://tracing`.

use std::{
    fmt, fs, io,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer,
    filter::FilterFn,
    layer::{Context, SubscriberExt as _},
    registry::LookupSpan,
};

use crate::{Error, Result};

/// Rows of the timeline.
const HOST: u32 = 1;
const DEVICE: u32 = 2;

/// The slices of both rows, in the order of their ends.
#[derive(Clone, Debug)]
struct Slices {
    begun: Instant,
    list: Arc<Mutex<Vec<Value>>>,
}

/// The fields of a span, and when it was entered.
struct Open {
    fields: Map<String, Value>,
    entered: Instant,
}

struct Fields<'m>(&'m mut Map<String, Value>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().into(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().into(), value.into());
    }
}

impl Slices {
    fn push(&self, row: u32, kind: &str, (from, took): (Duration, Duration), mut fields: Map<String, Value>) {
        // What it is, in the user's own words; a step has no others.
        let name = ["title", "function"].iter().find_map(|field| fields.remove(*field));
        let microseconds = |time: Duration| time.as_nanos() as f64 / 1e3;
        self.add(json!({
            "name": name.unwrap_or_else(|| kind.into()),
            "cat": kind,
            "ph": "X",
            "ts": microseconds(from),
            "dur": microseconds(took),
            "pid": 1,
            "tid": row,
            "args": fields,
        }));
    }

    fn add(&self, event: Value) {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    fn name_row(&self, row: u32, name: &str) {
        let args = json!({ "name": name });
        self.add(json!({ "name": "thread_name", "ph": "M", "pid": 1, "tid": row, "args": args }));
    }
}

impl<S: Subscriber + for<'s> LookupSpan<'s>> Layer<S> for Slices {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Map::new();
        attributes.record(&mut Fields(&mut fields));
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(Open { fields, entered: Instant::now() });
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(open) = span.extensions_mut().get_mut::<Open>()
        {
            values.record(&mut Fields(&mut open.fields));
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(open) = span.extensions_mut().get_mut::<Open>()
        {
            open.entered = Instant::now();
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        // The runtime enters each span once.
        let Some(span) = context.span(id) else { return };
        let Some(Open { fields, entered }) = span.extensions_mut().remove::<Open>() else { return };
        let from = entered.saturating_duration_since(self.begun);
        self.push(HOST, span.metadata().name(), (from, entered.elapsed()), fields);
    }

    /// Events are slices of the device: what it did, for how long, and how long ago.
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let now = self.begun.elapsed();
        let mut fields = Map::new();
        event.record(&mut Fields(&mut fields));
        let mut time = |name: &str| fields.remove(name)?.as_u64().map(Duration::from_nanos);
        let (Some(took), Some(ago)) = (time("took_ns"), time("ended_ago_ns")) else { return };
        let from = now.saturating_sub(ago).saturating_sub(took);
        let kind = fields.remove("what").and_then(|what| what.as_str().map(str::to_owned));
        self.push(DEVICE, &kind.unwrap_or_default(), (from, took), fields);
    }
}

/// Runs `work` and writes what the runtime did on this thread to `path`: on the host steps, calls, segments with what
/// was decided of each, and eager regions; in a row below, when the device worked on those segments and regions.
///
/// # Errors
/// Those of `work`; a file that cannot be written.
pub fn record<T>(path: &Path, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let failed = |e: io::Error| Error::io(path, "write", &e);
    // Before the work, which may take long.
    fs::File::create(path).map_err(failed)?;
    let slices = Slices { begun: Instant::now(), list: Arc::default() };
    slices.name_row(HOST, "host");
    slices.name_row(DEVICE, "device");
    let ours = FilterFn::new(|of: &Metadata<'_>| of.target() == "graphable::timeline");
    let subscriber = tracing_subscriber::registry().with(slices.clone().with_filter(ours));
    let out = tracing::subscriber::with_default(subscriber, work);
    let list = std::mem::take(&mut *slices.list.lock().unwrap_or_else(PoisonError::into_inner));
    fs::write(path, Value::Array(list).to_string()).map_err(failed)?;
    out
}
