//! Cells of recurrent networks: two products, and a kernel for all gates.

use self::kernels as k;
use super::{
    by_type::of_reals,
    check::{meet, refuse},
    launch::own,
    matmul::project,
};
use crate::{
    AsOperand, Real, Result, Scope, Tensor,
    kernel::{
        call::{Call, Results},
        definition::Definition,
    },
    tensor::{Operand, Shown},
};

mod kernels;

/// The kernels of recurrent cells, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    kernels::all()
}

/// Computes one step of an LSTM: returns the new hidden state and the new cell state, both `[B, H]`.
///
/// As `torch.nn.LSTMCell`: `x` is `[B, I]`, `h` and `c` are `[B, H]`, `w_ih` is `[4 H, I]`, `w_hh` is `[4 H, H]`, and both
/// biases are `[4 H]`, with the rows of the input gate, the forget gate, the candidate and the output gate one below the
/// other. The two products are rounded to `T`; the gates are computed in f32. Padding of the batch propagates. State that
/// lives longer than a call is a [`State`](crate::State), to be written with [`store`](crate::ops::store).
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let (x, h, c) = (step.tensor(&[1, 1], &[1.0f32])?, step.tensor(&[1, 1], &[0.0f32])?, step.tensor(&[1, 1], &[2.0f32])?);
/// // The candidate alone depends on the input; all gates are half open.
/// let w_ih = step.tensor(&[4, 1], &[0.0f32, 0.0, 100.0, 0.0])?;
/// let (w_hh, b) = (step.tensor(&[4, 1], &[0.0f32; 4])?, step.tensor(&[4], &[0.0f32; 4])?);
/// let (h, c) = ops::lstm_cell(&x, &h, &c, &w_ih, &w_hh, &b, &b)?;
/// assert_eq!(step.read(&c)?, [0.5 * 2.0 + 0.5]);
/// assert_eq!(step.read(&h)?, [0.5 * 1.5f32.tanh()]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`](crate::Error::Shape) if the shapes do not fit together; [`Error::PaddedMix`](crate::Error::PaddedMix) if
/// anything but the batch is padded, or the batches by different symbols.
pub fn lstm_cell<'s, T: Real>(
    x: &Tensor<'s, T>,
    h: &(impl AsOperand<'s, T> + ?Sized),
    c: &(impl AsOperand<'s, T> + ?Sized),
    w_ih: &(impl AsOperand<'s, T> + ?Sized),
    w_hh: &(impl AsOperand<'s, T> + ?Sized),
    b_ih: &(impl AsOperand<'s, T> + ?Sized),
    b_hh: &(impl AsOperand<'s, T> + ?Sized),
) -> Result<(Tensor<'s, T>, Tensor<'s, T>)> {
    const NAME: &str = "lstm_cell";
    let scope = x.scope();
    let weights = [w_ih.operand(NAME, scope)?, w_hh.operand(NAME, scope)?];
    let biases = [b_ih.operand(NAME, scope)?, b_hh.operand(NAME, scope)?];
    let cell = Cell { op: NAME, gates: 4, weights, biases };
    let (h, c) = (h.operand(NAME, scope)?, c.operand(NAME, scope)?);
    cell.run::<T, _>(x, h, c, of_reals!(k::floats::lstm_gates, k::doubles::lstm_gates))
}

/// Computes one step of a GRU: returns the new hidden state, `[B, H]`.
///
/// As `torch.nn.GRUCell`: `x` is `[B, I]`, `h` is `[B, H]`, `w_ih` is `[3 H, I]`, `w_hh` is `[3 H, H]`, and both biases are
/// `[3 H]`, with the rows of the reset gate, the update gate and the candidate one below the other. Otherwise as
/// [`lstm_cell`].
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let (x, h) = (step.tensor(&[1, 1], &[1.0f32])?, step.tensor(&[1, 1], &[2.0f32])?);
/// let w_ih = step.tensor(&[3, 1], &[0.0f32, 0.0, 100.0])?;
/// let (w_hh, b) = (step.tensor(&[3, 1], &[0.0f32; 3])?, step.tensor(&[3], &[0.0f32; 3])?);
/// assert_eq!(step.read(&ops::gru_cell(&x, &h, &w_ih, &w_hh, &b, &b)?)?, [0.5 * 1.0 + 0.5 * 2.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`lstm_cell`].
pub fn gru_cell<'s, T: Real>(
    x: &Tensor<'s, T>,
    h: &(impl AsOperand<'s, T> + ?Sized),
    w_ih: &(impl AsOperand<'s, T> + ?Sized),
    w_hh: &(impl AsOperand<'s, T> + ?Sized),
    b_ih: &(impl AsOperand<'s, T> + ?Sized),
    b_hh: &(impl AsOperand<'s, T> + ?Sized),
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "gru_cell";
    let scope = x.scope();
    let weights = [w_ih.operand(NAME, scope)?, w_hh.operand(NAME, scope)?];
    let biases = [b_ih.operand(NAME, scope)?, b_hh.operand(NAME, scope)?];
    let cell = Cell { op: NAME, gates: 3, weights, biases };
    let h = h.operand(NAME, scope)?;
    cell.run::<T, _>(x, h, h, of_reals!(k::floats::gru_gates, k::doubles::gru_gates))
}

/// A cell: what its products take.
struct Cell {
    op: &'static str,
    gates: usize,
    /// Of the input, and of the state.
    weights: [Operand; 2],
    biases: [Operand; 2],
}

impl Cell {
    /// One step; `memory` is the state that the gates keep or replace.
    fn run<'s, T: Real, R: Results<'s>>(
        &self,
        x: &Tensor<'s, T>,
        h: Operand,
        memory: Operand,
        gates: &'static Definition,
    ) -> Result<R> {
        let (op, scope) = (self.op, x.scope());
        let input = own(op, x)?;
        let width = self.check(scope, [input, h, memory])?;
        let [w_ih, w_hh] = self.weights;
        let [b_ih, b_hh] = self.biases;
        let input: Tensor<'s, T> = project(op, scope, input, w_ih, Some(b_ih))?;
        let hidden: Tensor<'s, T> = project(op, scope, h, w_hh, Some(b_hh))?;
        let mut call = Call::new(gates, &input)?;
        call.argument::<T>(&hidden)?;
        call.operand(memory);
        call.launch_indexed((x.dim(0), width))
    }

    /// Checks input and states, each `[B, ..]`, and what belongs to them. Returns the width of the state.
    fn check(&self, scope: Scope<'_>, [x, h, memory]: [Operand; 3]) -> Result<usize> {
        let op = self.op;
        for (operand, first) in [(x, 1), (h, 1), (memory, 1)].into_iter().chain(self.owned().map(|o| (o, 0)))
        {
            refuse(op, scope, operand.marks, first..operand.view.layout.rank())?;
        }
        let wrong = |reason: String| {
            let owned: Vec<Operand> = [x, h, memory].into_iter().chain(self.owned()).collect();
            let shown: Vec<Shown<'_>> = owned.iter().map(Shown::from).collect();
            Err(scope.shape_error(op, &shown, reason))
        };
        let (&[batch, inner], &[rows, width]) = (x.view.layout.shape(), h.view.layout.shape()) else {
            return wrong("the input must be `[B, I]` and each state `[B, H]`".to_owned());
        };
        let mark = meet(op, scope, 0, x.marks.get(0), h.marks.get(0))?;
        meet(op, scope, 0, mark, memory.marks.get(0))?;
        if rows != batch || memory.view.layout.shape() != [batch, width] {
            return wrong(format!(
                "the batch of the input is {batch}, so each state must be [{batch}, {width}]"
            ));
        }
        let all = self.gates * width;
        let fit =
            self.weights.iter().zip([inner, width]).all(|(w, from)| w.view.layout.shape() == [all, from])
                && self.biases.iter().all(|b| b.view.layout.shape() == [all]);
        if !fit {
            return wrong(format!(
                "with a state of {width}, the weights must be [{all}, {inner}] and [{all}, {width}], and the biases [{all}]"
            ));
        }
        Ok(width)
    }

    fn owned(&self) -> impl Iterator<Item = Operand> {
        self.weights.into_iter().chain(self.biases)
    }
}
