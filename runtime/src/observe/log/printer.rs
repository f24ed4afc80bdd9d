//! `GRAPHABLE_LOG`: events on standard error, for programs without a `tracing` subscriber.

use std::{env, io::Write as _, sync::Once};

use tracing::Level;

use crate::Event;

/// The variable.
const VARIABLE: &str = "GRAPHABLE_LOG";

/// The kinds of events, by their names in the variable, each as a bit; `info` is the first two.
const KINDS: [(&str, u8); 7] = [
    ("info", RECORDINGS | FALLBACKS),
    ("recordings", RECORDINGS),
    ("fallbacks", FALLBACKS),
    ("replays", REPLAYS),
    ("copies", COPIES),
    ("audits", AUDITS),
    ("all", u8::MAX),
];
const RECORDINGS: u8 = 1;
const FALLBACKS: u8 = 2;
const REPLAYS: u8 = 4;
const COPIES: u8 = 8;
const AUDITS: u8 = 16;

/// The kinds of events that are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Printer(u8);

impl Printer {
    /// Reads the environment variable, once for each runtime. An unknown name is reported once.
    pub(super) fn of_environment() -> Self {
        static SAID: Once = Once::new();
        let Some(text) = env::var_os(VARIABLE) else { return Self::default() };
        let text = text.to_string_lossy();
        let (printer, unknown) = Self::parse(&text);
        if !unknown.is_empty() {
            SAID.call_once(|| {
                let names: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
                say(&format!(
                    "unknown kind {} in {VARIABLE}; expected a comma-separated list of {}, or off, such as \
                     `{VARIABLE}=recordings,fallbacks`",
                    unknown.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
                    names.join(", ")
                ));
            });
        }
        printer
    }

    /// Returns the kinds in a list, and its unknown names.
    fn parse(text: &str) -> (Self, Vec<&str>) {
        let (mut bits, mut unknown) = (0, Vec::new());
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match KINDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) {
                Some((_, kind)) => bits |= kind,
                None if ["off", "none", "0"].contains(&word) => {}
                None => unknown.push(word),
            }
        }
        (Self(bits), unknown)
    }

    /// Returns whether anything is printed.
    pub(super) fn is_on(self) -> bool {
        self.0 != 0
    }

    /// Prints an event if it is requested, unless a subscriber receives it. `level` is its level in
    /// `tracing`.
    pub(super) fn print(self, event: &Event, level: Level) {
        static SAID: Once = Once::new();
        if self.0 & kind(event) == 0 {
            return;
        }
        if is_taken(level) {
            SAID.call_once(|| {
                say(&format!(
                    "a `tracing` subscriber takes events of the runtime; {VARIABLE} prints the others"
                ));
            });
            return;
        }
        say(&event.to_string());
    }
}

fn say(line: &str) {
    // A closed standard error is not a reason to fail.
    let _ = writeln!(std::io::stderr(), "graphable: {line}");
}

/// Returns the kind of an event.
fn kind(event: &Event) -> u8 {
    match event {
        Event::Warmed { .. }
        | Event::Waited { .. }
        | Event::Recorded { .. }
        | Event::Shared { .. }
        | Event::Evicted { .. }
        | Event::Rerecorded { .. }
        | Event::Unshared { .. }
        | Event::Aborted { .. }
        | Event::CaptureMeasured { .. } => RECORDINGS,
        Event::FellBack { .. }
        | Event::SwitchedToCopy { .. }
        | Event::ManyShapes { .. }
        | Event::ManyCaptures { .. }
        | Event::NotConverged { .. }
        | Event::CaptureInvalidated { .. } => FALLBACKS,
        Event::Replayed { .. } | Event::Updated { .. } | Event::RanEager { .. } => REPLAYS,
        Event::Copied { .. } => COPIES,
        Event::Audited { .. } => AUDITS,
    }
}

/// Returns whether a subscriber wants the runtime's events of that level.
fn is_taken(level: Level) -> bool {
    /// The source of the events, as `tracing` knows it.
    macro_rules! wanted {
        ($level:ident) => {
            tracing::enabled!(target: super::TARGET, Level::$level)
        };
    }
    match level {
        Level::ERROR => wanted!(ERROR),
        Level::WARN => wanted!(WARN),
        Level::INFO => wanted!(INFO),
        Level::DEBUG => wanted!(DEBUG),
        Level::TRACE => wanted!(TRACE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_kinds_are_understood() {
        assert_eq!(Printer::parse(""), (Printer(0), vec![]));
        assert_eq!(Printer::parse("off"), (Printer(0), vec![]));
        assert_eq!(Printer::parse("info"), (Printer(RECORDINGS | FALLBACKS), vec![]));
        assert_eq!(Printer::parse("replays, Copies"), (Printer(REPLAYS | COPIES), vec![]));
        assert_eq!(Printer::parse("recordings,replay"), (Printer(RECORDINGS), vec!["replay"]));
        assert_eq!(Printer::parse("debug,1"), (Printer(0), vec!["debug", "1"]));
        assert_eq!(Printer::parse("all").0, Printer(u8::MAX));
    }

    #[test]
    fn every_kind_but_all_is_of_some_event() {
        let kinds = RECORDINGS | FALLBACKS | REPLAYS | COPIES | AUDITS;
        let segment = || "`f` #0 (a.rs:1)".to_owned();
        let of = [
            Event::Warmed { segment: segment() },
            Event::ManyShapes { function: "f", shapes: 8 },
            Event::RanEager { boundary: segment() },
            Event::Copied { slot: crate::CopySlot::LiveIn, bytes: 4 },
            Event::Audited { segment: segment() },
        ];
        assert_eq!(of.iter().fold(0, |bits, event| bits | kind(event)), kinds);
    }
}
