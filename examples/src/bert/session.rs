//! Sentences to vectors: tokenizer, weights and graph behind one function.

use std::path::Path;

use graphable::{
    CaptureProgress, Device, Mode, Runtime, Schedule,
    load::{self, SafeTensors},
};

use super::{
    Config,
    model::{Bert, EncodeGraph},
};
use crate::{Error, Result, sentence::SentenceTokenizer};

/// Buckets of the number of sentences. More are encoded in several batches.
const BATCHES: [usize; 3] = [1, 4, 8];

/// Buckets of the number of tokens.
const LENGTHS: [usize; 4] = [16, 32, 64, 128];

/// A sentence encoder on a device.
pub struct Encoder {
    graph: EncodeGraph,
    model: Bert,
    rt: Runtime,
    tokenizer: SentenceTokenizer,
    dim: usize,
}

impl Encoder {
    /// Loads `config.json`, `tokenizer.json` and `model.safetensors` from a folder.
    ///
    /// # Errors
    /// If one of them cannot be read; if tensors are missing or have other shapes than the
    /// configuration says (all of them in one error); if the device has no room.
    pub fn load(folder: &Path, device: Device, mode: Mode) -> Result<Self> {
        let config = Config::open(&folder.join("config.json"))?;
        let largest = LENGTHS[LENGTHS.len() - 1].min(config.positions);
        let tokenizer = SentenceTokenizer::open(&folder.join("tokenizer.json"), largest)?;
        let weights = SafeTensors::open(folder.join("model.safetensors"))?;
        let mut rt = Runtime::new(device)?;
        let help = "use the folder of one complete BERT sentence encoder, such as all-MiniLM-L6-v2";
        let model =
            load::load::<Bert>(&rt, &weights, &config).map_err(|source| Error::Weights { source, help })?;
        let lengths = LENGTHS.into_iter().map(|n| n.min(largest));
        let graph = EncodeGraph::builder()
            .bucket("B", Schedule::new(BATCHES))
            .bucket("T", Schedule::new(lengths))
            // No batch of sentences is a decode.
            .mode(mode.mixed())
            .build(&mut rt)?;
        Ok(Self { graph, model, rt, tokenizer, dim: config.dim })
    }

    /// The runtime, for its counters and events.
    pub fn runtime(&self) -> &Runtime {
        &self.rt
    }

    /// Records every bucket ahead.
    ///
    /// # Errors
    /// What the runtime says.
    pub fn capture(&mut self, progress: impl FnMut(CaptureProgress<'_>)) -> Result<()> {
        Ok(self.graph.capture_all_with(&mut self.rt, &self.model, progress)?)
    }

    /// A vector of length 1 for each sentence. Long sentences are cut.
    ///
    /// # Errors
    /// What tokenizer and runtime say.
    pub fn encode(&mut self, sentences: &[impl AsRef<str>]) -> Result<Vec<Vec<f32>>> {
        let ids = self.tokenizer.encode(sentences)?;
        let mut embeddings = Vec::with_capacity(ids.len());
        for batch in ids.chunks(BATCHES[BATCHES.len() - 1]) {
            let longest = batch.iter().map(Vec::len).max().unwrap_or(0);
            let padded = |ids: &Vec<u32>| {
                let mut row = ids.clone();
                row.resize(longest, 0);
                row
            };
            let tokens: Vec<u32> = batch.iter().flat_map(padded).collect();
            let lengths: Vec<u32> = batch.iter().map(|ids| ids.len() as u32).collect();
            let step = self.rt.step()?;
            let shape = [batch.len(), longest];
            let out = self.graph.call(&step, (&tokens, &shape), &lengths, &self.model)?;
            embeddings.extend(step.read(&out)?.chunks_exact(self.dim).map(<[f32]>::to_vec));
        }
        Ok(embeddings)
    }
}
