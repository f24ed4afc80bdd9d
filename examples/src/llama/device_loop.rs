//! Answers whose tokens are chosen by a loop on the device.

use graphable::{CaptureProgress, Mode, Runtime, State, ops};

use super::model::{DecodeLoopGraph, KvCache, LONGEST, Llama, Turn};
use crate::{Error, Result};

/// The loop, and where it leaves its tokens.
pub(super) struct DeviceLoop {
    graph: DecodeLoopGraph,
    output: State<u32>,
}

impl DeviceLoop {
    /// A loop of at most `tokens` tokens in one launch.
    ///
    /// # Errors
    /// [`Error::Option`] if `tokens` is 0 or more than a loop may have; what the runtime says.
    pub(super) fn new(rt: &mut Runtime, mode: Mode, tokens: usize) -> Result<Self> {
        if !(1..=LONGEST as usize).contains(&tokens) {
            return Err(Error::Option {
                option: format!("--device-loop {tokens}"),
                why: format!("one launch chooses 1 to {LONGEST} tokens"),
                help: "64 is a good number; leave the option out to launch each token by itself".into(),
            });
        }
        let output = State::zeros(rt, &[tokens])?;
        // Without a boundary, so it is one graph in every mode that has graphs.
        let graph = DecodeLoopGraph::builder().mode(mode.decode()).build(rt)?;
        Ok(Self { graph, output })
    }

    /// The largest number of tokens of a launch.
    pub(super) fn most(&self) -> usize {
        self.output.shape()[0]
    }

    /// Records the loop ahead.
    ///
    /// # Errors
    /// What the runtime says.
    pub(super) fn capture(
        &self,
        rt: &mut Runtime,
        model: &Llama,
        kv: &KvCache,
        turn: &Turn,
        progress: impl FnMut(CaptureProgress<'_>),
    ) -> Result<()> {
        Ok(self.graph.capture_all_with(rt, model, kv, turn, &self.output, progress).map(drop)?)
    }

    /// Goes on with an answer whose last token goes to `row`; returns the next tokens, at least one and at most `rounds`,
    /// which is at most [`most`](Self::most).
    ///
    /// # Errors
    /// What the runtime says.
    pub(super) fn run(
        &self,
        rt: &mut Runtime,
        row: usize,
        rounds: usize,
        model: &Llama,
        kv: &KvCache,
        turn: &Turn,
    ) -> Result<Vec<u32>> {
        let step = rt.step()?;
        let count = self.graph.call(&step, &[row as u32], &[rounds as u32], model, kv, turn, &self.output)?;
        let tokens = ops::load(step.scope(), &self.output)?;
        let (count, tokens) = (step.read_later(&count)?, step.read_later(&tokens)?);
        let count = count.wait()?[0] as usize;
        let mut tokens = tokens.wait()?;
        tokens.truncate(count);
        if tokens.is_empty() {
            return Err(Error::Model {
                what: "model".into(),
                why: "the device ended the answer before the host did".into(),
                help: "leave out `--device-loop`, and report this as an error of the example".into(),
            });
        }
        Ok(tokens)
    }
}
