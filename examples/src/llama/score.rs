//! How likely a model finds a text.

use graphable::{Schedule, prelude::*};

use super::{
    Config,
    adapters::{Adapters, route},
    model::{KvCache, Llama, attend, embed, feed_forward, logits, project_heads, turning},
    session::{PIECES, pieces},
};
use crate::{
    Result as Outcome,
    checkpoint::{Blocks, Checkpoint, LoadProgress},
};

/// The label of a token that is not scored.
pub(crate) const IGNORED: i32 = -100;

/// Reads a piece of a text that goes up to the position `end`, `[1]`: `tokens` and their `positions`, `[T]`. Gives for each the negative logarithm of the probability that the
/// token of `labels`, `[T]`, follows, in f32, or 0 where the label is -100, as in PyTorch.
#[graphable]
pub fn score<T: Float>(
    #[host]
    #[dims(T)]
    tokens: &Tensor<u32>,
    #[host]
    #[dims(T)]
    positions: &Tensor<u32>,
    #[host]
    #[dims(1)]
    end: &Tensor<u32>,
    #[host]
    #[dims(T)]
    labels: &Tensor<i32>,
    model: &Llama<T>,
    adapters: &Adapters<T>,
    kv: &KvCache<T>,
) -> Result<Tensor<f32>> {
    let routes = route(tokens, adapters)?;
    let turning = turning(positions, end, model)?;
    let mut h = embed(tokens, model)?;
    for ((layer, cache), lora) in model.layers.iter().zip(&kv.layers).zip(&adapters.layers) {
        let turns = layer.turns(&turning, positions);
        let qkv = project_heads(&h, turns, layer, lora, &routes)?;
        let attended = attend(&qkv, turns, positions, positions, layer, cache)?;
        h = feed_forward(&h, &attended, layer, lora, &routes)?;
    }
    let logits = ops::cast::<T, f32>(&logits(&h, model)?)?;
    ops::cross_entropy(&logits, labels, IGNORED, 0.0)
}

/// A model on a device, ready to score texts.
pub struct Scorer<T: Float = f32> {
    graph: ScoreGraph<T>,
    model: Llama<T>,
    adapters: Adapters<T>,
    kv: KvCache<T>,
    rt: Runtime,
    /// Tokens of the longest text.
    context: usize,
    mode: Mode,
}

impl<T: Float> Scorer<T> {
    /// Loads a model for texts of up to `context` tokens, at most as many as it was trained for. `progress` is told before the first
    /// tensor and after each.
    ///
    /// # Errors
    /// Those of [`Session::load`](super::Session::load), but for sampling.
    pub fn load(
        files: &impl Checkpoint,
        config: &Config,
        device: Device,
        mode: Mode,
        context: usize,
        blocks: Blocks,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Outcome<Self> {
        let mut rt = Runtime::new(device)?;
        let model = files.load(&rt, config, blocks, progress)?;
        let context = context.clamp(1, config.context);
        let kv = KvCache::new(&rt, config, context)?;
        let graph = ScoreGraph::<T>::builder().bucket("T", Schedule::new(PIECES)).mode(mode.mixed());
        let graph = graph.build(&mut rt)?;
        Ok(Self { graph, model, adapters: Adapters::none(config), kv, rt, context, mode })
    }

    /// The weights.
    pub fn model(&self) -> &Llama<T> {
        &self.model
    }

    /// The negative logarithm of the probability of each label after the tokens up to its place; 0 for labels of -100. There are as many
    /// labels as tokens, and no more than the context.
    ///
    /// # Errors
    /// What the runtime says.
    pub fn losses(&mut self, tokens: &[u32], labels: &[i32]) -> Outcome<Vec<f32>> {
        debug_assert!(tokens.len() == labels.len() && tokens.len() <= self.context);
        let mut losses = Vec::with_capacity(tokens.len());
        let end = [tokens.len().saturating_sub(1) as u32];
        for (start, piece) in pieces(0, tokens, self.mode) {
            let Self { graph, model, adapters, kv, rt, .. } = &mut *self;
            let step = rt.step()?;
            let positions: Vec<u32> = (start as u32..).take(piece.len()).collect();
            let labels = &labels[start..start + piece.len()];
            let out = graph.call(&step, piece, &positions, &end, labels, model, adapters, kv)?;
            losses.extend(step.read(&out)?);
        }
        Ok(losses)
    }
}
