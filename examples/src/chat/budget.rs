//! What a template may cost. A template comes with a model, so it is a program of a stranger.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use minijinja::{Error, ErrorKind, Value, value::ValueKind};

/// Bytes of a template; those of known models have less than a tenth of it.
pub(super) const LENGTH: usize = 256 << 10;
/// Names, numbers, texts and signs of one `{{ … }}` or `{% … %}`: each may be a level of nesting.
pub(super) const TAG: usize = 4096;
/// `{{ … }}` and `{% … %}` of a template: each `elif` is a level of nesting.
pub(super) const TAGS: usize = 8192;
/// Steps of the engine.
pub(super) const STEPS: u64 = 2_000_000;
/// Bytes of all texts and lists that a rendering makes, whether they are kept or not.
const BYTES: u64 = 512 << 20;
/// Lists and dictionaries within each other.
const DEPTH: usize = 64;
/// What an entry of a list takes.
pub(super) const ENTRY: u64 = 64;

/// What is left of [`BYTES`] during one rendering.
#[derive(Debug)]
pub(super) struct Budget {
    left: AtomicU64,
    over: AtomicBool,
}

impl Budget {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { left: AtomicU64::new(BYTES), over: AtomicBool::new(false) })
    }

    /// Makes everything fail that follows.
    pub(super) fn cancel(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Pays for `bytes` that are to be made.
    pub(super) fn pay(&self, bytes: u64) -> Result<(), Error> {
        let left = self.left.load(Ordering::Relaxed);
        match left.checked_sub(bytes) {
            Some(rest) if !self.over.load(Ordering::Relaxed) => {
                // Only the thread of the rendering pays.
                self.left.store(rest, Ordering::Relaxed);
                Ok(())
            }
            _ => Err(invalid(format!("it makes more than {BYTES} bytes of texts and lists"))),
        }
    }

    /// Pays for `count` times `bytes`.
    pub(super) fn pay_for(&self, count: usize, bytes: u64) -> Result<(), Error> {
        self.pay((count as u64).saturating_mul(bytes))
    }

    /// Whether the elements of a text could be paid for, if that is what an operation takes apart.
    pub(super) fn affords_elements(&self, of: &Value) -> Result<(), Error> {
        let bytes = of.as_str().map_or(0, |text| (text.len() as u64).saturating_mul(ENTRY));
        match bytes <= self.left.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err(invalid(format!("it takes a text of {} bytes apart", bytes / ENTRY))),
        }
    }

    /// Pays for a value and returns it, with lists in place of everything that is computed when it is looked at.
    pub(super) fn take(&self, value: Value) -> Result<Value, Error> {
        Ok(self.settled(&value, 0)?.unwrap_or(value))
    }

    /// Pays for a value; another one, if it has to be replaced.
    fn settled(&self, value: &Value, depth: usize) -> Result<Option<Value>, Error> {
        self.pay(ENTRY)?;
        if let Some(text) = value.as_str() {
            return self.pay(text.len() as u64).map(|()| None);
        }
        if depth > DEPTH {
            return Err(invalid(format!("it has more than {DEPTH} lists within each other")));
        }
        match value.kind() {
            ValueKind::Seq | ValueKind::Iterable => self.settled_list(value, depth),
            ValueKind::Map => self.settled_map(value, depth),
            _ => Ok(None),
        }
    }

    fn settled_list(&self, value: &Value, depth: usize) -> Result<Option<Value>, Error> {
        let mut changed = value.kind() == ValueKind::Iterable;
        let mut entries = Vec::new();
        for entry in value.try_iter()? {
            let settled = self.settled(&entry, depth + 1)?;
            changed |= settled.is_some();
            entries.push(settled.unwrap_or(entry));
        }
        Ok(changed.then(|| Value::from(entries)))
    }

    fn settled_map(&self, value: &Value, depth: usize) -> Result<Option<Value>, Error> {
        if depth > 0 && is_namespace(value) {
            return Err(invalid("it puts a namespace into another value".into()));
        }
        let mut changed = false;
        let mut entries = Vec::new();
        for key in value.try_iter()? {
            let entry = value.get_item(&key)?;
            self.settled(&key, depth + 1)?;
            let settled = self.settled(&entry, depth + 1)?;
            changed |= settled.is_some();
            entries.push((key, settled.unwrap_or(entry)));
        }
        Ok((changed && !is_namespace(value)).then(|| entries.into_iter().collect()))
    }
}

/// Whether the value is one to whose attributes a template may assign. It could hold itself.
pub(super) fn is_namespace(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.type_name().ends_with("::Namespace"))
}

/// The error of an operation that is not done.
pub(super) fn invalid(reason: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, reason)
}
