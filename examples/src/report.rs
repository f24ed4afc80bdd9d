//! What a run of `generate` did: one JSON object, or a summary for people.

use std::fmt;

use serde::Serialize;

/// The result of a run. Its fields, in this order, are the keys of `--json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The answer.
    pub text: String,
    /// Ids of the generated tokens, with the one that ended the answer.
    pub tokens: Vec<u32>,
    /// Number of tokens of the rendered prompt.
    pub prompt_tokens: usize,
    /// `none`, `piecewise` or `full`.
    pub mode: String,
    /// What it ran on.
    pub device: String,
    /// Segments of the decode function's plan.
    pub segments: usize,
    /// Recordings that exist at the end, prefill and decode together.
    pub nodes: usize,
    /// Segments that ran to warm up.
    pub warmups: u64,
    /// Segments that were recorded.
    pub recordings: u64,
    /// Segments that were replayed.
    pub replays: u64,
    /// Why something ran without its graph, each reason once.
    pub fallbacks: Vec<String>,
    /// Memory of the pool and the executables, in bytes.
    pub pool_bytes: u64,
    /// From the prompt to the first token, in seconds, capturing not included.
    pub prefill_seconds: f64,
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
        writeln!(f, "{} on {}", self.mode, self.device)?;
        writeln!(f, "  segments    {:>10}  in the decode function", self.segments)?;
        writeln!(f, "  nodes       {:>10}", self.nodes)?;
        writeln!(f, "  warm-ups    {:>10}", self.warmups)?;
        writeln!(f, "  recordings  {:>10}", self.recordings)?;
        writeln!(f, "  replays     {:>10}", self.replays)?;
        writeln!(f, "  fallbacks   {:>10}", self.fallbacks.len())?;
        for reason in &self.fallbacks {
            writeln!(f, "    {reason}")?;
        }
        writeln!(f, "  pool        {:>10}", indicatif::BinaryBytes(self.pool_bytes).to_string())?;
        writeln!(f, "  prefill     {:>8.3} s  {} tokens", self.prefill_seconds, self.prompt_tokens)?;
        write!(f, "  decode      {:>10.1}  tokens per second", self.tokens_per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            text: "Paris.".into(),
            tokens: vec![7042, 30, 2],
            prompt_tokens: 37,
            mode: "piecewise".into(),
            device: "cpu".into(),
            segments: 61,
            nodes: 122,
            warmups: 122,
            recordings: 122,
            replays: 244,
            fallbacks: vec!["T = 900 is above its largest bucket, 512".into()],
            pool_bytes: 3 << 20,
            prefill_seconds: 0.25,
            tokens_per_second: 20.5,
        }
    }

    #[test]
    fn json_has_exactly_the_promised_keys() {
        let json = report().to_json();
        let order = [
            "text",
            "tokens",
            "prompt_tokens",
            "mode",
            "device",
            "segments",
            "nodes",
            "warmups",
            "recordings",
            "replays",
            "fallbacks",
            "pool_bytes",
            "prefill_seconds",
            "tokens_per_second",
        ];
        let at: Vec<_> = order.iter().map(|k| json.find(&format!("\"{k}\":")).unwrap()).collect();
        assert!(at.is_sorted(), "{json}");
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value.as_object().unwrap().len(), order.len());
    }

    #[test]
    fn the_summary_shows_reasons_and_fits_a_screen() {
        let text = report().to_string();
        assert!(text.contains("above its largest bucket") && text.contains("3.00 MiB"), "{text}");
        assert!(text.lines().count() < 16);
    }
}
