//! The detector: weights, the state that it keeps, and the one function that becomes a graph.

use graphable::{ops::ConvConfig, prelude::*};

/// Weights, and the state of the recurrent cell, which the device keeps from one chunk to the next.
#[derive(Params)]
#[params(config = ())]
pub struct Detector {
    /// Cosines and sines of 129 frequencies.
    #[param("stft_conv.weight", shape = [258, 1, 256])]
    waves: Param<f32>,
    #[param("conv1.weight", shape = [128, 129, 3])]
    first: Param<f32>,
    #[param("conv1.bias", shape = [128])]
    first_bias: Param<f32>,
    #[param("conv2.weight", shape = [64, 128, 3])]
    second: Param<f32>,
    #[param("conv2.bias", shape = [64])]
    second_bias: Param<f32>,
    #[param("conv3.weight", shape = [64, 64, 3])]
    third: Param<f32>,
    #[param("conv3.bias", shape = [64])]
    third_bias: Param<f32>,
    #[param("conv4.weight", shape = [128, 64, 3])]
    fourth: Param<f32>,
    #[param("conv4.bias", shape = [128])]
    fourth_bias: Param<f32>,
    #[param("lstm_cell.weight_ih", shape = [512, 128])]
    input: Param<f32>,
    #[param("lstm_cell.weight_hh", shape = [512, 128])]
    hidden: Param<f32>,
    #[param("lstm_cell.bias_ih", shape = [512])]
    input_bias: Param<f32>,
    #[param("lstm_cell.bias_hh", shape = [512])]
    hidden_bias: Param<f32>,
    #[param("final_conv.weight", shape = [1, 128, 1])]
    last: Param<f32>,
    #[param("final_conv.bias", shape = [1])]
    last_bias: Param<f32>,
    #[state(shape = [1, 128])]
    h: State<f32>,
    #[state(shape = [1, 128])]
    c: State<f32>,
}

impl Detector {
    /// Makes it forget what it has heard.
    pub(super) fn forget(&self, step: &Step<'_>) -> Result<()> {
        let zeros = ops::zeros::<f32>(step.scope(), [1, 128])?;
        ops::store(&self.h, &zeros)?;
        ops::store(&self.c, &zeros)
    }
}

/// Samples, and after them the last ones in reverse.
#[kernel(index)]
fn reflected(x: View<f32, 3>, [n, c, i]: [i32; 3]) -> f32 {
    let last = x.dim(2) - 1;
    x.at([n, c, if i <= last { i } else { 2 * last - i }])
}

#[kernel]
fn magnitude(cosine: f32, sine: f32) -> f32 {
    (cosine * cosine + sine * sine).sqrt()
}

/// The probability that there is speech in a chunk of 512 samples, which come after the last 64 of the chunk before. The state
/// becomes that after the chunk.
#[graphable]
pub fn hear(
    #[host]
    #[dims(576)]
    samples: &Tensor<f32>,
    detector: &Detector,
) -> Result<Tensor<f32>> {
    let x = reflected(&ops::reshape(samples, [1, 1, 576])?, [1, 1, 640])?;
    // `[1, frequencies, 4]`: a window of 256 samples every 128.
    let spectrum = ops::split(&ops::conv1d(&x, &detector.waves, ConvConfig::new().stride(128))?, 1, 2)?;
    let x = magnitude(&spectrum[0], &spectrum[1])?;
    let (same, half) = (ConvConfig::new().padding(1), ConvConfig::new().padding(1).stride(2));
    let x = ops::relu(&ops::conv1d_bias(&x, &detector.first, &detector.first_bias, same)?)?;
    let x = ops::relu(&ops::conv1d_bias(&x, &detector.second, &detector.second_bias, half)?)?;
    let x = ops::relu(&ops::conv1d_bias(&x, &detector.third, &detector.third_bias, half)?)?;
    let x = ops::relu(&ops::conv1d_bias(&x, &detector.fourth, &detector.fourth_bias, same)?)?;
    let x = ops::squeeze(&x, 2)?;
    let (h, c) = ops::lstm_cell(
        &x,
        &detector.h,
        &detector.c,
        &detector.input,
        &detector.hidden,
        &detector.input_bias,
        &detector.hidden_bias,
    )?;
    ops::store(&detector.h, &h)?;
    ops::store(&detector.c, &c)?;
    let x = ops::unsqueeze(&ops::relu(&h)?, 2)?;
    ops::sigmoid(&ops::conv1d_bias(&x, &detector.last, &detector.last_bias, ConvConfig::new())?)
}
