//! A program in every mode, against its plain meaning.

use std::panic::{AssertUnwindSafe, catch_unwind};

use graphable::{Error, Mode, Result, Stats};

use crate::{
    drawn_passes::{Chosen, Counts},
    listed, oracle,
    program::{Code, Elem, Program, StepPlan, any_code, any_instr},
    run::{self, Setup},
    value::{End, Flat},
    world::StepOut,
};

/// What went wrong. Shrinking keeps the class.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) class: String,
    pub(crate) text: String,
}

/// The modes that a program is run in.
fn setups(program: &Program) -> Vec<Setup> {
    // Of the programs that run in both modes, each runs with all passes, and with some in any order.
    let draws = |mode| (mode == Mode::Full) == program.seed.is_multiple_of(2);
    let setup = |mode, audit_every| {
        let passes = if draws(mode) { Chosen::Drawn(program.seed) } else { Chosen::All };
        Setup { mode, audit_every, moves: usize::MAX, shares: false, passes }
    };
    let copying = |mode, audit_every| Setup { moves: 1, ..setup(mode, audit_every) };
    let sharing = |setup| Setup { shares: true, ..setup };
    let mut all = vec![setup(Mode::None, 0), setup(Mode::Piecewise, 0)];
    if program.capturable {
        all.push(setup(Mode::Full, 0));
    }
    if program.seed.is_multiple_of(4) {
        all.push(setup(Mode::Piecewise, 2));
    }
    if program.seed.is_multiple_of(8) && program.capturable {
        all.push(setup(Mode::Full, 2));
    }
    // What moves once is copied from then on.
    if program.seed % 4 == 1 {
        all.push(copying(Mode::Piecewise, 0));
    }
    if program.seed % 8 == 3 {
        all.push(copying(Mode::Piecewise, 2));
    }
    if program.seed % 8 == 5 && program.capturable {
        all.push(copying(Mode::Full, 0));
    }
    // The operations of bodies one by one.
    let unchanged = |setup| Setup { passes: Chosen::None, ..setup };
    // And one of a user.
    let users = |setup| Setup { passes: Chosen::Users, ..setup };
    match program.seed % 8 {
        3 => all.push(users(setup(Mode::Piecewise, 2))),
        7 if program.capturable => all.push(users(setup(Mode::Full, 2))),
        4 => all.push(unchanged(setup(Mode::Piecewise, 0))),
        1 if program.capturable => all.push(unchanged(setup(Mode::Full, 0))),
        _ => {}
    }
    // Recordings that run by one executable.
    match program.seed % 8 {
        2 => all.push(sharing(setup(Mode::Piecewise, 0))),
        6 => all.push(sharing(setup(Mode::Piecewise, 2))),
        7 => all.push(sharing(copying(Mode::Piecewise, 0))),
        0 if program.capturable => all.push(sharing(setup(Mode::Full, 0))),
        _ => {}
    }
    all
}

/// Runs `f`; a panic becomes a failure.
fn guarded<T>(what: &str, f: impl FnOnce() -> Result<T>) -> Result<T, Failure> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            Err(Failure { class: format!("{what}: {}", kind(&error)), text: format!("{what}: {error}") })
        }
        Err(panic) => {
            let text =
                panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            let text = text.unwrap_or("(no message)");
            let class = text.chars().take_while(|c| !c.is_ascii_digit()).collect::<String>();
            Err(Failure { class: format!("{what}: panic {class}"), text: format!("{what}: panic: {text}") })
        }
    }
}

/// The variant, and the operation that it is about.
fn kind(error: &Error) -> String {
    format!("{error:?}").chars().take_while(|c| !c.is_ascii_digit()).take(40).collect()
}

/// What programs met, besides what the runtime counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Met {
    /// Calls that made numbers of padded sizes.
    pub(crate) numbers: u64,
    /// Calls that picked rows which are not there.
    pub(crate) ranges: u64,
    pub(crate) estimates: u64,
    pub(crate) rebuilt: u64,
    pub(crate) replaced: u64,
    /// Parameters that were overwritten behind the first call of a step.
    pub(crate) written: u64,
    /// Steps with another size of what regions make than the step before.
    pub(crate) sizes: u64,
    /// Programs that draw random numbers.
    pub(crate) draws: u64,
    /// Programs with control flow on the device.
    pub(crate) flows: u64,
    pub(crate) passes: Counts,
}

impl Met {
    fn of(program: &Program, outs: &[StepOut]) -> Self {
        let ends =
            |is: fn(&End) -> bool| outs.iter().flat_map(|o| &o.ends).flatten().filter(|e| is(e)).count();
        let steps = |is: fn(&StepPlan) -> bool| program.steps.iter().filter(|s| is(s)).count() as u64;
        let grows = program.funcs.iter().any(|f| any_code(&f.body, &|op| op == Code::Grown));
        Self {
            numbers: ends(|e| *e == End::Padded) as u64,
            ranges: ends(|e| matches!(e, End::Range { .. })) as u64,
            estimates: steps(|s| s.estimate),
            rebuilt: steps(|s| !s.rebuild.is_empty()),
            replaced: steps(|s| !s.replace.is_empty()),
            written: steps(|s| s.writes.iter().any(|write| write.before > 0)),
            draws: program.funcs.iter().any(|f| any_code(&f.body, &|op| op == Code::Drawn)).into(),
            flows: program.funcs.iter().any(|f| any_code(&f.body, &|op| op == Code::Flow)).into(),
            passes: Counts::default(),
            sizes: program.steps.windows(2).filter(|s| grows && s[0].v != s[1].v).count() as u64,
        }
    }
}

/// What the runs counted, one for each setup, and what the program met.
pub(crate) fn check(program: &Program) -> Result<(Vec<Stats>, Met), Failure> {
    let expected = guarded("the program itself", || oracle::run(program))?;
    let (mut stats, mut passes) = (Vec::new(), Counts::default());
    for setup in setups(program) {
        let audited = if setup.audit_every > 0 { ", audited" } else { "" };
        let copying = if setup.moves < usize::MAX { ", copying" } else { "" };
        let sharing = if setup.shares { ", sharing" } else { "" };
        let with = match setup.passes {
            Chosen::All => String::new(),
            Chosen::None => ", without passes".into(),
            Chosen::Users => ", with a user's pass".into(),
            Chosen::Drawn(_) => format!(", passes {}", setup.passes.names().join(" ")),
        };
        let what = format!("mode {}{audited}{copying}{sharing}{with}", setup.mode);
        let run = guarded(&what, || run::run(program, setup))?;
        let approximate = approximate(program);
        for (at, (got, expected)) in run.steps.iter().zip(&expected).enumerate() {
            // The host decided by all bits of a value, of which the last ones are not the oracle's: both ran different code from
            // there on.
            if approximate && got.decisions != expected.decisions {
                break;
            }
            if let Some(text) = difference(got, expected, approximate) {
                return Err(Failure {
                    class: format!("{what}: values"),
                    text: format!("{what}: step {at}: {text}"),
                });
            }
        }
        stats.push(run.stats);
        passes.add(&run.passes);
    }
    Ok((stats, Met { passes, ..Met::of(program, &expected) }))
}

/// On a GPU the algorithm of a product depends on how its operands are aligned, and how a reduction is divided
/// on how many rows there are, padding included. Both differ from the oracle's: the last bits may too.
fn approximate(program: &Program) -> bool {
    const SUMS: [&str; 14] = [
        "MatMul",
        "Linear",
        "Softmax",
        "LogSoftmax",
        "L2",
        "Sum",
        "Mean",
        "MaskedMean",
        "RmsNorm",
        "LayerNorm",
        "AllMean",
        "SeenKeys",
        "Windows",
        "Cell",
    ];
    let sums = || {
        let code = format!("{:?}", program.funcs);
        SUMS.iter().any(|name| code.contains(name))
            || program.funcs.iter().any(|func| any_instr(&func.body, &listed::is_summed))
    };
    program.approximate || crate::device::gpu().is_some() && sums()
}

fn difference(got: &StepOut, expected: &StepOut, approximate: bool) -> Option<String> {
    for (c, (got, expected)) in got.calls.iter().zip(&expected.calls).enumerate() {
        for (o, (got, expected)) in got.iter().zip(expected).enumerate() {
            if let Some(text) = unlike(got, expected, approximate) {
                return Some(format!("call {c}, output {o}: {text}"));
            }
        }
        if got.len() != expected.len() {
            return Some(format!("call {c} gave {} outputs, not {}", got.len(), expected.len()));
        }
    }
    if got.ends != expected.ends {
        return Some(format!("the calls ended {:?}, not {:?}", got.ends, expected.ends));
    }
    if got.decisions != expected.decisions {
        return Some(format!("the driver read {:?}, not {:?}", got.decisions, expected.decisions));
    }
    got.states
        .iter()
        .zip(&expected.states)
        .enumerate()
        .find_map(|(s, (got, expected))| Some(format!("state {s}: {}", unlike(got, expected, approximate)?)))
}

fn unlike(got: &Flat, expected: &Flat, approximate: bool) -> Option<String> {
    if (got.elem, &got.shape) != (expected.elem, &expected.shape) {
        return Some(format!("{:?}{:?}, not {:?}{:?}", got.elem, got.shape, expected.elem, expected.shape));
    }
    let float = |bits: u64| match got.elem {
        Elem::F64 => f64::from_bits(bits),
        _ => f32::from_bits(bits as u32).into(),
    };
    let near = |a: u64, b: u64| {
        let (a, b) = (float(a), float(b));
        (a - b).abs() <= 1e-4 * (1.0 + b.abs()) || a.is_nan() && b.is_nan() || a == b
    };
    let close = approximate && matches!(got.elem, Elem::F32 | Elem::F64);
    let at = (0..got.bits.len().max(expected.bits.len())).find(|&i| {
        match (got.bits.get(i), expected.bits.get(i)) {
            (Some(a), Some(b)) => a != b && !(close && near(*a, *b)),
            _ => true,
        }
    })?;
    let show = |f: &Flat| match (f.bits.get(at), f.elem) {
        (Some(&b), Elem::F32 | Elem::F64) => format!("{:e} ({b:#010x})", float(b)),
        (Some(&b), _) => format!("{b:#x}"),
        (None, _) => "nothing".to_owned(),
    };
    Some(format!("element {at} of {:?} is {}, not {}", got.shape, show(got), show(expected)))
}
