//! A model that answers: weights, cache, sampling and both graphs behind one function.

use std::time::{Duration, Instant};

use graphable::{CaptureProgress, DType, Device, Float, Mode, PendingRead, RngState, Runtime, Schedule, ops};

use super::{
    Config,
    adapters::{AdapterFile, Adapters},
    device_loop::DeviceLoop,
    language::Language,
    model::{DecodeGraph, KvCache, Llama, PrefillGraph, Turn},
};
use crate::{
    Error, Result,
    checkpoint::{Blocks, Checkpoint, LoadProgress},
    report::{FinishReason, Report, Waited},
    sampling::SamplingOptions,
    tokenizer::{ChatTokenizer, TextStream},
};

/// Buckets of prefill. A prompt longer than the largest is read in pieces of that size.
pub(super) const PIECES: [usize; 4] = [16, 32, 64, 128];
/// The largest piece where nothing is recorded, so that pieces of any length cost the same: each reads all weights once.
const UNRECORDED: usize = 512;

/// A chat model on a device, ready to answer. Its weights, activations and cache are `T`.
pub struct Session<T: Float = f32> {
    prefill: PrefillGraph<T>,
    decode: DecodeGraph<T>,
    /// If answers are decoded by a loop on the device.
    device_loop: Option<DeviceLoop<T>>,
    model: Llama<T>,
    adapters: Adapters<T>,
    kv: KvCache<T>,
    turn: Turn,
    rt: Runtime,
    config: Config,
    language: Language,
    mode: Mode,
    capacity: usize,
    said: Option<Said>,
}

/// Where a conversation is.
#[derive(Clone, Copy)]
struct Said {
    /// Rows of the cache.
    rows: usize,
    /// The last token, which was not read.
    last: u32,
}

/// A token that was launched.
type Launched = PendingRead<u32>;

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

impl<T: Float> Session<T> {
    /// Loads a model onto a device; weights of other float types are rounded to `T`. A conversation may have `capacity` tokens, but
    /// never more than the model's context.
    ///
    /// # Errors
    /// [`Error::Option`] for impossible options of sampling.
    /// If tensors are missing from the file or have other shapes than its metadata says (all of them
    /// in one error), or the device has no room.
    pub fn load(
        files: &impl Checkpoint,
        language: Language,
        device: Device,
        mode: Mode,
        capacity: usize,
        sampling: SamplingOptions,
    ) -> Result<Self> {
        Self::load_with(files, language, device, mode, capacity, sampling, Blocks::Never, &mut |_| ())
    }

    /// As [`load`](Self::load), with matrices in blocks as `blocks` says; `progress` is told before the first tensor and after each.
    ///
    /// # Errors
    /// See [`load`](Self::load).
    #[expect(clippy::too_many_arguments, reason = "two more than `load` has")]
    pub fn load_with(
        files: &impl Checkpoint,
        language: Language,
        device: Device,
        mode: Mode,
        capacity: usize,
        sampling: SamplingOptions,
        blocks: Blocks,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<Self> {
        sampling.check()?;
        let config = files.config()?;
        let mut rt = Runtime::new(device)?;
        let model = files.load(&rt, &config, blocks, progress)?;
        let capacity = capacity.clamp(1, config.context);
        let kv = KvCache::new(&rt, &config, capacity)?;
        let turn = Turn::new(&rt, &config, language.tokenizer.stops(), sampling)?;
        // Each function has one kind of batch: what a pair of modes says of the two is known here.
        let prefill = PrefillGraph::<T>::builder().bucket("T", Schedule::new(PIECES)).mode(mode.mixed());
        let prefill = prefill.build(&mut rt)?;
        let decode = DecodeGraph::<T>::builder().mode(mode.decode()).build(&mut rt)?;
        Ok(Self {
            prefill,
            decode,
            device_loop: None,
            model,
            adapters: Adapters::none(&config),
            kv,
            turn,
            rt,
            config,
            language,
            mode,
            capacity,
            said: None,
        })
    }

    /// Lets the device choose up to `tokens` tokens of an answer in one launch. The tokens are the same.
    ///
    /// # Errors
    /// [`Error::Option`] for an impossible number; what the runtime says.
    pub fn use_device_loop(&mut self, tokens: usize) -> Result<()> {
        self.device_loop = Some(DeviceLoop::new(&mut self.rt, self.mode, tokens)?);
        Ok(())
    }

    /// Makes room for `slots` adapters like the first one of `files`, puts each into its slot, and has the first one answer. Before
    /// anything is recorded; later, [`load_adapter`](Self::load_adapter) changes what slots hold.
    ///
    /// # Errors
    /// Everything of the adapters that does not fit the model.
    pub fn use_adapters(&mut self, files: &[AdapterFile], slots: usize) -> Result<()> {
        let Some(first) = files.first() else { return Ok(()) };
        self.adapters = Adapters::new(&self.rt, &self.config, slots.max(files.len()), first)?;
        for (slot, file) in files.iter().enumerate() {
            self.load_adapter(slot, file)?;
        }
        self.choose_adapter(Some(0))
    }

    /// Puts an adapter into a slot, from the next call on. Nothing is recorded anew.
    ///
    /// # Errors
    /// See [`use_adapters`](Self::use_adapters).
    pub fn load_adapter(&mut self, slot: usize, file: &AdapterFile) -> Result<()> {
        let step = self.rt.step()?;
        self.adapters.load(&step, slot, &self.config, file)
    }

    /// Chooses the adapter that answers from the next call on; `None` is the model itself.
    ///
    /// # Errors
    /// If there is no such slot.
    pub fn choose_adapter(&mut self, slot: Option<usize>) -> Result<()> {
        let step = self.rt.step()?;
        Ok(self.adapters.choose(&step, slot)?)
    }

    /// The weights.
    pub fn model(&self) -> &Llama<T> {
        &self.model
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
        let Self { prefill, decode, device_loop, model, adapters, kv, turn, rt, .. } = self;
        prefill.capture_all_with(rt, model, adapters, kv, turn, |p| progress("prefill", p))?;
        match device_loop {
            Some(device_loop) => {
                device_loop.capture(rt, model, adapters, kv, turn, |p| progress("decode_loop", p))
            }
            None => {
                let captured =
                    decode.capture_all_with(rt, model, adapters, kv, turn, |p| progress("decode", p));
                Ok(captured.map(drop)?)
            }
        }
    }

    /// Begins a conversation: continues `prompt` until the model ends its answer, or after `max_new_tokens` (at least one), or when the
    /// cache is full. Nothing is remembered of earlier calls, except how far the random numbers are. `on_text` gets the
    /// text as it comes.
    ///
    /// # Errors
    /// [`Error::PromptTooLong`] if the cache has no room for the prompt; what `on_text` and the
    /// runtime say.
    pub fn answer(
        &mut self,
        prompt: &[u32],
        max_new_tokens: usize,
        on_text: impl FnMut(&str) -> Result<()>,
    ) -> Result<Answer> {
        self.said = None;
        self.reply(prompt, max_new_tokens, on_text)
    }

    /// As [`answer`](Self::answer), after all that was said since; without that, or after an error, it begins a
    /// conversation.
    ///
    /// # Errors
    /// Those of [`answer`](Self::answer).
    pub fn reply(
        &mut self,
        prompt: &[u32],
        max_new_tokens: usize,
        on_text: impl FnMut(&str) -> Result<()>,
    ) -> Result<Answer> {
        let said = self.said.take();
        let (start, last) = said.map_or((0, None), |said| (said.rows, Some(said.last)));
        let read: Vec<u32> = last.into_iter().chain(prompt.iter().copied()).collect();
        self.check_room(start + read.len())?;
        let begin = Instant::now();
        {
            let step = self.rt.step()?;
            self.turn.begin(&step, said.is_none())?;
        }
        let pending = self.read(start, &read)?;
        let mut growing = Growing::new(&self.language, on_text);
        // The token that is launched next goes to this row.
        let row = start + read.len();
        let Self { decode, device_loop, model, adapters, kv, turn, rt, capacity, .. } = self;
        let device = Decoder { model, adapters, kv, turn, rt, capacity: *capacity };
        let finish = match device_loop {
            None => one_by_one(device, decode, pending, row, max_new_tokens, &mut growing)?,
            Some(device_loop) => by_a_loop(device, device_loop, pending, row, max_new_tokens, &mut growing)?,
        };
        let Growing { text, tokens, first, .. } = growing.finish()?;
        let (end, first) = (Instant::now(), first.unwrap_or(begin));
        let (prefill, decode) = (first - begin, end - first);
        let rows = start + read.len() + tokens.len() - 1;
        self.said = tokens.last().map(|&last| Said { rows, last });
        Ok(Answer { text, finish, tokens, prompt_tokens: prompt.len(), prefill, decode })
    }

    /// The logits of the token that follows `tokens`, `[vocabulary]`. Nothing is remembered of earlier calls.
    ///
    /// # Errors
    /// As [`Session::answer`].
    pub fn logits(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        self.check_room(tokens.len())?;
        self.said = None;
        let mut logits = Vec::new();
        for (start, piece) in pieces(0, tokens, self.mode) {
            let step = self.rt.step()?;
            let [positions, end, last] = places(start, piece, tokens.len());
            let (prefill, model, adapters) = (&self.prefill, &self.model, &self.adapters);
            let (kv, turn) = (&self.kv, &self.turn);
            let (_, out) =
                prefill.call(&step, piece, &positions, &end, &last, &[true], model, adapters, kv, turn)?;
            logits = step.read(&out)?;
        }
        Ok(logits.into_iter().map(|v: T| v.to_f64() as f32).collect())
    }

    /// How far the random numbers are.
    ///
    /// # Errors
    /// What the runtime says.
    pub fn random_state(&mut self) -> Result<RngState> {
        let step = self.rt.step()?;
        Ok(self.turn.rng().save(&step)?)
    }

    /// The keys of the first layer that are in the cache, row by row.
    ///
    /// # Errors
    /// What the runtime says.
    pub fn first_keys(&mut self) -> Result<Vec<T>> {
        let step = self.rt.step()?;
        Ok(step.read(&ops::load(step.scope(), self.kv.first_keys())?)?)
    }

    fn check_room(&self, tokens: usize) -> Result<()> {
        match tokens > self.capacity {
            true => Err(Error::PromptTooLong { prompt: tokens, context: self.capacity }),
            false => Ok(()),
        }
    }

    /// Reads a prompt into the cache from a row on, piece by piece. Gives the token after its last one.
    fn read(&mut self, start: usize, prompt: &[u32]) -> Result<Launched> {
        let mut launched = None;
        let rows = start + prompt.len();
        for (at, piece) in pieces(start, prompt, self.mode) {
            let step = self.rt.step()?;
            let [positions, end, last] = places(at, piece, rows);
            let unfinished = [at + piece.len() < rows];
            let (prefill, model, adapters) = (&self.prefill, &self.model, &self.adapters);
            let (kv, turn) = (&self.kv, &self.turn);
            let (token, _) = prefill.call(
                &step,
                piece,
                &positions,
                &end,
                &last,
                &unfinished,
                model,
                adapters,
                kv,
                turn,
            )?;
            launched = Some(step.read_later(&token)?);
        }
        launched.ok_or_else(|| Error::Template { reason: "it turns the prompt into nothing".into() })
    }

    /// What happened, from the first call to this answer. `waited` is what the caller measured before it.
    pub fn report(&self, answer: Answer, waited: Waited) -> Report {
        let (stats, memory) = (self.rt.stats(), self.rt.memory());
        let decoded = answer.tokens.len().saturating_sub(1) as f64;
        let seconds = answer.decode.as_secs_f64();
        Report {
            text: answer.text,
            finish_reason: answer.finish,
            tokens: answer.tokens,
            prompt_tokens: answer.prompt_tokens,
            mode: self.mode.to_string(),
            dtype: T::DTYPE.to_string(),
            weights: self.model.stored(),
            device: self.rt.device(),
            segments: DecodeGraph::<T>::PLAN.segments(),
            live_recordings: stats.live_recordings,
            warmups: stats.warmups,
            recordings: stats.recordings,
            replays: stats.replays,
            fallbacks: stats.fallback_reasons.iter().map(|(reason, _)| reason.to_string()).collect(),
            pool_bytes: memory.pool.peak_bytes,
            result_bytes: memory.results.peak_bytes,
            eager_bytes: memory.eager.peak_bytes,
            executable_bytes: memory.executable_bytes,
            load_seconds: waited.load.as_secs_f64(),
            capture_seconds: waited.capture.as_secs_f64(),
            prefill_seconds: answer.prefill.as_secs_f64(),
            first_token_seconds: (waited.all + answer.prefill).as_secs_f64(),
            decode_seconds: seconds,
            tokens_per_second: if seconds > 0.0 { decoded / seconds } else { 0.0 },
        }
    }
}

/// An answer, as far as it is known.
struct Growing<'a, F> {
    text: String,
    tokens: Vec<u32>,
    /// When the first token was known.
    first: Option<Instant>,
    tokenizer: &'a ChatTokenizer,
    stream: TextStream<'a>,
    on_text: F,
}

impl<'a, F: FnMut(&str) -> Result<()>> Growing<'a, F> {
    fn new(language: &'a Language, on_text: F) -> Self {
        let tokenizer = &language.tokenizer;
        let stream = tokenizer.stream();
        Self { text: String::new(), tokens: Vec::new(), first: None, tokenizer, stream, on_text }
    }

    fn say(&mut self, part: &str) -> Result<()> {
        self.text.push_str(part);
        (self.on_text)(part)
    }

    /// Adds a token. Returns whether it ends the answer.
    fn push(&mut self, id: u32) -> Result<bool> {
        self.first.get_or_insert_with(Instant::now);
        self.tokens.push(id);
        let part = self.stream.push(id);
        self.say(&part)?;
        Ok(self.tokenizer.is_stop(id))
    }

    fn finish(mut self) -> Result<Self> {
        let part = self.stream.finish();
        self.say(&part)?;
        Ok(self)
    }
}

/// What decodes.
struct Decoder<'a, T: Float> {
    model: &'a Llama<T>,
    adapters: &'a Adapters<T>,
    kv: &'a KvCache<T>,
    turn: &'a Turn,
    rt: &'a mut Runtime,
    capacity: usize,
}

/// Launches each token by itself, after the one in `pending`, which goes to `row`.
fn one_by_one<T: Float, F: FnMut(&str) -> Result<()>>(
    device: Decoder<'_, T>,
    decode: &DecodeGraph<T>,
    mut pending: Launched,
    mut row: usize,
    max_new_tokens: usize,
    growing: &mut Growing<'_, F>,
) -> Result<FinishReason> {
    let Decoder { model, adapters, kv, turn, rt, capacity } = device;
    let mut launched = 1;
    loop {
        // The next token is on its way before this one is known. If this one ends the answer, the device skips it.
        let next = if launched < max_new_tokens && row < capacity {
            launched += 1;
            row += 1;
            let step = rt.step()?;
            let token = decode.call(&step, &[row as u32 - 1], model, adapters, kv, turn)?;
            Some(step.read_later(&token)?)
        } else {
            None
        };
        if growing.push(token::<T>(pending)?)? {
            return Ok(FinishReason::Stop);
        }
        match next {
            Some(next) => pending = next,
            None if growing.tokens.len() >= max_new_tokens => return Ok(FinishReason::Length),
            None => return Ok(FinishReason::Context),
        }
    }
}

/// Lets the device choose the tokens after the one in `pending`, which goes to `row`.
fn by_a_loop<T: Float, F: FnMut(&str) -> Result<()>>(
    device: Decoder<'_, T>,
    device_loop: &DeviceLoop<T>,
    pending: Launched,
    mut row: usize,
    max_new_tokens: usize,
    growing: &mut Growing<'_, F>,
) -> Result<FinishReason> {
    let Decoder { model, adapters, kv, turn, rt, capacity } = device;
    if growing.push(token::<T>(pending)?)? {
        return Ok(FinishReason::Stop);
    }
    loop {
        let wanted = max_new_tokens.saturating_sub(growing.tokens.len());
        let rounds = wanted.min(capacity - row).min(device_loop.most());
        if wanted == 0 {
            return Ok(FinishReason::Length);
        }
        if rounds == 0 {
            return Ok(FinishReason::Context);
        }
        let mut stops = false;
        row += device_loop.run(rt, row, rounds, model, adapters, kv, turn, |id| {
            stops = growing.push(number::<T>(id)?)?;
            Ok(())
        })?;
        if stops {
            return Ok(FinishReason::Stop);
        }
    }
}

/// The pieces of a prompt, each with its first row.
pub(super) fn pieces(start: usize, prompt: &[u32], mode: Mode) -> impl Iterator<Item = (usize, &[u32])> {
    let largest = if mode.mixed() == Mode::None { UNRECORDED } else { PIECES[PIECES.len() - 1] };
    prompt.chunks(largest).enumerate().map(move |(i, piece)| (start + i * largest, piece))
}

/// The positions of a piece, the last one of all `rows` of which it is a part, and the index of its last token.
fn places(start: usize, piece: &[u32], rows: usize) -> [Vec<u32>; 3] {
    [(start as u32..).take(piece.len()).collect(), vec![rows as u32 - 1], vec![piece.len() as u32 - 1]]
}

/// Waits for a token of a model in `T`.
fn token<T: Float>(launched: Launched) -> Result<u32> {
    number::<T>(launched.wait()?.first().copied().unwrap_or(ops::NO_TOKEN))
}

/// A token, unless it is none.
fn number<T: Float>(id: u32) -> Result<u32> {
    if id != ops::NO_TOKEN {
        return Ok(id);
    }
    Err(Error::Model {
        what: "model".into(),
        reason: "it gave no logit that is a number".into(),
        help: match T::DTYPE {
            DType::F16 => "values may be above 65504, the largest of f16: pass `--dtype bf16` or `--dtype f32`, or with blocks `--activations bf16`; if that fails as well, download the file again",
            _ => "the weights are damaged: download the file again",
        }
        .into(),
    })
}
