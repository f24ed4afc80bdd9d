//! A detector that listens: weights and graph behind one function.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use graphable::{
    CaptureProgress, Device, Mode, Runtime,
    load::{self, SafeTensors},
};

use super::model::{Detector, HearGraph};
use crate::{Error, Result};

/// Samples of a chunk, at 16 kHz.
pub const CHUNK: usize = 512;
/// Samples of the chunk before that the detector hears again.
const CONTEXT: usize = 64;

/// The time of all chunks together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Number of chunks.
    pub chunks: u32,
    /// Until the host had handed a chunk over.
    pub host: Duration,
    /// Until it had the probability.
    pub whole: Duration,
}

/// A detector on a device, with what it remembers.
pub struct Listener {
    graph: HearGraph,
    detector: Detector,
    rt: Runtime,
    /// The end of the chunk before, and the chunk.
    samples: [f32; CONTEXT + CHUNK],
    times: Times,
}

impl Listener {
    /// Loads `silero_vad_16k.safetensors`.
    ///
    /// # Errors
    /// If it cannot be read; if tensors are missing or have other shapes (all of them in one error); if the device has no
    /// room.
    pub fn load(path: &Path, device: Device, mode: Mode) -> Result<Self> {
        let help = "use the file `silero_vad_16k.safetensors` of silero-vad 6";
        let wrong = |source| Error::Weights { source, help };
        let weights = SafeTensors::open(path).map_err(wrong)?;
        let mut rt = Runtime::new(device)?;
        let detector = load::load::<Detector>(&rt, &weights, &()).map_err(wrong)?;
        // Each chunk is what a token is to a language model.
        let graph = HearGraph::builder().mode(mode.decode()).build(&mut rt)?;
        Ok(Self { graph, detector, rt, samples: [0.0; CONTEXT + CHUNK], times: Times::default() })
    }

    /// The runtime, for its counters and events.
    pub fn runtime(&self) -> &Runtime {
        &self.rt
    }

    /// How long the chunks took.
    pub fn times(&self) -> Times {
        self.times
    }

    /// Records the graph ahead; then nothing has been heard.
    ///
    /// # Errors
    /// What the runtime says.
    pub fn capture(&mut self, progress: impl FnMut(CaptureProgress<'_>)) -> Result<()> {
        self.graph.capture_all_with(&mut self.rt, &self.detector, progress)?;
        self.forget()
    }

    /// Makes the next chunk the first one.
    ///
    /// # Errors
    /// What the runtime says.
    pub fn forget(&mut self) -> Result<()> {
        self.samples = [0.0; CONTEXT + CHUNK];
        self.times = Times::default();
        Ok(self.detector.forget(&self.rt.step()?)?)
    }

    /// The probability that there is speech in the next chunk. Samples are between -1 and 1.
    ///
    /// # Errors
    /// What the runtime says; [`Error::Model`] if the probability is not a number, which those of all later chunks are not
    /// either.
    pub fn hear(&mut self, chunk: &[f32; CHUNK]) -> Result<f32> {
        let begin = Instant::now();
        self.samples.copy_within(CHUNK.., 0);
        self.samples[CONTEXT..].copy_from_slice(chunk);
        let step = self.rt.step()?;
        let probability = self.graph.call(&step, &self.samples, &self.detector)?;
        self.times.host += begin.elapsed();
        let probability = step.read(&probability)?;
        self.times.whole += begin.elapsed();
        self.times.chunks += 1;
        // A tensor of one element.
        let probability: f32 = probability.into_iter().sum();
        if probability.is_nan() {
            return Err(Error::Model {
                what: format!("chunk {}", self.times.chunks),
                reason: "its probability is not a number".into(),
                help: "check the weights, and that samples are between -1 and 1".into(),
            });
        }
        Ok(probability)
    }
}
