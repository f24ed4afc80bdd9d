//! Parameters of which each row has one.

use std::fmt;

use crate::{Argument, AsOperand, Result, kernel::call::Call};

/// A parameter of sampling: a number for all rows, or a reference to a tensor, a [`Scalar`](crate::Scalar), a
/// [`Param`](crate::Param) or a [`State`](crate::State) with a value for each row, which is read on the device.
///
/// It has the dimensions of the logits without the last one, and broadcasts to these: `[B]` for logits of `[B, V]`, where a
/// `[B, 1]` is refused. With logits of `[V]` or `[1, V]`, a `[B]` makes `B` rows of them.
#[derive(Clone, Copy)]
pub struct PerRow<'a, 's, T>(Value<'a, 's, T>);

#[derive(Clone, Copy)]
enum Value<'a, 's, T> {
    Number(T),
    Operand(&'a dyn AsOperand<'s, T>),
}

impl<'s, T: Copy> PerRow<'_, 's, T> {
    /// The number, if it is one.
    pub(super) fn number(&self) -> Option<T> {
        match self.0 {
            Value::Number(number) => Some(number),
            Value::Operand(_) => None,
        }
    }
}

impl<'s, T> Argument<'s, T> for PerRow<'_, 's, T>
where
    T: Argument<'s, T>,
{
    fn give(self, call: &mut Call<'s>) -> Result<()> {
        match self.0 {
            Value::Number(number) => number.give(call),
            Value::Operand(operand) => {
                operand.give(call)?;
                call.refuse_more_dimensions()
            }
        }
    }
}

impl From<f32> for PerRow<'_, '_, f32> {
    fn from(number: f32) -> Self {
        Self(Value::Number(number))
    }
}

impl From<u32> for PerRow<'_, '_, u32> {
    fn from(number: u32) -> Self {
        Self(Value::Number(number))
    }
}

impl<'a, 's, T, A: AsOperand<'s, T>> From<&'a A> for PerRow<'a, 's, T> {
    fn from(operand: &'a A) -> Self {
        Self(Value::Operand(operand))
    }
}

impl<T: fmt::Debug> fmt::Debug for PerRow<'_, '_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Value::Number(number) => number.fmt(f),
            Value::Operand(_) => f.write_str("on the device"),
        }
    }
}
