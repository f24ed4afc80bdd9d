//! The gates of recurrent cells, from the products with input and state.

use super::super::functions::sigmoid;
use crate::kernel;
#[cfg(feature = "cuda")]
use crate::kernel::definition::{Definition, Kernel as _};

/// The new state and cell. Each row holds input gate, forget gate, candidate and output gate.
#[kernel(index)]
pub(super) fn lstm_gates(
    input: View<f32, 2>,
    hidden: View<f32, 2>,
    cell: View<f32, 2>,
    [n, i]: [i32; 2],
) -> (f32, f32) {
    let width = cell.dim(1);
    let enter = sigmoid(input.at([n, i]) + hidden.at([n, i]));
    let keep = sigmoid(input.at([n, i + width]) + hidden.at([n, i + width]));
    let candidate = (input.at([n, i + 2 * width]) + hidden.at([n, i + 2 * width])).tanh();
    let leave = sigmoid(input.at([n, i + 3 * width]) + hidden.at([n, i + 3 * width]));
    let next = keep * cell.at([n, i]) + enter * candidate;
    (leave * next.tanh(), next)
}

/// The new state. Each row holds reset gate, update gate and candidate.
#[kernel(index)]
pub(super) fn gru_gates(
    input: View<f32, 2>,
    hidden: View<f32, 2>,
    state: View<f32, 2>,
    [n, i]: [i32; 2],
) -> f32 {
    let width = state.dim(1);
    let reset = sigmoid(input.at([n, i]) + hidden.at([n, i]));
    let keep = sigmoid(input.at([n, i + width]) + hidden.at([n, i + width]));
    let candidate = (input.at([n, i + 2 * width]) + reset * hidden.at([n, i + 2 * width])).tanh();
    (1.0 - keep) * candidate + keep * state.at([n, i])
}

/// The kernels of this file, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn all() -> [&'static Definition; 2] {
    [lstm_gates::DEFINITION, gru_gates::DEFINITION]
}
