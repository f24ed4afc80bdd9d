//! Answers whose tokens are chosen by a loop on the device.

use graphable::{CaptureProgress, Float, Mode, PinnedLog, Runtime};

use super::{
    adapters::Adapters,
    model::{DecodeLoopGraph, KvCache, LONGEST, Llama, Turn},
};
use crate::{Error, Result};

/// The loop, and where it leaves its tokens as it chooses them.
pub(super) struct DeviceLoop<T: Float> {
    graph: DecodeLoopGraph<T>,
    tokens: PinnedLog<u32>,
}

impl<T: Float> DeviceLoop<T> {
    /// A loop of at most `tokens` tokens in one launch.
    ///
    /// # Errors
    /// [`Error::Option`] if `tokens` is 0 or more than a loop may have; what the runtime says.
    pub(super) fn new(rt: &mut Runtime, mode: Mode, tokens: usize) -> Result<Self> {
        if !(1..=LONGEST as usize).contains(&tokens) {
            return Err(Error::Option {
                option: format!("--device-loop {tokens}"),
                reason: format!("one launch chooses 1 to {LONGEST} tokens"),
                help: "64 is a good number; leave the option out to launch each token by itself".into(),
            });
        }
        let tokens = PinnedLog::new(rt, tokens)?;
        // Without a boundary, so it is one graph in every mode that has graphs.
        let graph = DecodeLoopGraph::<T>::builder().mode(mode.decode()).build(rt)?;
        Ok(Self { graph, tokens })
    }

    /// The largest number of tokens of a launch.
    pub(super) fn most(&self) -> usize {
        self.tokens.capacity()
    }

    /// Records the loop ahead.
    ///
    /// # Errors
    /// What the runtime says.
    pub(super) fn capture(
        &self,
        rt: &mut Runtime,
        model: &Llama<T>,
        adapters: &Adapters<T>,
        kv: &KvCache<T>,
        turn: &Turn,
        progress: impl FnMut(CaptureProgress<'_>),
    ) -> Result<()> {
        Ok(self.graph.capture_all_with(rt, model, adapters, kv, turn, &self.tokens, progress).map(drop)?)
    }

    /// Goes on with an answer whose last token goes to `row`: at least one token, and at most `rounds`, which is at most
    /// [`most`](Self::most). `each` gets the tokens while the device chooses the next ones. Returns their number.
    ///
    /// # Errors
    /// What `each` and the runtime say.
    #[expect(clippy::too_many_arguments, reason = "they are those of the graph")]
    pub(super) fn run(
        &self,
        rt: &mut Runtime,
        row: usize,
        rounds: usize,
        model: &Llama<T>,
        adapters: &Adapters<T>,
        kv: &KvCache<T>,
        turn: &Turn,
        mut each: impl FnMut(u32) -> Result<()>,
    ) -> Result<usize> {
        let step = rt.step()?;
        let mut reader = self.tokens.reader(&step)?;
        let count = self.graph.call(
            &step,
            &[row as u32],
            &[rounds as u32],
            model,
            adapters,
            kv,
            turn,
            &self.tokens,
        )?;
        let count = step.read_later(&count)?;
        let mut seen = 0;
        reader.follow(&count, |token| {
            seen += 1;
            each(token)
        })?;
        if count.wait()? != [seen] || seen == 0 {
            return Err(Error::Model {
                what: "model".into(),
                reason: "the device ended the answer before the host did".into(),
                help: "leave out `--device-loop`, and report this as an error of the example".into(),
            });
        }
        Ok(seen as usize)
    }
}
