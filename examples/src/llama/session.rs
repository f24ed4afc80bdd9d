//! A model that answers: weights, cache, sampling and both graphs behind one function.

use std::time::{Duration, Instant};

use graphable::{CaptureProgress, Device, Mode, Runtime, Schedule, load};

use super::{
    Config,
    model::{DecodeGraph, KvCache, Llama, PrefillGraph},
};
use crate::{
    Error, Result,
    chat::{Message, Template},
    gguf::Gguf,
    report::{FinishReason, Report},
    sampling::Sampler,
    tokenizer::ChatTokenizer,
};

/// Buckets of prefill. A prompt longer than the largest is read in pieces of that size.
const PIECES: [usize; 4] = [16, 32, 64, 128];

/// How a model reads and writes: tokenizer, chat template, and how much it can read.
pub struct Language {
    /// Text to ids and back.
    pub tokenizer: ChatTokenizer,
    template: Template,
    context: usize,
}

impl Language {
    /// What the file says about it.
    ///
    /// # Errors
    /// If the file is no complete chat model of this architecture.
    pub fn from_gguf(file: &Gguf) -> Result<Self> {
        let context = Config::from_gguf(file)?.context;
        let tokenizer = ChatTokenizer::from_gguf(file)?;
        let template = Template::from_gguf(file, &tokenizer)?;
        Ok(Self { tokenizer, template, context })
    }

    /// The ids of a conversation that starts with this message of the user.
    ///
    /// # Errors
    /// [`Error::PromptTooLong`] if the context has no room for it and one token of the answer.
    pub fn prompt(&self, message: &str) -> Result<Vec<u32>> {
        let ids = self.tokenizer.encode(&self.template.render(&[Message::user(message)])?)?;
        if ids.is_empty() {
            return Err(Error::Template { why: "it turns the prompt into nothing".into() });
        }
        if ids.len() >= self.context {
            return Err(Error::PromptTooLong { prompt: ids.len(), context: self.context });
        }
        Ok(ids)
    }
}

/// A chat model on a device, ready to answer.
pub struct Session {
    prefill: PrefillGraph,
    decode: DecodeGraph,
    model: Llama,
    kv: KvCache,
    rt: Runtime,
    language: Language,
    mode: Mode,
    capacity: usize,
}

/// What [`Session::answer`] returns.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// Why it ended.
    pub finish: FinishReason,
    /// Generated ids, with the one that ended the answer.
    pub tokens: Vec<u32>,
    /// Number of ids that were read.
    pub prompt_tokens: usize,
    /// From the prompt to the first token.
    pub prefill: Duration,
    /// From the first token to the last.
    pub decode: Duration,
}

impl Session {
    /// Loads a model onto a device. Prompt and answer together may have `capacity` tokens, but never
    /// more than the model's context.
    ///
    /// # Errors
    /// If tensors are missing from the file or have other shapes than its metadata says (all of them
    /// in one error), or the device has no room.
    pub fn load(
        file: &Gguf,
        language: Language,
        device: Device,
        mode: Mode,
        capacity: usize,
    ) -> Result<Self> {
        let config = Config::from_gguf(file)?;
        let mut rt = Runtime::new(device)?;
        let help = "use a complete model of the Llama architecture, or download the file again";
        let model =
            load::load::<Llama>(&rt, file, &config).map_err(|source| Error::Weights { source, help })?;
        let capacity = capacity.clamp(1, config.context);
        let kv = KvCache::new(&rt, &config, capacity)?;
        // Each function has one kind of batch: what a pair of modes says of the two is known here.
        let prefill = PrefillGraph::builder().bucket("T", Schedule::new(PIECES)).mode(mode.mixed());
        let prefill = prefill.build(&mut rt)?;
        let decode = DecodeGraph::builder().mode(mode.decode()).build(&mut rt)?;
        Ok(Self { prefill, decode, model, kv, rt, language, mode, capacity })
    }

    /// How the model reads and writes.
    pub fn language(&self) -> &Language {
        &self.language
    }

    /// The runtime, for its counters and events.
    pub fn runtime(&self) -> &Runtime {
        &self.rt
    }

    /// Records everything ahead, so that no answer waits for it. `progress` gets the function at work.
    ///
    /// # Errors
    /// What the runtime says.
    pub fn capture(&mut self, mut progress: impl FnMut(&str, CaptureProgress<'_>)) -> Result<()> {
        let Self { prefill, decode, model, kv, rt, .. } = self;
        prefill.capture_all_with(rt, model, kv, |p| progress("prefill", p))?;
        decode.capture_all_with(rt, model, kv, |p| progress("decode", p))?;
        Ok(())
    }

    /// Continues `prompt` until the model ends its answer, or after `max_new_tokens`, or when the
    /// cache is full. Nothing is remembered of earlier calls. `on_text` gets the text as it comes.
    ///
    /// # Errors
    /// [`Error::PromptTooLong`] if the cache has no room for the prompt; what `on_text` and the
    /// runtime say.
    pub fn answer(
        &mut self,
        prompt: &[u32],
        max_new_tokens: usize,
        sampler: &mut Sampler,
        mut on_text: impl FnMut(&str) -> Result<()>,
    ) -> Result<Answer> {
        if prompt.len() > self.capacity {
            return Err(Error::PromptTooLong { prompt: prompt.len(), context: self.capacity });
        }
        let start = Instant::now();
        let mut logits = self.read(prompt)?;
        let Self { decode, model, kv, rt, language, capacity, .. } = self;
        let mut stream = language.tokenizer.stream();
        let (mut text, mut tokens) = (String::new(), Vec::new());
        let mut say = |part: String| {
            text.push_str(&part);
            on_text(&part)
        };
        let mut first = None;
        let finish = loop {
            let id = choose(sampler, &logits)?;
            first.get_or_insert_with(Instant::now);
            tokens.push(id);
            say(stream.push(id))?;
            // Where this token goes, if it is read at all.
            let position = prompt.len() + tokens.len() - 1;
            if language.tokenizer.is_stop(id) {
                break FinishReason::Stop;
            }
            if tokens.len() >= max_new_tokens {
                break FinishReason::Length;
            }
            if position == *capacity {
                break FinishReason::Context;
            }
            let step = rt.step()?;
            let out = decode.call(&step, &[id], &[position as u32], model, kv)?;
            logits = step.read(&out)?;
        };
        say(stream.finish())?;
        let (end, first) = (Instant::now(), first.unwrap_or(start));
        let (prefill, decode) = (first - start, end - first);
        Ok(Answer { text, finish, tokens, prompt_tokens: prompt.len(), prefill, decode })
    }

    /// The logits of the token that follows `tokens`, `[vocabulary]`. Nothing is remembered of earlier calls.
    ///
    /// # Errors
    /// As [`Session::answer`].
    pub fn logits(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        if tokens.len() > self.capacity {
            return Err(Error::PromptTooLong { prompt: tokens.len(), context: self.capacity });
        }
        self.read(tokens)
    }

    /// Reads a prompt into the cache, piece by piece. Gives the logits after its last token.
    fn read(&mut self, prompt: &[u32]) -> Result<Vec<f32>> {
        let largest = PIECES[PIECES.len() - 1];
        let mut logits = Vec::new();
        for (i, piece) in prompt.chunks(largest).enumerate() {
            let start = (i * largest) as u32;
            let positions: Vec<u32> = (start..).take(piece.len()).collect();
            let last = [piece.len() as u32 - 1];
            let step = self.rt.step()?;
            let out = self.prefill.call(&step, piece, &positions, &last, &self.model, &self.kv)?;
            logits = step.read(&out)?;
        }
        Ok(logits)
    }

    /// What happened, from the first call to this answer. `load` and `capture` are what the caller measured.
    pub fn report(&self, answer: Answer, load: Duration, capture: Duration) -> Report {
        let (stats, memory) = (self.rt.stats(), self.rt.memory());
        let decoded = answer.tokens.len().saturating_sub(1) as f64;
        let seconds = answer.decode.as_secs_f64();
        Report {
            text: answer.text,
            finish_reason: answer.finish,
            tokens: answer.tokens,
            prompt_tokens: answer.prompt_tokens,
            mode: self.mode.to_string(),
            device: self.rt.device(),
            segments: DecodeGraph::PLAN.segments(),
            nodes: stats.nodes,
            warmups: stats.warmups,
            recordings: stats.recordings,
            replays: stats.replays,
            fallbacks: stats.fallback_reasons.iter().map(|(why, _)| why.to_string()).collect(),
            pool_bytes: memory.pool.peak_bytes,
            result_bytes: memory.results.peak_bytes,
            eager_bytes: memory.eager.peak_bytes,
            executable_bytes: memory.executable_bytes,
            load_seconds: load.as_secs_f64(),
            capture_seconds: capture.as_secs_f64(),
            prefill_seconds: answer.prefill.as_secs_f64(),
            tokens_per_second: if seconds > 0.0 { decoded / seconds } else { 0.0 },
        }
    }
}

fn choose(sampler: &mut Sampler, logits: &[f32]) -> Result<u32> {
    sampler.next(logits).ok_or_else(|| Error::Model {
        what: "model".into(),
        why: "it gave no logit that is a number".into(),
        help: "the weights are damaged: download the file again".into(),
    })
}
