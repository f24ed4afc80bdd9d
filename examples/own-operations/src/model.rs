//! The model: what is loud in a signal, and where.

use graphable::{custom::CustomOp, prelude::*};

use crate::{fft, windows::windows};

/// Samples of a signal.
pub const SAMPLES: usize = 195;
/// Samples of a window. A prime, for which cuFFT needs a workspace.
pub const LENGTH: usize = 131;
/// Samples between windows.
pub const HOP: usize = 64;
/// Windows of a signal.
pub const WINDOWS: usize = (SAMPLES - LENGTH) / HOP + 1;
/// Frequencies of a window.
pub const BINS: usize = LENGTH / 2 + 1;

/// An operation in Rust: the level of one frequency, in nepers, but not below that of `floor`, which is halved `halvings`
/// times. A call passes a number, a tensor or a scalar as `floor`, and a number as `halvings`.
#[kernel]
fn level(re: f32, im: f32, floor: f32, #[key] halvings: u32) -> f32 {
    let mut least = floor;
    for _ in 0..halvings {
        least *= 0.5;
    }
    0.5 * (re * re + im * im).max(least).ln()
}

/// An operation in Rust that the second segment uses.
#[kernel]
fn weighted(share: f32, gain: f32) -> f32 {
    share * gain / (1.0 + gain.abs())
}

/// What the model is made of. The plans of the library are part of it, as the parameter is.
#[derive(Params)]
pub struct Analyzer {
    pub gain: Param<f32>,
    pub fft: HostContext<CustomOp>,
}

/// The share of each frequency in each window, `[B, WINDOWS, BINS]`.
#[graphable]
pub fn analyze(
    #[host]
    #[dims(B, 195)]
    signal: &Tensor<f32>,
    // On the device: replays use that of their call.
    #[host] floor: &Scalar<f32>,
    analyzer: &Analyzer,
) -> Result<Tensor<f32>> {
    let spectrum = fft::transform(&analyzer.fft, &windows(signal, LENGTH, HOP)?, LENGTH)?;
    let re = ops::squeeze(&ops::narrow(&spectrum, 3, 0, 1)?, 3)?;
    let im = ops::squeeze(&ops::narrow(&spectrum, 3, 1, 1)?, 3)?;
    let levels = level(&re, &im, floor, 1)?;
    let shares = #[eager(support = Always)]
    ops::softmax(&levels, 2)?;
    weighted(&shares, &analyzer.gain)
}
