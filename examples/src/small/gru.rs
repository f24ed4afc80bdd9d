//! A recurrent network of one GRU cell ("Learning Phrase Representations using RNN Encoder-Decoder", Cho et al., 2014) whose
//! memory stays on the device: `State`, and a store at the end of each step.

use graphable::prelude::*;

/// Weights, and what the cell remembers.
#[derive(Params)]
#[params(config = ())]
pub struct Gru {
    #[param(shape = [12, 3])]
    w_ih: Param<f32>,
    #[param(shape = [12, 4])]
    w_hh: Param<f32>,
    #[param(shape = [12])]
    b_ih: Param<f32>,
    #[param(shape = [12])]
    b_hh: Param<f32>,
    #[state(shape = [1, 4])]
    h: State<f32>,
}

/// The memory `[1, 4]` after one more value `[1, 3]` of a sequence.
#[graphable]
pub fn recall(
    #[host]
    #[dims(1, 3)]
    x: &Tensor<f32>,
    model: &Gru,
) -> Result<Tensor<f32>> {
    let h = ops::gru_cell(x, &model.h, &model.w_ih, &model.w_hh, &model.b_ih, &model.b_hh)?;
    ops::store(&model.h, &h)?;
    Ok(h)
}
