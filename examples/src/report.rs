//! What a run of `generate` did: one JSON object, or a summary for people.

use std::{fmt, time::Duration};

use serde::Serialize;

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FinishReason {
    /// The model ended it.
    Stop,
    /// It was cut off at `--max-new-tokens`.
    Length,
    /// It was cut off because the model can read no more.
    Context,
}

/// How long a user waited before the prompt was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// Opening the device, reading the files and moving the weights to the device, until they are there.
    pub load: Duration,
    /// Recording graphs ahead.
    pub capture: Duration,
    /// From the start of the program on, whatever was done, a download not included.
    pub all: Duration,
}

/// The result of a run. Its fields, in this order, are the keys of `--json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The answer.
    pub text: String,
    /// `stop`, or where it was cut off: `length` or `context`.
    pub finish_reason: FinishReason,
    /// Ids of the generated tokens, with the one that ended the answer.
    pub tokens: Vec<u32>,
    /// Number of tokens of the rendered prompt.
    pub prompt_tokens: usize,
    /// What `--mode` says or, where it says `auto`, what was taken.
    pub mode: String,
    /// The type of activations and cache: `f32`, `bf16` or `f16`.
    pub dtype: String,
    /// How most elements of the layers' matrices are on the device: the same type, or the format of their blocks, such as `Q4_1`.
    pub weights: String,
    /// What it ran on.
    pub device: String,
    /// Segments of the decode function's plan, whatever the mode makes of them.
    pub segments: usize,
    /// Recordings that exist at the end, prefill and decode together.
    pub live_recordings: usize,
    /// Segments that ran to warm up.
    pub warmups: u64,
    /// Segments that were recorded.
    pub recordings: u64,
    /// Segments that were replayed.
    pub replays: u64,
    /// Why something ran without its graph, each reason once.
    pub fallbacks: Vec<String>,
    /// Bytes of the pool that were ever in use at once: what lives within calls.
    pub pool_bytes: u64,
    /// The same for the arena of results, which outlive their call.
    pub result_bytes: u64,
    /// The same for what is made outside graphs.
    pub eager_bytes: u64,
    /// Bytes of the executables, as far as the device knows.
    pub executable_bytes: u64,
    /// Opening the device, reading the files and moving the weights to the device, until they are there, in seconds.
    pub load_seconds: f64,
    /// Recording all graphs ahead, in seconds; 0 in mode none, which has none.
    pub capture_seconds: f64,
    /// From the prompt, as tokens, to the first token of the answer, in seconds, loading and capturing not included.
    pub prefill_seconds: f64,
    /// From the start of the program to the first token of the answer, in seconds, a download not included: what a user waits for.
    pub first_token_seconds: f64,
    /// From the first token of the answer to the last, in seconds.
    pub decode_seconds: f64,
    /// Decoded tokens per second, without the first, which is prefill's. 0 if there was only one.
    pub tokens_per_second: f64,
}

impl Report {
    /// One JSON object on a line of its own.
    pub fn to_json(&self) -> String {
        match serde_json::to_string(self) {
            Ok(json) => json + "\n",
            Err(_) => unreachable!("strings and numbers can always be written"),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blocks =
            if self.weights == self.dtype { String::new() } else { format!(" with {}", self.weights) };
        writeln!(f, "{}{blocks}, {} on {}", self.dtype, self.mode, self.device)?;
        writeln!(f, "  plan        {:>10}  segments in the decode function", self.segments)?;
        writeln!(f, "  graphs      {:>10}", self.live_recordings)?;
        writeln!(f, "  warm-ups    {:>10}", self.warmups)?;
        writeln!(f, "  recordings  {:>10}", self.recordings)?;
        writeln!(f, "  replays     {:>10}", self.replays)?;
        writeln!(f, "  fallbacks   {:>10}", self.fallbacks.len())?;
        for reason in &self.fallbacks {
            writeln!(f, "    {reason}")?;
        }
        let bytes = |n: u64| indicatif::BinaryBytes(n).to_string();
        writeln!(f, "  pool        {:>10}  within calls", bytes(self.pool_bytes))?;
        writeln!(f, "  results     {:>10}", bytes(self.result_bytes))?;
        writeln!(f, "  eager       {:>10}  outside graphs", bytes(self.eager_bytes))?;
        writeln!(f, "  executables {:>10}", bytes(self.executable_bytes))?;
        writeln!(f, "  load        {:>8.3} s", self.load_seconds)?;
        writeln!(f, "  capture     {:>8.3} s", self.capture_seconds)?;
        writeln!(f, "  prefill     {:>8.3} s  {} tokens", self.prefill_seconds, self.prompt_tokens)?;
        writeln!(f, "  first token {:>8.3} s  from the start of the program", self.first_token_seconds)?;
        let (decoded, each) = (self.tokens.len().saturating_sub(1), self.tokens_per_second);
        write!(f, "  decode      {:>8.3} s  {decoded} tokens, {each:.1} per second", self.decode_seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            text: "Paris.".into(),
            finish_reason: FinishReason::Length,
            tokens: vec![7042, 30, 2],
            prompt_tokens: 37,
            mode: "piecewise".into(),
            dtype: "bf16".into(),
            weights: "Q8_0".into(),
            device: "cpu".into(),
            segments: 61,
            live_recordings: 122,
            warmups: 122,
            recordings: 122,
            replays: 244,
            fallbacks: vec!["T = 900 is above its largest bucket, 512".into()],
            pool_bytes: 3 << 20,
            result_bytes: 5 << 10,
            eager_bytes: 7 << 10,
            executable_bytes: 11 << 10,
            load_seconds: 1.5,
            capture_seconds: 2.25,
            prefill_seconds: 0.25,
            first_token_seconds: 4.125,
            decode_seconds: 0.0625,
            tokens_per_second: 20.5,
        }
    }

    #[test]
    fn json_has_exactly_the_promised_keys() {
        let json = report().to_json();
        let order = [
            "text",
            "finish_reason",
            "tokens",
            "prompt_tokens",
            "mode",
            "dtype",
            "weights",
            "device",
            "segments",
            "live_recordings",
            "warmups",
            "recordings",
            "replays",
            "fallbacks",
            "pool_bytes",
            "result_bytes",
            "eager_bytes",
            "executable_bytes",
            "load_seconds",
            "capture_seconds",
            "prefill_seconds",
            "first_token_seconds",
            "decode_seconds",
            "tokens_per_second",
        ];
        let at: Vec<_> = order.iter().map(|k| json.find(&format!("\"{k}\":")).unwrap()).collect();
        assert!(at.is_sorted(), "{json}");
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value.as_object().unwrap().len(), order.len());
        assert_eq!(value["finish_reason"], "length");
    }

    #[test]
    fn the_summary_shows_reasons_and_fits_a_screen() {
        let text = report().to_string();
        let shown = [
            "bf16 with Q8_0, piecewise on cpu\n",
            "above its largest bucket",
            "3.00 MiB",
            "5.00 KiB",
            "7.00 KiB",
            "11.00 KiB",
            "1.500 s",
            "  capture        2.250 s\n",
            "  prefill        0.250 s  37 tokens\n",
            "  first token    4.125 s  from the start of the program\n",
            "  decode         0.062 s  2 tokens, 20.5 per second",
        ];
        shown.iter().for_each(|part| assert!(text.contains(part), "{part} in {text}"));
        assert!(text.lines().count() < 23);
    }
}
