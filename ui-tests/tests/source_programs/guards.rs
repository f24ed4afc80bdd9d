//! Random functions that make values whose drop has an effect, and boundaries behind them.
//!
//! A replay does not make such a value again, so a function is to be refused if one of them lives at a boundary and came to be in a
//! segment. What is accepted acquires and releases its guards in the order of the same text without boundaries, as
//! far as calls are noted that record nothing. What is refused holds a guard at a boundary in some call of that text: the rule would
//! be in the way of code that means the same everywhere.
//!
//! `GRAPHABLE_GUARD_PROGRAMS=4000` tries more of them than the default, `GRAPHABLE_SOURCE_FROM=7` begins with seed 7, and
//! `GRAPHABLE_GUARD_ONE=7` tries one, and prints it.

mod generate;

use std::{collections::BTreeSet, fmt::Write as _};

use crate::{
    compile::{self, Outcome, Refused},
    folder, number,
    program::{Form, Program},
};

/// Functions of every run, and in one crate.
const SHORT: u64 = 40;
const BATCH: u64 = 120;

/// Refusals of other rules, which say nothing about guards that end with their segment.
const OTHER_RULES: [&str; 2] = [
    // A value that later code uses would have to leave its segment, and enter another one.
    "[G052]", "[G050]",
];

/// What is wrong with the verdict about one function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// It is accepted, and gives something else, or its guards are released elsewhere.
    Silent,
    /// It is refused, and none does.
    NoReason,
}

/// Runs some programs, also those that are refused with boundaries.
fn outcome(programs: &[&Program], name: &str) -> Outcome {
    compile::run(programs, &folder(name), Refused::Run)
}

fn fault(outcome: &Outcome, program: &Program) -> Option<Fault> {
    let (seed, held) = (program.seed, outcome.held.get(&program.seed));
    match outcome.refused.get(&seed) {
        None if outcome.differs.contains_key(&seed) => Some(Fault::Silent),
        Some(errors) if held.is_some_and(|most| *most == 0) => {
            let is_ours = |error: &String| !OTHER_RULES.iter().any(|rule| error.contains(rule));
            let is_decided = !program.render(Form::Marked).contains(generate::UNDECIDED);
            (is_decided && errors.iter().any(is_ours)).then_some(Fault::NoReason)
        }
        _ => None,
    }
}

#[test]
fn guards_are_refused_where_one_lives_at_a_boundary() {
    let one = number("GRAPHABLE_GUARD_ONE");
    let from = one.or_else(|| number("GRAPHABLE_SOURCE_FROM")).unwrap_or(0);
    let count = one.map(|_| 1).or_else(|| number("GRAPHABLE_GUARD_PROGRAMS")).unwrap_or(SHORT);
    let mut failures = String::new();
    let (mut accepted, mut refused, mut faulty) = (0, 0, BTreeSet::new());
    for start in (from..from + count).step_by(BATCH as usize) {
        let programs: Vec<Program> =
            (start..(start + BATCH).min(from + count)).map(generate::program).collect();
        if one.is_some() {
            println!("{}", programs[0].render(Form::Marked));
        }
        let batch = outcome(&programs.iter().collect::<Vec<_>>(), "guards");
        if let Some(broken) = &batch.broken {
            let _ = writeln!(failures, "seeds from {start}: {broken}");
        }
        for program in &programs {
            if let Some(found) = fault(&batch, program) {
                let smaller = crate::smallest(program.clone(), |p| {
                    fault(&outcome(&[p], "shrink_guards"), p) == Some(found)
                });
                let (seed, text) = (program.seed, smaller.render(Form::Marked));
                let (errors, what) = (batch.refused.get(&seed), batch.differs.get(&seed));
                let _ = writeln!(failures, "seed {seed}, {found:?} {errors:?} {what:?}:\n{text}");
            }
        }
        accepted += batch.ran.len();
        refused += batch.refused.len();
        faulty.extend(batch.faulty);
    }
    println!("{accepted} functions with guards accepted, {refused} refused; no Rust: {faulty:?}");
    assert!(failures.is_empty(), "{failures}");
    if one.is_none() {
        let (accepted, refused) = (accepted as u64, refused as u64);
        assert!(
            accepted * 8 >= count && refused * 8 >= count,
            "only {accepted} accepted, and {refused} refused, of {count}"
        );
    }
}
