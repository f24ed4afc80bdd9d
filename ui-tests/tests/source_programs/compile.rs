//! One crate of many functions, compiled by rustc against the runtime that this test was built with.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

use crate::{
    program::{Form, Program},
    rustc::{Failure, compile},
};

const TEMPLATE: &str = include_str!("template.rs");

/// When programs count as endless. A batch computes for a second or two; next to other work, that can take minutes.
const LIMITS: Limits = Limits { computing: Duration::from_secs(60), waiting: Duration::from_secs(100) };

/// What a batch came to.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Functions of which the plain form is no Rust: our fault.
    pub(crate) faulty: Vec<u64>,
    /// Functions that are refused with boundaries and accepted without: the errors of each.
    pub(crate) refused: BTreeMap<u64, Vec<String>>,
    /// Functions that gave something else.
    pub(crate) differs: BTreeMap<u64, String>,
    /// Functions that ran to their end.
    pub(crate) ran: Vec<u64>,
    pub(crate) replays: u64,
    /// How many guards lived at a boundary at most, in the plain form.
    pub(crate) held: BTreeMap<u64, u64>,
    /// What no function accounts for.
    pub(crate) broken: Option<String>,
}

/// Where each line of the text comes from.
struct Text {
    text: String,
    lines: Vec<Option<(u64, Form)>>,
}

impl Text {
    fn add(&mut self, text: &str, of: Option<(u64, Form)>) {
        self.text.push_str(text);
        self.text.push('\n');
        self.lines.extend(text.lines().map(|_| of));
    }

    fn owner(&self, line: usize) -> Option<(u64, Form)> {
        self.lines.get(line.wrapping_sub(1)).copied().flatten()
    }

    /// The `compared` programs in both forms, and those that are run `alone` in the plain one.
    fn of(compared: &[&Program], alone: &[&Program]) -> Self {
        let mut all = Self { text: String::new(), lines: Vec::new() };
        all.add(TEMPLATE.trim_end(), None);
        for (form, name, programs) in [(Form::Marked, "marked", &[][..]), (Form::Plain, "plain", alone)] {
            all.add(&format!("pub mod {name} {{\nuse super::*;"), None);
            for program in compared.iter().chain(programs) {
                all.add(program.render(form).trim_end(), Some((program.seed, form)));
            }
            all.add("}", None);
        }
        all.add("fn main() {\nstd::panic::set_hook(Box::new(|_| {}));", None);
        let graph = |program: &Program| format!("F{}Graph", program.seed);
        for program in compared {
            let (seed, graph) = (program.seed, graph(program));
            all.add(&format!("compare!({seed}, marked::{graph}, plain::{graph});"), None);
        }
        for program in alone {
            let (seed, graph) = (program.seed, graph(program));
            all.add(&format!("expected!({seed}, plain::{graph});"), None);
        }
        all.add("}", None);
        all
    }
}

/// Which of the programs are no Rust without boundaries either.
fn faulty(programs: &[&Program], folder: &Path) -> Vec<u64> {
    let source = folder.join("programs.rs");
    let mut left: Vec<&Program> = programs.to_vec();
    let mut found = Vec::new();
    while !left.is_empty() {
        let text = Text::of(&[], &left);
        fs::write(&source, &text.text).expect("the programs are written");
        let owner = |failure: &Failure| failure.lines.iter().find_map(|line| text.owner(*line));
        let wrong: Vec<u64> = compile(&source, &folder.join("checked"), "metadata")
            .iter()
            .filter_map(owner)
            .map(|(seed, _)| seed)
            .collect();
        if wrong.is_empty() {
            break;
        }
        left.retain(|p| !wrong.contains(&p.seed));
        found.extend(wrong);
    }
    found
}

/// What to do about programs that are refused with boundaries.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Only see whether they are Rust without.
    Checked,
    /// Run them without.
    Run,
}

/// Compiles the programs with boundaries and without, but for those that do not compile, and runs them.
pub(crate) fn run(programs: &[&Program], folder: &Path, refused: Refused) -> Outcome {
    fs::create_dir_all(folder).expect("a folder for the programs");
    let (source, binary) = (folder.join("programs.rs"), folder.join("programs"));
    let mut outcome = Outcome::default();
    // Later errors show once earlier ones are gone.
    for _ in 0..12 {
        let rust = programs.iter().filter(|p| !outcome.faulty.contains(&p.seed));
        let (alone, left): (Vec<&Program>, _) = rust.partition(|p| outcome.refused.contains_key(&p.seed));
        let text = Text::of(&left, if refused == Refused::Run { &alone } else { &[] });
        fs::write(&source, &text.text).expect("the programs are written");
        let mut errors = compile(&source, &folder.join("checked"), "metadata");
        if errors.is_empty() {
            // Some errors come when code is generated.
            errors = compile(&source, &binary, "link");
        }
        if errors.is_empty() {
            let mut outcome = execute(&binary, outcome);
            if refused == Refused::Checked {
                // Errors of the one form can hide those of the other.
                for seed in faulty(&alone, folder) {
                    outcome.refused.remove(&seed);
                    outcome.faulty.push(seed);
                }
            }
            return outcome;
        }
        let mut plain = Vec::new();
        for Failure { message, lines } in errors {
            match lines.iter().find_map(|line| text.owner(*line)) {
                Some((seed, Form::Plain)) => plain.push(seed),
                Some((seed, Form::Marked)) => outcome.refused.entry(seed).or_default().push(message),
                None => {
                    outcome.broken = Some(format!("at {lines:?}: {message}"));
                    return outcome;
                }
            }
        }
        plain.iter().for_each(|seed| _ = outcome.refused.remove(seed));
        outcome.faulty.extend(plain);
        outcome.faulty.sort_unstable();
        outcome.faulty.dedup();
    }
    outcome.broken = Some("there are always more errors".to_owned());
    outcome
}

fn execute(binary: &Path, mut outcome: Outcome) -> Outcome {
    let printed = binary.with_extension("out");
    let file = fs::File::create(&printed).expect("a file for what the programs print");
    let child = Command::new(binary).stdout(file).spawn().expect("the programs run");
    let status = ended(child, &LIMITS);
    for line in fs::read_to_string(&printed).unwrap_or_default().lines() {
        let mut words = line.splitn(3, ' ');
        match (words.next(), words.next().and_then(|w| w.parse::<u64>().ok()), words.next()) {
            (Some("RAN"), Some(seed), Some(replays)) => {
                outcome.ran.push(seed);
                outcome.replays += replays.parse::<u64>().unwrap_or(0);
            }
            (Some("HELD"), Some(seed), Some(most)) => {
                outcome.held.insert(seed, most.parse().unwrap_or(0));
            }
            (Some("DIFFERS"), Some(seed), Some(what)) => {
                outcome.differs.insert(seed, what.to_owned());
            }
            _ => {}
        }
    }
    outcome.ran.dedup();
    if let Err(how) = status {
        let last = outcome.ran.last().copied();
        outcome.broken = Some(format!("the programs {how} after {last:?}"));
    }
    outcome
}

/// How long programs may take.
struct Limits {
    /// Time of a processor: a smaller program may have lost the end of a loop.
    computing: Duration,
    /// Time in which they compute nothing: they wait for each other.
    waiting: Duration,
}

/// Waits for the programs.
fn ended(mut child: Child, limits: &Limits) -> Result<(), String> {
    let (mut computed, mut progress) = (Duration::ZERO, Instant::now());
    loop {
        if let Some(status) = child.try_wait().expect("the programs are ours") {
            return if status.success() { Ok(()) } else { Err(format!("ended with {status}")) };
        }
        let now = computing_time(&child);
        if now > computed {
            (computed, progress) = (now, Instant::now());
        }
        if computed > limits.computing || progress.elapsed() > limits.waiting {
            child.kill().and_then(|()| child.wait()).expect("the programs are ours");
            let waited = progress.elapsed();
            return Err(format!("did not end: they computed for {computed:?}, then waited for {waited:?}"));
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns how long a process has computed, in all of its threads; nothing where the system does not tell.
fn computing_time(child: &Child) -> Duration {
    /// Of a second, on every Linux of today.
    const TICK: Duration = Duration::from_millis(10);
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    // The fields 14 and 15, of which the second is the name, in parentheses.
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u32>().ok());
    TICK * ticks.sum()
}

/// A loop is stopped after what it computed, programs that wait for ever after what they waited.
#[cfg(target_os = "linux")]
#[test]
fn programs_that_do_not_end_are_stopped() {
    let (short, never) = (Duration::from_millis(50), Duration::from_secs(3600));
    let run = |script: &str, limits: Limits| {
        let child = Command::new("sh").args(["-c", script]).spawn().expect("there is a shell");
        ended(child, &limits)
    };
    let looped = run("while :; do :; done", Limits { computing: short, waiting: never });
    assert!(looped.is_err_and(|how| how.starts_with("did not end")));
    let waited = run("exec sleep 3600", Limits { computing: never, waiting: short });
    assert!(waited.is_err_and(|how| how.starts_with("did not end")));
    let failed = run("exit 3", Limits { computing: never, waiting: never });
    assert!(failed.is_err_and(|how| how.contains('3')));
    assert_eq!(run("exit 0", Limits { computing: never, waiting: never }), Ok(()));
}
