//! Inputs of a call: collected by generated code, with their dimensions determined.

use std::{fmt, mem, sync::Arc};

use crate::{
    DType, Element, Error, Result, Step, Tensor,
    backend::HostSource,
    base::dtype::{HostSlot, from_bytes, to_bytes},
    graph::{
        GraphCall, GraphObject,
        spec::{Dim, DimsSpec, InputSpec},
    },
    tensor::pinned::{PinnedBuffer, PinnedPart},
    value::{layout::Layout, live_in::LiveIn, raw::RawTensor},
};

/// Bytes of a pinned input up to which it travels with the other inputs: the device needs longer to begin a copy of its own.
const SMALL: usize = 4096;

/// The data of a `#[host]` tensor parameter: a slice, with a shape if the dimensions do not follow from its length; or
/// what the parameter's own memory was filled with ([`StaticInput::fill`](crate::StaticInput::fill)); or pinned memory that the
/// device reads itself ([`PinnedBuffer`]).
#[derive(Clone, Copy, Debug)]
pub struct HostSlice<'a, T>(HostData<'a, T>);

#[derive(Clone, Copy, Debug)]
enum HostData<'a, T> {
    Slice {
        data: &'a [T],
        shape: Option<&'a [usize]>,
    },
    Pinned {
        part: PinnedPart<'a, T>,
        shape: Option<&'a [usize]>,
    },
    /// A tensor of the runtime with this id.
    Filled {
        runtime: u64,
        raw: RawTensor,
    },
}

impl<'a, T> HostSlice<'a, T> {
    pub(super) fn slice(data: &'a [T], shape: Option<&'a [usize]>) -> Self {
        Self(HostData::Slice { data, shape })
    }
}

impl<'a, T> From<&'a [T]> for HostSlice<'a, T> {
    fn from(data: &'a [T]) -> Self {
        Self::slice(data, None)
    }
}

impl<'a, T> From<&'a Vec<T>> for HostSlice<'a, T> {
    fn from(data: &'a Vec<T>) -> Self {
        Self::slice(data, None)
    }
}

impl<'a, T, const N: usize> From<&'a [T; N]> for HostSlice<'a, T> {
    fn from(data: &'a [T; N]) -> Self {
        Self::slice(data, None)
    }
}

impl<'a, T> From<(&'a [T], &'a [usize])> for HostSlice<'a, T> {
    /// Row-major data and its shape.
    fn from((data, shape): (&'a [T], &'a [usize])) -> Self {
        Self::slice(data, Some(shape))
    }
}

impl<'a, T, const R: usize> From<(&'a Vec<T>, &'a [usize; R])> for HostSlice<'a, T> {
    fn from((data, shape): (&'a Vec<T>, &'a [usize; R])) -> Self {
        Self::slice(data, Some(shape))
    }
}

impl<'a, T, const R: usize> From<(&'a [T], &'a [usize; R])> for HostSlice<'a, T> {
    fn from((data, shape): (&'a [T], &'a [usize; R])) -> Self {
        Self::slice(data, Some(shape))
    }
}

impl<'a, T> From<&'a PinnedBuffer<T>> for HostSlice<'a, T> {
    fn from(buffer: &'a PinnedBuffer<T>) -> Self {
        Self::from(PinnedPart::whole(buffer))
    }
}

impl<'a, T> From<PinnedPart<'a, T>> for HostSlice<'a, T> {
    fn from(part: PinnedPart<'a, T>) -> Self {
        Self(HostData::Pinned { part, shape: None })
    }
}

impl<'a, T, const R: usize> From<(&'a PinnedBuffer<T>, &'a [usize; R])> for HostSlice<'a, T> {
    fn from((buffer, shape): (&'a PinnedBuffer<T>, &'a [usize; R])) -> Self {
        Self::from((PinnedPart::whole(buffer), shape))
    }
}

impl<'a, T, const R: usize> From<(PinnedPart<'a, T>, &'a [usize; R])> for HostSlice<'a, T> {
    fn from((part, shape): (PinnedPart<'a, T>, &'a [usize; R])) -> Self {
        Self(HostData::Pinned { part, shape: Some(shape) })
    }
}

impl<'a, T> From<&'a Tensor<'_, T>> for HostSlice<'a, T> {
    /// The tensor with which the parameter's memory was filled; any other one is [`Error::Input`].
    fn from(tensor: &'a Tensor<'_, T>) -> Self {
        Self(HostData::Filled { runtime: tensor.rt.id(), raw: tensor.raw })
    }
}

/// The bytes of a host tensor.
#[derive(Debug)]
pub(crate) enum HostBytes {
    /// A copy.
    Copied(Vec<u8>),
    /// A part of pinned memory, which the device copies.
    Pinned { from: Arc<dyn HostSource>, offset: usize, bytes: usize },
}

#[derive(Debug)]
pub(crate) enum Given {
    Missing,
    Host {
        bytes: HostBytes,
        count: usize,
        shape: Option<Vec<usize>>,
    },
    /// Its value, which is part of the host block.
    Scalar(HostSlot),
    Device(RawTensor),
}

impl Given {
    /// Returns the shape, which is determined for all that is given.
    pub(super) fn shape(&self) -> &[usize] {
        match self {
            Self::Host { shape, .. } => shape.as_deref().unwrap_or_default(),
            Self::Device(raw) => raw.layout.shape(),
            Self::Missing | Self::Scalar(_) => &[],
        }
    }
}

/// The size of a symbol, and the input that determined it.
pub(super) type Size = (usize, &'static str);

/// The inputs of one call, before it starts. [`enter`](Self::enter) returns their first error.
pub struct Inputs<'s, 'f> {
    pub(crate) step: &'s crate::Runtime,
    pub(crate) function: &'f GraphObject,
    pub(crate) given: Vec<Given>,
    /// The size of each symbol, as far as the inputs given so far determine it.
    sizes: Vec<Option<Size>>,
    failed: Option<Error>,
}

impl fmt::Debug for Inputs<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inputs").field("function", &self.function.spec.name).finish_non_exhaustive()
    }
}

impl<'s, 'f> Inputs<'s, 'f> {
    /// Creates the inputs of a call of `function`, none of which is given yet.
    pub fn new(step: &Step<'s>, function: &'f GraphObject) -> Self {
        let rt = step.rt;
        let failed = if rt.id() == function.runtime {
            nested(rt, function)
        } else {
            Some(Error::DifferentRuntimes { op: function.spec.name })
        };
        Self {
            step: rt,
            function,
            given: function.spec.inputs.iter().map(|_| Given::Missing).collect(),
            sizes: vec![None; function.spec.symbols.len()],
            failed,
        }
    }

    fn spec(&self, i: usize) -> &'f InputSpec {
        &self.function.spec.inputs[i]
    }

    /// Sets a `#[host]` tensor.
    pub fn host<T: Element>(&mut self, i: usize, slice: HostSlice<'_, T>) {
        self.give(|inputs| inputs.check_host(i, slice));
    }

    /// Sets a `#[host]` scalar.
    pub fn scalar<T: Element>(&mut self, i: usize, value: T) {
        self.given[i] = Given::Scalar(HostSlot::of(value));
    }

    /// Sets a tensor.
    pub fn device<T>(&mut self, i: usize, tensor: &Tensor<'s, T>) {
        self.give(|inputs| inputs.check_device(i, tensor));
    }

    /// Performs a check unless an earlier one failed, and keeps its error.
    fn give(&mut self, check: impl FnOnce(&mut Self) -> Result<()>) {
        if self.failed.is_none() {
            self.failed = check(self).err();
        }
    }

    fn check_host<T: Element>(&mut self, i: usize, slice: HostSlice<'_, T>) -> Result<()> {
        let (count, shape) = match slice.0 {
            HostData::Slice { data, shape } => (data.len(), shape),
            HostData::Pinned { part, shape } => (part.len(), shape),
            HostData::Filled { runtime, raw } => return self.check_filled(i, runtime, raw),
        };
        if let Some(shape) = shape {
            let expected = Layout::contiguous(shape)?.count();
            if expected != count {
                let reason = format!("shape {shape:?} has {expected} elements, the data {count}");
                return Err(self.wrong(i, reason));
            }
            self.unify_shape(i, shape)?;
        }
        let bytes = match slice.0 {
            HostData::Slice { data, .. } => HostBytes::Copied(to_bytes(data)),
            HostData::Pinned { part, .. } => self.pinned(part)?,
            HostData::Filled { .. } => unreachable!("it returned above"),
        };
        self.given[i] = Given::Host { bytes, count, shape: shape.map(<[usize]>::to_vec) };
        Ok(())
    }

    /// Returns the bytes of pinned memory, or the promise that the device copies them.
    fn pinned<T: Element>(&self, part: PinnedPart<'_, T>) -> Result<HostBytes> {
        if part.runtime() != self.function.runtime {
            return Err(Error::DifferentRuntimes { op: self.function.spec.name });
        }
        let (offset, bytes) = part.bytes();
        if bytes > SMALL && T::DTYPE != DType::Bool {
            return Ok(HostBytes::Pinned { from: part.memory().lend(), offset, bytes });
        }
        // The buffer of a `bool` may contain any byte, and operations take 0 and 1.
        let values = from_bytes::<T>(&part.memory().bytes()?[offset..offset + bytes]);
        Ok(HostBytes::Copied(to_bytes(&values)))
    }

    /// Checks a tensor in place of host data.
    fn check_filled(&mut self, i: usize, runtime: u64, raw: RawTensor) -> Result<()> {
        if runtime != self.function.runtime {
            return Err(Error::DifferentRuntimes { op: self.function.spec.name });
        }
        self.step.core.borrow().check_live(self.function.spec.name, &raw)?;
        if !self.function.is_filled_with(i, &raw) {
            let reason = "it takes data of the host, or what its own memory was filled with: \
                       `graph.buffers().{}.fill_from(&step, &tensor)?`";
            return Err(self.wrong(i, reason.replace("{}", self.spec(i).name)));
        }
        self.unify_shape(i, raw.layout.shape())?;
        self.given[i] = Given::Device(raw);
        Ok(())
    }

    fn check_device<T>(&mut self, i: usize, tensor: &Tensor<'s, T>) -> Result<()> {
        if !std::ptr::eq(tensor.rt, self.step) {
            return Err(Error::DifferentRuntimes { op: self.function.spec.name });
        }
        self.step.core.borrow().check_live(self.function.spec.name, &tensor.raw)?;
        self.unify_shape(i, tensor.sizes())?;
        self.given[i] = Given::Device(tensor.raw);
        Ok(())
    }

    fn wrong(&self, i: usize, reason: String) -> Error {
        Error::Input { function: self.function.spec.name, input: self.spec(i).name, reason }
    }

    fn unify(&mut self, i: usize, symbol: usize, size: usize) -> Result<()> {
        let input = self.spec(i).name;
        match self.sizes[symbol] {
            None => {
                self.sizes[symbol] = Some((size, input));
                Ok(())
            }
            Some((known, _)) if known == size => Ok(()),
            Some((first, first_input)) => Err(Error::DimsDisagree {
                function: self.function.spec.name,
                symbol: self.function.spec.symbols[symbol].to_owned(),
                first,
                first_input,
                second: size,
                second_input: input,
            }),
        }
    }

    fn unify_shape(&mut self, i: usize, shape: &[usize]) -> Result<()> {
        let DimsSpec::Some(dims) = self.spec(i).dims else { return Ok(()) };
        if dims.len() != shape.len() {
            let reason = format!("it has shape {shape:?}, `#[dims]` has {} entries", dims.len());
            return Err(self.wrong(i, reason));
        }
        for (axis, (dim, &size)) in dims.iter().zip(shape).enumerate() {
            match *dim {
                Dim::Const(n) if n != size => {
                    return Err(self.wrong(i, format!("dimension {axis} is {size}, `#[dims]` says {n}")));
                }
                Dim::Const(_) => {}
                Dim::Symbol(s) => self.unify(i, s, size)?,
            }
        }
        Ok(())
    }

    /// Determines the symbols that only host slices without a shape name.
    fn resolve(&mut self) -> Result<()> {
        // A slice with one unknown symbol determines it, which may determine the next slice.
        let mut open: Vec<usize> = (0..self.given.len())
            .filter(|&i| matches!(self.given[i], Given::Host { shape: None, .. }))
            .collect();
        while !open.is_empty() {
            let before = open.len();
            let mut left = Vec::new();
            for i in open {
                if !self.resolve_slice(i)? {
                    left.push(i);
                }
            }
            if left.len() == before {
                let reason =
                    "its dimensions do not follow from its length; pass `(&data[..], &[d0, d1])`".to_owned();
                return Err(self.wrong(left[0], reason));
            }
            open = left;
        }
        Ok(())
    }

    /// Returns whether the slice's shape is determined now.
    fn resolve_slice(&mut self, i: usize) -> Result<bool> {
        let Given::Host { count, .. } = self.given[i] else { return Ok(true) };
        let DimsSpec::Some(dims) = self.spec(i).dims else {
            self.set_shape(i, vec![count]);
            return Ok(true);
        };
        let mut known = 1usize;
        let mut unknown = None;
        for dim in dims {
            match *dim {
                Dim::Const(n) => known = known.saturating_mul(n),
                Dim::Symbol(s) => match (self.sizes[s], unknown) {
                    (Some((n, _)), _) => known = known.saturating_mul(n),
                    (None, None) => unknown = Some(s),
                    (None, Some(_)) => return Ok(false),
                },
            }
        }
        if let Some(symbol) = unknown {
            let name = self.function.spec.symbols[symbol];
            if known == 0 || count % known != 0 {
                let reason =
                    format!("{count} elements are not a whole number of rows of {known} along {name}");
                return Err(self.wrong(i, reason));
            }
            self.unify(i, symbol, count / known)?;
        } else if known != count {
            // The disagreement concerns a symbol if there is only one.
            if let [Dim::Symbol(s)] = dims {
                self.unify(i, *s, count)?;
            }
            return Err(self.wrong(i, format!("it has {count} elements, its dimensions say {known}")));
        }
        let shape = dims
            .iter()
            .map(|d| match *d {
                Dim::Const(n) => n,
                Dim::Symbol(s) => self.sizes[s].map_or(0, |(n, _)| n),
            })
            .collect();
        self.set_shape(i, shape);
        Ok(true)
    }

    fn set_shape(&mut self, i: usize, resolved: Vec<usize>) {
        if let Given::Host { shape, .. } = &mut self.given[i] {
            *shape = Some(resolved);
        }
    }

    /// Determines the sizes that the inputs given so far imply.
    ///
    /// # Errors
    /// Returns the first error of the inputs.
    pub(super) fn resolved(mut self) -> Result<Self> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.resolve()?;
        Ok(self)
    }

    /// Checks that every input is given, and returns the size of every symbol.
    fn complete(&mut self) -> Result<Vec<Size>> {
        let spec = &self.function.spec;
        let wrong = |reason: String| Error::Config { what: format!("`{}`", spec.name), reason };
        if let Some(i) = self.given.iter().position(|given| matches!(given, Given::Missing)) {
            return Err(wrong(format!("input {i} was not given; this is a bug of generated code")));
        }
        let sizes = mem::take(&mut self.sizes).into_iter().zip(spec.symbols);
        let size = |(size, symbol): (Option<Size>, &&str)| {
            size.ok_or_else(|| wrong(format!("no input determines dimension {symbol}")))
        };
        sizes.map(size).collect()
    }

    /// Starts the call: buckets, host block, padded copies of device inputs. `key` contains what full mode must
    /// compare besides the inputs.
    ///
    /// # Errors
    /// Returns the first error of the inputs ([`Error::DifferentRuntimes`], [`Error::NestedCall`], [`Error::Input`],
    /// [`Error::DimsDisagree`], [`Error::Rank`], [`Error::TooLarge`]), [`Error::FallbackForbidden`], and errors of the
    /// device.
    pub fn enter(self, key: impl LiveIn) -> Result<GraphCall<'s>> {
        let mut inputs = self.resolved()?;
        let sizes = inputs.complete()?;
        if let Some(error) = nested(inputs.step, inputs.function) {
            return Err(error);
        }
        GraphCall::enter(inputs, &sizes, &key)
    }
}

/// Returns the error of a call inside another one.
fn nested(rt: &crate::Runtime, function: &GraphObject) -> Option<Error> {
    let core = rt.core.borrow();
    if let Some(outer) = core.call.active() {
        return Some(Error::NestedCall { outer: outer.name, inner: function.spec.name });
    }
    core.call.outside_body("a call of a graph").err()
}
