//! Filling the static buffers of inputs in place, so that calls have nothing to copy.

use std::{fmt, marker::PhantomData, sync::Arc};

use super::{
    GraphObject,
    bind::Binding,
    inputs::Inputs,
    spec::{Dim, DimsSpec},
    static_inputs::Fill,
};
use crate::{
    Element, Error, HostSlice, Result, Runtime, Step, Tensor,
    value::{
        layout::{Layout, PaddedDims},
        owned::Owned,
    },
};

/// The memory of one tensor input of a graph, which keeps its address from call to call.
///
/// A call copies its inputs there: host data on every call, and device tensors if a bucket pads them. What was written
/// there beforehand, by [`fill`](Self::fill) or [`fill_from`](Self::fill_from), is passed to `call` like any other
/// tensor and copied no more, in any number of calls:
///
/// ```
/// use graphable::prelude::*;
///
/// #[graphable]
/// fn scale(#[host] #[dims(B)] x: &Tensor<f32>, #[host] by: &Scalar<f32>) -> Result<Tensor<f32>> {
///     ops::mul(x, by)
/// }
///
/// # fn main() -> Result<()> {
/// let mut rt = Runtime::new(Device::cpu())?;
/// let graph = ScaleGraph::builder().bucket("B", Schedule::new([4, 8])).build(&mut rt)?;
/// let step = rt.step()?;
/// let x = graph.buffers().x.fill(&step, &[1.0, 2.0, 3.0])?;
/// for by in [2.0, 3.0] {
///     let y = graph.call(&step, &x, by)?;
///     assert_eq!(step.read(&y)?, [by, 2.0 * by, 3.0 * by]);
/// }
/// # Ok(())
/// # }
/// ```
///
/// A tensor that was returned keeps its values: as long as it is alive, calls and fills with other data use another
/// buffer, which is recorded once more. The data itself stays after the step, until other data needs the buffer;
/// [`filled`](Self::filled) returns it again.
///
/// Padding is that of the bucket for the sizes of the data. A call that pads otherwise, for example for a uniform
/// decode with sizes of its own, copies the data, which [`CopySlot::Input`](crate::CopySlot::Input) counts.
pub struct StaticInput<'g, T> {
    graph: &'g GraphObject,
    index: usize,
    _type: PhantomData<fn() -> T>,
}

impl<'g, T> StaticInput<'g, T> {
    /// Refers to the buffers of input `index`.
    #[doc(hidden)]
    pub fn new(graph: &'g GraphObject, index: usize) -> Self {
        Self { graph, index, _type: PhantomData }
    }

    /// Returns the name of the parameter.
    pub fn name(&self) -> &'static str {
        self.graph.spec.inputs[self.index].name
    }
}

impl<T: Element> StaticInput<'_, T> {
    /// Copies host data (row-major) to the memory of the input, and returns it as a tensor.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the shape contradicts `#[dims]` or does not follow from the length, or a padded
    /// dimension is 0; [`Error::DifferentRuntimes`]; [`Error::NestedCall`] inside a call; and errors of the device.
    pub fn fill<'s, 'a>(&self, step: &Step<'s>, data: impl Into<HostSlice<'a, T>>) -> Result<Tensor<'s, T>> {
        let mut inputs = Inputs::new(step, self.graph);
        inputs.host(self.index, data.into());
        self.write(inputs)
    }

    /// Copies a tensor to the memory of the input, and returns the copy, which is contiguous whatever the strides of
    /// `tensor` are. A product of floats is summed in an order that depends on the strides of its operands, so a product of the
    /// copy may differ in the last bits from one of `tensor`.
    ///
    /// # Errors
    /// See [`fill`](Self::fill); returns [`Error::NeverComputed`] for a tensor whose memory is gone.
    pub fn fill_from<'s>(&self, step: &Step<'s>, tensor: &Tensor<'s, T>) -> Result<Tensor<'s, T>> {
        let mut inputs = Inputs::new(step, self.graph);
        inputs.device(self.index, tensor);
        self.write(inputs)
    }

    /// Returns the data of the last fill, of this or an earlier step.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if there was none, or a call with other data needed its memory since;
    /// [`Error::DifferentRuntimes`]; [`Error::NestedCall`] inside a call.
    pub fn filled<'s>(&self, step: &Step<'s>) -> Result<Tensor<'s, T>> {
        let rt = Inputs::new(step, self.graph).resolved()?.step;
        let Some((fill, memory)) = self.graph.last_fill(self.index) else {
            let reason = "its memory was not filled, or a call needed it for other data since; fill it again"
                .to_owned();
            return Err(Error::Input { function: self.graph.spec.name, input: self.name(), reason });
        };
        if rt.core.borrow().memory.shows_static(&fill.tensor) {
            rt.retain(fill.tensor.slot, fill.tensor.epoch);
            return Ok(Tensor::from_raw(rt, fill.tensor));
        }
        self.lend(rt, &memory, fill.tensor.layout.shape(), fill.padded)
    }

    /// Writes the only input that is given to the input's memory.
    fn write<'s>(&self, inputs: Inputs<'s, '_>) -> Result<Tensor<'s, T>> {
        let inputs = inputs.resolved()?;
        let (rt, given) = (inputs.step, &inputs.given[self.index]);
        let mut binding = Binding::new(rt, self.graph, &[]);
        let (memory, padded) = binding.fill(self.index, given, &self.padded(given.shape())?)?;
        binding.send_now()?;
        self.lend(rt, &memory, given.shape(), padded)
    }

    /// Returns a shape with the padding of the bucket for its sizes.
    fn padded(&self, shape: &[usize]) -> Result<Vec<usize>> {
        let DimsSpec::Some(dims) = self.graph.spec.inputs[self.index].dims else { return Ok(shape.to_vec()) };
        let padded = |(dim, &size): (&Dim, &usize)| {
            let Dim::Symbol(symbol) = *dim else { return Ok(size) };
            match &self.graph.schedules[symbol] {
                Some(_) if size == 0 => Err(self.graph.empty(symbol, self.name())),
                // Above the largest bucket, calls fall back to no graph and no padding.
                Some(schedule) => Ok(schedule.round_up(size).unwrap_or(size)),
                None => Ok(size),
            }
        };
        dims.iter().zip(shape).map(padded).collect()
    }

    /// Returns the data in a buffer as a tensor, and notes that the caller has it.
    fn lend<'s>(
        &self,
        rt: &'s Runtime,
        memory: &Arc<Owned>,
        shape: &[usize],
        padded: Layout,
    ) -> Result<Tensor<'s, T>> {
        let layout = Layout::strided(shape, padded.strides())?;
        let tensor = rt.adopt_static(memory, T::DTYPE, layout, PaddedDims::NONE);
        self.graph.note_fill(self.index, memory, Fill { tensor, padded });
        Ok(Tensor::from_raw(rt, tensor))
    }
}

impl<T> fmt::Debug for StaticInput<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticInput").field("name", &self.name()).finish_non_exhaustive()
    }
}
