//! Random functions as Rust text, compiled with `#[graphable]` and the attributes of their boundaries, and compared
//! in every mode, over calls whose inputs change, with the same text without boundaries: one segment that is run
//! eagerly. Values, errors and the state that is left are equal bit by bit.
//!
//! - `GRAPHABLE_SOURCE_PROGRAMS=4000` tries more of them than the default; `GRAPHABLE_SOURCE_FROM=7` begins with seed 7.
//! - `GRAPHABLE_SOURCE_ONE=7` tries one, and prints it.
//! - `GRAPHABLE_SOURCE_PROGRESS=FILE` keeps in a file how far it came, and goes on from there the next time;
//!   `GRAPHABLE_SOURCE_SECONDS=500` stops after the batch in which so much time has passed. So thousands are tried by
//!   the same command, several times.
//!
//! [`guards`] asks another question about other functions: whether one with a guard is refused.
//!
//! A function that differs, or is refused, is cut down and printed with its seed, or as it is with `GRAPHABLE_SOURCE_WHOLE=1`. Functions that a rule of the macro
//! refuses, with one of the codes in [`RULES`], are only counted.

#[path = "../common/rustc.rs"]
mod rustc;

mod compile;
mod generate;
mod guards;
mod program;
mod progress;

use std::{collections::BTreeMap, env, fmt::Write as _, path::PathBuf};

use compile::{Outcome, Refused};
use program::{Form, Program};
use progress::Progress;

/// Functions of every run, and in one crate.
const SHORT: u64 = 40;
const BATCH: u64 = 40;

/// What a random function may run into, and what else is an error of the macro.
const RULES: [&str; 6] = [
    // A pointer to a function is replaced, and used behind a boundary.
    "[G084]",
    // A closure is made anew where it is used, and what it captures was shadowed.
    "[G081]",
    // `early` and `late` of a region that depends on what it would pass, or that has nothing to pass.
    "[G069]",
    "[G009]",
    // An arm changes a field that it does not assign, beside one that it assigns: the change would not leave it.
    "cannot borrow data in a `&` reference as mutable",
    "cannot assign to data in a `&` reference",
];

fn number(name: &str) -> Option<u64> {
    env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number, not `{text}`")))
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("source_programs").join(name)
}

#[test]
fn boundaries_change_nothing() {
    let one = number("GRAPHABLE_SOURCE_ONE");
    let from = one.or_else(|| number("GRAPHABLE_SOURCE_FROM")).unwrap_or(0);
    let count = one.map(|_| 1).or_else(|| number("GRAPHABLE_SOURCE_PROGRAMS")).unwrap_or(SHORT);
    let mut total = Outcome::default();
    let mut failures = String::new();
    let mut progress = Progress::open(from);
    for start in (from..from + count).step_by(BATCH as usize) {
        if !progress.wants(start) {
            continue;
        }
        let known = failures.len();
        let programs: Vec<Program> =
            (start..(start + BATCH).min(from + count)).map(generate::program).collect();
        if one.is_some() {
            println!("{}", programs[0].render(Form::Marked));
        }
        let outcome = compile::run(&programs.iter().collect::<Vec<_>>(), &folder("batch"), Refused::Checked);
        for (seed, what) in &outcome.differs {
            let program = programs.iter().find(|p| p.seed == *seed).expect("one of these");
            let smaller = shrunk(program.clone(), |outcome| outcome.differs.contains_key(seed));
            let _ = writeln!(failures, "seed {seed}: {what}\n{}", smaller.render(Form::Marked));
        }
        for (seed, errors) in &outcome.refused {
            let odd = errors.iter().find(|e| !RULES.iter().any(|rule| e.contains(rule)));
            if let Some(error) = odd {
                let program = programs.iter().find(|p| p.seed == *seed).expect("one of these");
                let smaller = shrunk(program.clone(), |outcome| {
                    outcome.refused.get(seed).is_some_and(|errors| errors.contains(error))
                });
                let _ =
                    writeln!(failures, "seed {seed} is refused: {error}\n{}", smaller.render(Form::Marked));
            }
        }
        if let Some(broken) = &outcome.broken {
            let _ = writeln!(failures, "seeds from {start}: {broken}");
        }
        total.faulty.extend(outcome.faulty);
        total.refused.extend(outcome.refused);
        total.ran.extend(outcome.ran);
        total.replays += outcome.replays;
        progress.done((start + BATCH).min(from + count), total.ran.len(), &failures[known..]);
    }
    let tried = progress.tried(count);
    let mut by_rule: BTreeMap<&str, usize> = BTreeMap::new();
    for error in total.refused.values().filter_map(|errors| errors.first()) {
        *by_rule.entry(RULES.iter().find(|rule| error.contains(**rule)).unwrap_or(&"other")).or_default() +=
            1;
    }
    println!(
        "{} functions ran, {} replays; refused {by_rule:?}; no Rust: {:?}",
        total.ran.len(),
        total.replays,
        total.faulty
    );
    assert!(failures.is_empty(), "{failures}");
    if one.is_none() {
        let ran = total.ran.len() as u64;
        assert!(ran * 10 >= tried * 7, "only {ran} of {tried} functions ran");
        // A run that only finds everything tried has nothing to count.
        assert!(ran == 0 || total.replays > ran * 20, "only {} replays", total.replays);
    }
}

/// Smaller programs that fail as well, until there is none.
fn shrunk(program: Program, fails: impl Fn(&Outcome) -> bool) -> Program {
    smallest(program, |p| fails(&compile::run(&[p], &folder("shrink"), Refused::Checked)))
}

fn smallest(mut program: Program, fails: impl Fn(&Program) -> bool) -> Program {
    if env::var_os("GRAPHABLE_SOURCE_WHOLE").is_some() {
        return program;
    }
    while let Some(smaller) = program.smaller().into_iter().find(&fails) {
        program = smaller;
    }
    program
}
