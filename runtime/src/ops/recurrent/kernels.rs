//! The gates of recurrent cells, from the products with input and state.

#[cfg(feature = "cuda")]
use crate::{
    kernel::definition::{Definition, Kernel as _},
    ops::by_type::definitions,
};

/// The kernels of a type, with the function of that type.
macro_rules! gates {
    ($($module:ident $t:ident [$($functions:tt)*];)*) => {$(
        pub(super) mod $module {
            use $($functions)*::sigmoid;
            use crate::kernel;

            /// The new state and cell. Each row holds input gate, forget gate, candidate and output gate.
            #[kernel(index)]
            pub(in crate::ops) fn lstm_gates(
                input: View<$t, 2>,
                hidden: View<$t, 2>,
                cell: View<$t, 2>,
                [n, i]: [i32; 2],
            ) -> ($t, $t) {
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
            pub(in crate::ops) fn gru_gates(
                input: View<$t, 2>,
                hidden: View<$t, 2>,
                state: View<$t, 2>,
                [n, i]: [i32; 2],
            ) -> $t {
                let width = state.dim(1);
                let reset = sigmoid(input.at([n, i]) + hidden.at([n, i]));
                let keep: $t = sigmoid(input.at([n, i + width]) + hidden.at([n, i + width]));
                let candidate = (input.at([n, i + 2 * width]) + reset * hidden.at([n, i + 2 * width])).tanh();
                (1.0 - keep) * candidate + keep * state.at([n, i])
            }
        }
    )*};
}

gates! {
    floats f32 [crate::ops::functions];
    doubles f64 [crate::ops::functions::doubles];
}

/// The kernels of this file, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn all() -> impl Iterator<Item = &'static Definition> {
    definitions!([floats, doubles] [lstm_gates, gru_gates])
}
