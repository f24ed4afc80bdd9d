//! Filling a model from a source, with a report of all mismatches.

use std::{any::Any, borrow::Cow, fmt};

use bytemuck::Pod;
use half::{bf16, f16};
use rustc_hash::FxHashMap;

use super::{Exporter, HostBlocks, HostTensor, TensorSource, is_at_or_below, joined, nearest::nearest};
use crate::{
    BlockFormat, DType, Element, Error, Float, Param, Result, Runtime, State, Weight,
    base::dtype::{from_bytes, to_bytes},
    ops::computes_with_blocks,
};

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

    /// Adds every parameter to `exporter`, under the name that `load` asks for; state is not saved. Derived code has it. By default, the
    /// model cannot be saved, which is a problem that `exporter` reports.
    fn save(&self, exporter: &mut Exporter) {
        let name = std::any::type_name::<Self>();
        exporter
            .problem(format!("`{name}` does not say how it is saved; implement `LoadParams::save` for it"));
    }
}

impl<M: LoadParams> LoadParams for Box<M> {
    type Config = M::Config;

    fn load(loader: &mut Loader<'_>, config: &M::Config) -> Option<Self> {
        M::load(loader, config).map(Self::new)
    }

    fn save(&self, exporter: &mut Exporter) {
        (**self).save(exporter);
    }
}

/// A field that holds one tensor of the source.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not loaded from one tensor",
    label = "expected `Param<_>` or `Weight<_>`",
    note = "`shape = […]` belongs on fields of type `Param` or `Weight`, `Option<Param>` (with `optional`) and `Vec<Param>` (with `len = …`)"
)]
pub trait LoadParam: Sized {
    /// Loads the tensor `name`, which must have `shape`.
    #[doc(hidden)]
    fn load_param(loader: &mut Loader<'_>, name: &str, shape: &[usize]) -> Option<Self>;
    /// Adds it to what is saved.
    #[doc(hidden)]
    fn save_param(&self, exporter: &mut Exporter, name: &str);
}

impl<T: Element> LoadParam for Param<T> {
    fn load_param(loader: &mut Loader<'_>, name: &str, shape: &[usize]) -> Option<Self> {
        loader.param(name, shape)
    }

    fn save_param(&self, exporter: &mut Exporter, name: &str) {
        exporter.param(name, self);
    }
}

impl<T: Float> LoadParam for Weight<T> {
    fn load_param(loader: &mut Loader<'_>, name: &str, shape: &[usize]) -> Option<Self> {
        loader.weight(name, shape)
    }

    fn save_param(&self, exporter: &mut Exporter, name: &str) {
        exporter.weight(name, self);
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

/// Where a tensor's memory may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Device,
    /// Also where its file is mapped.
    File,
}

/// From a tensor's full name in the model to that in the source.
type Rename<'a> = Box<dyn Fn(&str) -> String + 'a>;

/// Fills a model from a [`TensorSource`] and collects every mismatch.
pub struct Loader<'a> {
    rt: &'a Runtime,
    source: &'a dyn TensorSource,
    cast_floats: bool,
    rename: Option<Rename<'a>>,
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
            rename: None,
            prefix: String::new(),
            problems: Vec::new(),
            failure: None,
            missing: 0,
            names: None,
            loaded: FxHashMap::default(),
        }
    }

    /// Sets whether floats of another type are converted (rounded to nearest even). By default they are not: they are a
    /// mismatch.
    #[must_use]
    pub fn cast_floats(mut self, yes: bool) -> Self {
        self.cast_floats = yes;
        self
    }

    /// Sets what a tensor of the model is called in the source, for files with names of another origin. `rename` gets full
    /// names, and those of optional structs; errors have the names of the source. Two tensors of the model that are one of the
    /// source are one parameter.
    #[must_use]
    pub fn rename(mut self, rename: impl Fn(&str) -> String + 'a) -> Self {
        self.rename = Some(Box::new(rename));
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
        self.floats(&self.in_source(name), shape, Place::Device)
    }

    /// Loads like [`param`](Self::param), for a weight that stays in blocks if the source [has them](TensorSource::blocks), and is
    /// [used from where its file is mapped](Weight::is_mapped) if the device can: the CPU does, where elements are of the
    /// model's type and aligned for it. A parameter of the same tensor that is loaded later is a handle of that memory, which nothing
    /// writes.
    ///
    /// Two kinds of blocks are loaded as floats of the same [source](TensorSource::tensor) instead, converted to `T`, and take the
    /// memory of a parameter: blocks with which the device does not compute, and those of a tensor that does not
    /// have two dimensions.
    pub fn weight<T: Float>(&mut self, name: &str, shape: &[usize]) -> Option<Weight<T>> {
        let in_source = self.in_source(name);
        match self.source.blocks(&in_source) {
            Ok(Some(blocks)) => match computes_with_blocks(self.rt, blocks.format) {
                Ok(true) if blocks.shape.len() == 2 => self.upload_blocks(&in_source, shape, blocks),
                Ok(_) => self.floats_of_blocks(&in_source, shape, blocks.format),
                Err(e) => {
                    self.failure.get_or_insert(e);
                    None
                }
            },
            Ok(None) => self.floats(&in_source, shape, Place::File).map(Weight::from),
            Err(e) => {
                self.problem(format!("`{in_source}`: {e}"));
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
        let full = self.in_source(name);
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
        joined(&self.prefix, name)
    }

    /// Returns what the source calls it.
    fn in_source(&self, name: &str) -> String {
        let full = self.full(name);
        self.rename.as_ref().map_or_else(|| full.clone(), |rename| rename(&full))
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
        self.names().iter().any(|tensor| is_at_or_below(name, tensor))
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

    /// Loads the tensor `name` of the source.
    fn floats<T: Element>(&mut self, name: &str, shape: &[usize], place: Place) -> Option<Param<T>> {
        match self.source.tensor(name) {
            Ok(Some(tensor)) => self.upload(name, shape, tensor, self.cast_floats, place),
            Ok(None) => {
                let problem = self.missing(name, &format!("{} {shape:?}", T::DTYPE));
                self.problem(problem);
                None
            }
            Err(e) => {
                self.problem(format!("`{name}`: {e}"));
                None
            }
        }
    }

    fn upload<T: Element>(
        &mut self,
        name: &str,
        shape: &[usize],
        tensor: HostTensor<'_>,
        cast_floats: bool,
        place: Place,
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
        if tensor.dtype != T::DTYPE && !(castable && cast_floats) {
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
        let param = match tensor {
            HostTensor { dtype, file: Some(file), bytes: Cow::Borrowed(bytes), .. }
                if place == Place::File && dtype == T::DTYPE && is_aligned::<T>(bytes) =>
            {
                Param::mapped(self.rt, shape, file, bytes)
            }
            tensor => Param::from_bytes(self.rt, shape, bytes_as::<T>(tensor)),
        };
        let param = self.made(name, param)?;
        self.loaded.insert(name.into(), Box::new(param.clone()));
        Some(param)
    }

    /// Loads the values of blocks that cannot be used as they are. They have no type of their own, so they are always converted.
    fn floats_of_blocks<T: Float>(
        &mut self,
        name: &str,
        shape: &[usize],
        format: BlockFormat,
    ) -> Option<Weight<T>> {
        match self.source.tensor(name) {
            Ok(Some(tensor)) => self.upload(name, shape, tensor, true, Place::Device).map(Weight::from),
            Ok(None) => {
                self.problem(format!(
                    "`{name}` is stored in blocks ({format}), which are used as they are only if there are two dimensions and \
                     the device computes with them; the source has no floats of it, which `TensorSource::tensor` returns"
                ));
                None
            }
            Err(e) => {
                self.problem(format!("`{name}`: {e}"));
                None
            }
        }
    }

    fn upload_blocks<T: Float>(
        &mut self,
        name: &str,
        shape: &[usize],
        blocks: HostBlocks<'_>,
    ) -> Option<Weight<T>> {
        if blocks.shape != shape {
            self.problem(format!("`{name}` has shape {:?}, the model needs {shape:?}", blocks.shape));
            return None;
        }
        if let Some(known) = self.loaded.get(name).and_then(|w| w.downcast_ref::<Weight<T>>()) {
            return Some(known.clone());
        }
        if self.is_doomed() {
            return None;
        }
        let HostBlocks { format, bytes, file, .. } = blocks;
        let weight = match (file, bytes) {
            (Some(file), Cow::Borrowed(bytes)) => Weight::mapped(self.rt, shape, format, file, bytes),
            (_, bytes) => Weight::blocks(self.rt, shape, format, bytes.into_owned()),
        };
        let weight = self.made(name, weight)?;
        self.loaded.insert(name.into(), Box::new(weight.clone()));
        Some(weight)
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

/// Returns the elements as those of `T` in device memory, unchanged or converted from another float type.
///
/// There is no copy in a third type: `f32` holds every value of the narrower types, and `f64` is rounded once.
fn bytes_as<T: Element>(tensor: HostTensor<'_>) -> Cow<'_, [u8]> {
    let converted = match (tensor.dtype, T::DTYPE) {
        // Any byte but 0 is `true`.
        (DType::Bool, _) => to_bytes(&from_bytes::<bool>(&tensor.bytes)),
        (same, wanted) if same == wanted => return tensor.bytes,
        (DType::F64, _) => cast(&tensor.bytes, |v: f64| T::from_f64(v).to_repr()),
        (DType::F32, DType::F64) => cast(&tensor.bytes, |v: f32| f64::from(v)),
        (DType::F16, DType::F64) => cast(&tensor.bytes, f16::to_f64),
        (DType::Bf16, DType::F64) => cast(&tensor.bytes, bf16::to_f64),
        (DType::F16, DType::Bf16) => cast(&tensor.bytes, |v: f16| bf16::from_f32(v.to_f32())),
        (DType::F16, _) => cast(&tensor.bytes, f16::to_f32),
        (DType::Bf16, DType::F16) => cast(&tensor.bytes, |v: bf16| f16::from_f32(v.to_f32())),
        (DType::Bf16, _) => cast(&tensor.bytes, bf16::to_f32),
        // The caller passes only floats.
        (_, DType::F16) => cast(&tensor.bytes, f16::from_f32),
        (_, _) => cast(&tensor.bytes, bf16::from_f32),
    };
    Cow::Owned(converted)
}

/// Returns whether elements can be used as `T` where they are.
fn is_aligned<T: Element>(bytes: &[u8]) -> bool {
    bytes.as_ptr().addr().is_multiple_of(T::DTYPE.size())
}

/// Converts each element of `bytes`, which need not be aligned.
fn cast<S: Pod, T: Pod>(bytes: &[u8], convert: impl Fn(S) -> T) -> Vec<u8> {
    let stored = bytes.chunks_exact(size_of::<S>());
    let mut out = Vec::with_capacity(stored.len() * size_of::<T>());
    for element in stored {
        out.extend_from_slice(bytemuck::bytes_of(&convert(bytemuck::pod_read_unaligned(element))));
    }
    out
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

    /// Every type to every other: the nearest value, ties to even, as `Element::from_f64` has it.
    #[test]
    fn floats_convert_to_nearest() {
        fn check<S: Element, T: Element>() {
            // Ties and their neighbours in both narrow types, subnormals, infinities, what overflows one of them.
            let ties = [8, 9, 10, 11, 12].map(|bits| 1.0 + 0.5f64.powi(bits));
            let far = [
                0.0,
                -0.0,
                1.5,
                -3.5,
                1e-8,
                -6e-8,
                1e-40,
                65_504.0,
                65_520.0,
                1e30,
                f64::INFINITY,
                f64::NEG_INFINITY,
            ];
            let more = (0..500).map(|i| f64::from(i * i * 7919 % 10_007 - 5_000) / 37.0);
            let values: Vec<S> = ties.into_iter().chain(far).chain(more).map(S::from_f64).collect();
            // One byte further than any alignment.
            let stored = [&[0], &to_bytes(&values)[..]].concat();
            let tensor = HostTensor {
                dtype: S::DTYPE,
                shape: vec![values.len()],
                bytes: stored[1..].into(),
                file: None,
            };
            let expected: Vec<T> = values.iter().map(|v| T::from_f64(v.to_f64())).collect();
            assert_eq!(bytes_as::<T>(tensor), to_bytes(&expected), "{} to {}", S::DTYPE, T::DTYPE);
        }
        fn from<S: Element>() {
            check::<S, f32>();
            check::<S, f16>();
            check::<S, bf16>();
            check::<S, f64>();
        }
        from::<f32>();
        from::<f16>();
        from::<bf16>();
        from::<f64>();
    }

    #[test]
    fn truth_values_become_0_and_1() {
        let tensor =
            HostTensor { dtype: DType::Bool, shape: vec![3], bytes: [0, 1, 7].as_slice().into(), file: None };
        assert_eq!(*bytes_as::<bool>(tensor), [0, 1, 1]);
    }

    #[test]
    fn names_of_another_origin() {
        let rt = Runtime::new(crate::Device::cpu()).unwrap();
        let mut source = crate::model::load::TensorMap::new();
        source.insert("decoder.embed", &[2], &[1.0f32, 2.0]).unwrap();
        let mut loader = Loader::new(&rt, &source).prefix("model").rename(|name| match name {
            "model.embed" | "model.output" => "decoder.embed".into(),
            other => other.replace("model", "decoder"),
        });
        let embed = loader.param::<f32>("embed", &[2]).unwrap();
        let output =
            loader.optional("output", |loader| loader.param::<f32>("output", &[2])).unwrap().unwrap();
        assert!(std::sync::Arc::ptr_eq(&embed.owned, &output.owned), "one tensor, one parameter");
        assert!(loader.optional("bias", |loader| loader.param::<f32>("bias", &[2])).unwrap().is_none());
        assert!(loader.param::<f32>("embad", &[2]).is_none());
        let error = loader.finish(Some(embed)).unwrap_err().to_string();
        assert!(error.contains("`decoder.embad` (f32 [2]) is missing; is it `decoder.embed`?"), "{error}");
    }

    #[test]
    fn sizes_that_overflow_are_no_size() {
        assert_eq!(bytes_of(&[2, 3], DType::F16), Some(12));
        assert_eq!(bytes_of(&[usize::MAX, 2], DType::U8), None);
    }
}
