//! The rule for the gradients of an operation, written with operations.

use std::fmt;

use super::CustomOp;
use crate::{DType, Element, Error, Result, Tensor};

/// A rule, as [`CustomOpBuilder::gradient`](super::CustomOpBuilder::gradient) takes it.
pub(super) type Rule = dyn for<'s> Fn(&mut Backward<'_, 's>) -> Result<()> + Send + Sync;

/// A tensor whose element type is known when the program runs: `(&x).into()`.
pub struct AnyTensor<'s>(Tensor<'s, Untyped>);

/// In place of an element type.
#[derive(Clone)]
struct Untyped;

impl<'s> AnyTensor<'s> {
    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.0.raw.dtype
    }

    /// Returns the tensor.
    ///
    /// # Errors
    /// Returns [`Error::DTypeMismatch`] if its elements are not `T`.
    pub fn typed<T: Element>(&self) -> Result<Tensor<'s, T>> {
        if self.dtype() != T::DTYPE {
            let what = "the tensor".to_owned();
            return Err(Error::DTypeMismatch { what, expected: T::DTYPE, found: self.dtype() });
        }
        Ok(Tensor::from_raw(self.0.rt, self.0.clone().into_raw()))
    }

    fn of<T: Element>(tensor: &Tensor<'s, T>) -> Self {
        Self(Tensor::from_raw(tensor.rt, tensor.clone().into_raw()))
    }
}

impl<'s, T: Element> From<&Tensor<'s, T>> for AnyTensor<'s> {
    fn from(tensor: &Tensor<'s, T>) -> Self {
        Self::of(tensor)
    }
}

impl Clone for AnyTensor<'_> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl fmt::Debug for AnyTensor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One use of a rule: what a launch read and wrote, and the gradients of its outputs. The rule computes those of its
/// inputs.
pub struct Backward<'a, 's> {
    op: &'static str,
    inputs: &'a [AnyTensor<'s>],
    outputs: &'a [AnyTensor<'s>],
    given: &'a [AnyTensor<'s>],
    found: Vec<Option<AnyTensor<'s>>>,
}

impl<'s> Backward<'_, 's> {
    /// Returns an input of the launch, counted from 0.
    ///
    /// # Errors
    /// Returns [`Error::Argument`] if there is none with this number; [`Error::DTypeMismatch`].
    pub fn input<T: Element>(&self, index: usize) -> Result<Tensor<'s, T>> {
        self.get("input", self.inputs, index)?.typed()
    }

    /// Returns an output of the launch, counted from 0.
    ///
    /// # Errors
    /// As [`input`](Self::input).
    pub fn output<T: Element>(&self, index: usize) -> Result<Tensor<'s, T>> {
        self.get("output", self.outputs, index)?.typed()
    }

    /// Returns the gradient of an output.
    ///
    /// # Errors
    /// As [`input`](Self::input).
    pub fn gradient<T: Element>(&self, output: usize) -> Result<Tensor<'s, T>> {
        self.get("output", self.given, output)?.typed()
    }

    /// Sets the gradient of an input. An input for which none is set has none.
    ///
    /// # Errors
    /// Returns [`Error::Argument`] if there is no such input; [`Error::DTypeMismatch`] and [`Error::Shape`] if the
    /// gradient does not have the element type and the shape of the input.
    pub fn set_gradient<T: Element>(&mut self, input: usize, gradient: &Tensor<'s, T>) -> Result<()> {
        let value = self.get("input", self.inputs, input)?;
        check_alike(self.op, "input", value, &gradient.into())?;
        self.found[input] = Some(gradient.into());
        Ok(())
    }

    fn get<'l>(&self, what: &str, list: &'l [AnyTensor<'s>], index: usize) -> Result<&'l AnyTensor<'s>> {
        list.get(index).ok_or_else(|| {
            let reason = format!("there is no {what} {index}; the launch has {} of them, from 0", list.len());
            Error::Argument { op: self.op, reason }
        })
    }
}

impl fmt::Debug for Backward<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backward").field("op", &self.op).field("inputs", &self.inputs).finish_non_exhaustive()
    }
}

/// Refuses a gradient that is not of the type and shape of its value.
fn check_alike(op: &'static str, what: &str, value: &AnyTensor<'_>, gradient: &AnyTensor<'_>) -> Result<()> {
    if value.dtype() != gradient.dtype() {
        let what = format!("the gradient of an {what} of `{op}`");
        return Err(Error::DTypeMismatch { what, expected: value.dtype(), found: gradient.dtype() });
    }
    let (shape, given) = (value.0.raw.layout, gradient.0.raw.layout);
    if shape.shape() != given.shape() || value.0.raw.marks != gradient.0.raw.marks {
        let reason = format!("a gradient has the shape of its {what}, and is padded alike");
        return Err(value.0.scope().shape_error(op, &[(&value.0).into(), (&gradient.0).into()], reason));
    }
    Ok(())
}

impl CustomOp {
    /// Computes the gradients of the inputs of a launch from those of its outputs, by the
    /// [rule](super::CustomOpBuilder::gradient) of the operation. The lists hold what the launch read, what it wrote, and
    /// the gradient of each output; the result is one gradient for each input, `None` where the rule sets none.
    ///
    /// The rule is ordinary code on tensors: in a segment, what it launches is recorded.
    ///
    /// # Errors
    /// Returns [`Error::Argument`] if the operation has no rule, or if there are not as many gradients as outputs;
    /// [`Error::DTypeMismatch`] and [`Error::Shape`] if a gradient is not of its output's element type and shape; the
    /// errors of the rule.
    pub fn backward<'s>(
        &self,
        inputs: &[AnyTensor<'s>],
        outputs: &[AnyTensor<'s>],
        gradients: &[AnyTensor<'s>],
    ) -> Result<Vec<Option<AnyTensor<'s>>>> {
        let op = self.name();
        let Some(rule) = &self.0.gradient else {
            let reason = "it has no rule for gradients; `CustomOpBuilder::gradient` sets one".into();
            return Err(Error::Argument { op, reason });
        };
        if outputs.len() != gradients.len() {
            let reason =
                format!("{} outputs and {} gradients; each output has one", outputs.len(), gradients.len());
            return Err(Error::Argument { op, reason });
        }
        for (output, gradient) in outputs.iter().zip(gradients) {
            check_alike(op, "output", output, gradient)?;
        }
        let found = vec![None; inputs.len()];
        let mut pass = Backward { op, inputs, outputs, given: gradients, found };
        rule(&mut pass)?;
        Ok(pass.found)
    }
}
