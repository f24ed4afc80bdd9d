//! Filling a model from a source, with a report of all mismatches.

use std::{any::Any, fmt};

use half::{bf16, f16};
use rustc_hash::FxHashMap;

use super::{HostTensor, TensorSource, nearest::nearest};
use crate::{DType, Element, Error, Param, Result, Runtime, State, base::dtype::from_bytes};

/// The maximum number of missing names for which similar ones are searched; the search is slow, and more do
/// not help.
const SUGGESTIONS: usize = 16;

/// A model that can be loaded by tensor name. Derive it with `#[derive(Params)]` and
/// `#[params(config = …)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how it is loaded",
    label = "no `#[params(config = …)]`",
    note = "add `#[params(config = …)]` next to its `#[derive(Params)]`; a `Param` field is loaded with `#[param(\"name\", shape = […])]`"
)]
pub trait LoadParams: Sized {
    /// The configuration on which shapes and lengths depend.
    type Config;

    /// Loads every field, and reports mismatches to `loader`. Returns `None` if there were any.
    fn load(loader: &mut Loader<'_>, config: &Self::Config) -> Option<Self>;
}

impl<M: LoadParams> LoadParams for Box<M> {
    type Config = M::Config;

    fn load(loader: &mut Loader<'_>, config: &M::Config) -> Option<Self> {
        M::load(loader, config).map(Self::new)
    }
}

/// A field that holds one tensor of the source.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not loaded from one tensor",
    label = "expected `Param<_>`",
    note = "`shape = […]` belongs on fields of type `Param`, `Option<Param>` (with `optional`) and `Vec<Param>` (with `len = …`)"
)]
pub trait LoadParam: Sized {
    /// Loads the tensor `name`, which must have `shape`.
    #[doc(hidden)]
    fn load_param(loader: &mut Loader<'_>, name: &str, shape: &[usize]) -> Option<Self>;
}

impl<T: Element> LoadParam for Param<T> {
    fn load_param(loader: &mut Loader<'_>, name: &str, shape: &[usize]) -> Option<Self> {
        loader.param(name, shape)
    }
}

/// A field that holds zeroed memory.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not state",
    label = "expected `State<_>`",
    note = "`#[state(shape = […])]` belongs on fields of type `State`, and `Vec<State>` with `len = …`"
)]
pub trait LoadState: Sized {
    /// Creates state of `shape`; `name` is for errors.
    #[doc(hidden)]
    fn load_state(loader: &mut Loader<'_>, name: &str, shape: &[usize]) -> Option<Self>;
}

impl<T: Element> LoadState for State<T> {
    fn load_state(loader: &mut Loader<'_>, name: &str, shape: &[usize]) -> Option<Self> {
        loader.state(name, shape)
    }
}

/// Fills a model from a [`TensorSource`] and collects every mismatch.
pub struct Loader<'a> {
    rt: &'a Runtime,
    source: &'a dyn TensorSource,
    cast_floats: bool,
    prefix: String,
    problems: Vec<String>,
    /// The first error of the device; it ends the uploads, but not the checks.
    failure: Option<Error>,
    missing: usize,
    names: Option<Vec<String>>,
    /// Loaded parameters by full name; tied weights are uploaded once.
    loaded: FxHashMap<String, Box<dyn Any>>,
}

impl<'a> Loader<'a> {
    /// Creates a loader of `source` onto the device of `rt`.
    pub fn new(rt: &'a Runtime, source: &'a dyn TensorSource) -> Self {
        Self {
            rt,
            source,
            cast_floats: false,
            prefix: String::new(),
            problems: Vec::new(),
            failure: None,
            missing: 0,
            names: None,
            loaded: FxHashMap::default(),
        }
    }

    /// If set, floats of another type are converted (rounded to nearest even). Off by default: they are a
    /// mismatch.
    #[must_use]
    pub fn cast_floats(mut self, yes: bool) -> Self {
        self.cast_floats = yes;
        self
    }

    /// Sets the common prefix of all names in the source, without the last dot: `"model"`.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Returns the model, or all mismatches.
    ///
    /// # Errors
    /// Returns [`Error::Load`] with every missing, misshapen and mistyped tensor; if there are none, errors
    /// of the device.
    pub fn finish<M>(mut self, model: Option<M>) -> Result<M> {
        match (model, self.failure, self.problems.is_empty()) {
            (Some(model), None, true) => return Ok(model),
            (_, Some(failure), true) => return Err(failure),
            (_, Some(failure), false) => self.problems.push(failure.to_string()),
            (None, None, true) => {
                self.problems.push("`LoadParams::load` gave up without calling `Loader::problem`".into());
            }
            (_, None, false) => {}
        }
        Err(Error::Load { source_name: self.source.name(), problems: self.problems })
    }

    /// Reports a custom mismatch.
    pub fn problem(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }

    /// Loads the parameter `name` (under the current prefix), which must have `shape` and elements `T`.
    /// Returns `None` if it does not match; [`finish`](Self::finish) reports the reason.
    ///
    /// Loading the same name twice returns two handles of one parameter.
    pub fn param<T: Element>(&mut self, name: &str, shape: &[usize]) -> Option<Param<T>> {
        let name = self.full(name);
        match self.source.tensor(&name) {
            Ok(Some(tensor)) => self.upload(&name, shape, &tensor),
            Ok(None) => {
                let problem = self.missing(&name, &format!("{} {shape:?}", T::DTYPE));
                self.problem(problem);
                None
            }
            Err(e) => {
                self.problem(format!("`{name}`: {e}"));
                None
            }
        }
    }

    /// Creates zeroed state of `shape`; `name` is only for errors.
    pub fn state<T: Element>(&mut self, name: &str, shape: &[usize]) -> Option<State<T>> {
        if self.is_doomed() {
            return None;
        }
        let state = State::zeros(self.rt, shape);
        self.made(&self.full(name), state)
    }

    /// Returns `Some(None)` if the source has no tensor `name`, and otherwise the result of `load`.
    pub fn optional<M>(
        &mut self,
        name: &str,
        load: impl FnOnce(&mut Self) -> Option<M>,
    ) -> Option<Option<M>> {
        let full = self.full(name);
        if self.has(&full) { load(self).map(Some) } else { Some(None) }
    }

    /// Loads the struct whose names start with `name`; an empty name adds no prefix.
    pub fn nested<M: LoadParams>(&mut self, name: &str, config: &M::Config) -> Option<M> {
        let full = self.full(name);
        let outer = std::mem::replace(&mut self.prefix, full);
        let model = M::load(self, config);
        self.prefix = outer;
        model
    }

    /// Loads `len` items; `{}` in `template` stands for the index. Every item is tried, so that all
    /// mismatches are found.
    pub fn list<M>(
        &mut self,
        template: &str,
        len: usize,
        mut load: impl FnMut(&mut Self, &str) -> Option<M>,
    ) -> Option<Vec<M>> {
        let items: Vec<_> =
            (0..len).map(|i| load(self, &template.replacen("{}", &i.to_string(), 1))).collect();
        items.into_iter().collect()
    }

    fn full(&self, name: &str) -> String {
        match (self.prefix.as_str(), name) {
            ("", name) => name.into(),
            (prefix, "") => prefix.into(),
            (prefix, name) => format!("{prefix}.{name}"),
        }
    }

    fn names(&mut self) -> &[String] {
        self.names.get_or_insert_with(|| {
            let mut names = self.source.names();
            names.sort();
            names
        })
    }

    /// Returns whether the source has `name`, or any name below it.
    fn has(&mut self, name: &str) -> bool {
        self.names()
            .iter()
            .any(|n| n.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
    }

    fn missing(&mut self, name: &str, what: &str) -> String {
        self.missing += 1;
        let near = if self.missing > SUGGESTIONS { Vec::new() } else { nearest(name, self.names()) };
        let hint = match near[..] {
            [] => String::new(),
            [one] => format!("; is it `{one}`?"),
            [one, two, ..] => format!("; is it `{one}` or `{two}`?"),
        };
        format!("`{name}` ({what}) is missing{hint}")
    }

    fn upload<T: Element>(
        &mut self,
        name: &str,
        shape: &[usize],
        tensor: &HostTensor<'_>,
    ) -> Option<Param<T>> {
        let before = self.problems.len();
        if tensor.shape != shape {
            self.problem(format!("`{name}` has shape {:?}, the model needs {shape:?}", tensor.shape));
        } else if Some(tensor.bytes.len()) != bytes_of(&tensor.shape, tensor.dtype) {
            self.problem(format!(
                "`{name}` has {} bytes, which is not what {} {:?} takes; the source is damaged",
                tensor.bytes.len(),
                tensor.dtype,
                tensor.shape
            ));
        }
        let castable = tensor.dtype.is_float() && T::DTYPE.is_float();
        if tensor.dtype != T::DTYPE && !(castable && self.cast_floats) {
            let remedy = if castable { "; `Loader::cast_floats(true)` converts" } else { "" };
            self.problem(format!("`{name}` holds {}, the model needs {}{remedy}", tensor.dtype, T::DTYPE));
        }
        if self.problems.len() > before {
            return None;
        }
        if let Some(known) = self.loaded.get(name).and_then(|p| p.downcast_ref::<Param<T>>()) {
            return Some(known.clone());
        }
        if self.is_doomed() {
            return None;
        }
        let param = Param::new(self.rt, shape, &values::<T>(tensor));
        let param = self.made(name, param)?;
        self.loaded.insert(name.into(), Box::new(param.clone()));
        Some(param)
    }

    /// Returns whether loading has already failed: the rest is checked, but not uploaded.
    fn is_doomed(&self) -> bool {
        self.failure.is_some() || !self.problems.is_empty()
    }

    fn made<M>(&mut self, name: &str, result: Result<M>) -> Option<M> {
        match result {
            Ok(made) => Some(made),
            // The model's own shapes can be invalid; all other errors are the device's.
            Err(e @ (Error::Rank { .. } | Error::TooLarge { .. } | Error::Argument { .. })) => {
                self.problem(format!("`{name}`: {e}"));
                None
            }
            Err(e) => {
                self.failure = Some(e);
                None
            }
        }
    }
}

/// Returns the size of a tensor in bytes; `None` on overflow.
fn bytes_of(shape: &[usize], dtype: DType) -> Option<usize> {
    shape.iter().try_fold(dtype.size(), |n, &dim| n.checked_mul(dim))
}

/// Returns the elements as `T`, unchanged or converted from another float type.
fn values<T: Element>(tensor: &HostTensor<'_>) -> Vec<T> {
    fn cast<S: Element, T: Element>(bytes: &[u8]) -> Vec<T> {
        from_bytes::<S>(bytes).into_iter().map(|v| T::from_f64(v.to_f64())).collect()
    }
    match tensor.dtype {
        same if same == T::DTYPE => from_bytes(&tensor.bytes),
        DType::F16 => cast::<f16, T>(&tensor.bytes),
        DType::Bf16 => cast::<bf16, T>(&tensor.bytes),
        // The caller passes only floats.
        _ => cast::<f32, T>(&tensor.bytes),
    }
}

impl fmt::Debug for Loader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader")
            .field("source", &self.source.name())
            .field("prefix", &self.prefix)
            .field("problems", &self.problems)
            .finish_non_exhaustive()
    }
}

/// Loads a model whose element types match those of the source.
///
/// # Errors
/// Returns [`Error::Load`] with every missing, misshapen and mistyped tensor. Use a [`Loader`] to convert
/// floats or to add a prefix.
pub fn load<M: LoadParams>(rt: &Runtime, source: &dyn TensorSource, config: &M::Config) -> Result<M> {
    let mut loader = Loader::new(rt, source);
    let model = M::load(&mut loader, config);
    loader.finish(model)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::dtype::to_bytes;

    #[test]
    fn floats_convert_to_nearest() {
        let tensor = HostTensor {
            dtype: DType::F32,
            shape: vec![2],
            bytes: to_bytes(&[1.0f32, 1.0 + 1.0 / 256.0]).into(),
        };
        assert_eq!(values::<bf16>(&tensor), [bf16::from_f32(1.0), bf16::from_f32(1.0 + 1.0 / 256.0)]);
        let half = HostTensor {
            dtype: DType::Bf16,
            shape: vec![1],
            bytes: to_bytes(&[bf16::from_f32(-3.5)]).into(),
        };
        assert_eq!(values::<f32>(&half), [-3.5]);
    }

    #[test]
    fn sizes_that_overflow_are_no_size() {
        assert_eq!(bytes_of(&[2, 3], DType::F16), Some(12));
        assert_eq!(bytes_of(&[usize::MAX, 2], DType::U8), None);
    }
}
