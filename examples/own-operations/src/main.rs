//! Operations of one's own in a graph, in all three ways: a Rust function (`#[kernel]`, in `model.rs`), CUDA code
//! (`windows.cu`), and a library with plans and workspaces of its own (cuFFT, in `fft.rs`).
//!
//! `cargo run` prints a line for each check, and exits with 1 if one fails. On a GPU, cuFFT must be found: put the folder of
//! `libcufft.so` into `LD_LIBRARY_PATH`. Without a GPU, the same program runs on the CPU.

#![deny(warnings)]

mod fft;
mod model;
mod reference;
mod windows;

use std::process::ExitCode;

use graphable::prelude::*;

use model::{AnalyzeGraph, Analyzer, BINS, LENGTH, SAMPLES};

/// Calls of each graph after the two that warm it up and record it.
const REPLAYS: usize = 1000;
/// Different signals, of one to four rows.
const SIGNALS: usize = 20;

fn analyzer(rt: &Runtime) -> Result<Analyzer> {
    let gain: Vec<f32> = (0..BINS).map(|i| i as f32 / 8.0 - 3.0).collect();
    Ok(Analyzer { gain: Param::new(rt, &[BINS], &gain)?, fft: HostContext::new(rt, fft::real_fft(LENGTH)) })
}

/// A signal, the floor of its levels, and what the model makes of it without graphs.
struct Case {
    signal: Vec<f32>,
    /// Differs from call to call, and records nothing.
    floor: f32,
    eager: Vec<f32>,
}

fn cases(rt: &mut Runtime, analyzer: &Analyzer) -> Result<Vec<Case>> {
    let graph = AnalyzeGraph::builder().bucket("B", Schedule::new([2, 4])).mode(Mode::None).build(rt)?;
    let run = |case: usize| {
        let signal = reference::numbers(case as u32, SAMPLES * (1 + case % 4));
        let floor = 1e-6 * (1 + case) as f32;
        let step = rt.step()?;
        let eager = step.read(&graph.call(&step, &signal, floor, analyzer)?)?;
        Ok(Case { signal, floor, eager })
    };
    (0..SIGNALS).map(run).collect()
}

/// What was found out about one graph.
struct Replayed {
    /// Calls whose result differed from the eager one, in any bit.
    different: usize,
    /// Recordings that the first two calls of each bucket made.
    recorded: u64,
    /// Recordings and warm-ups after them.
    later: u64,
    replays: u64,
    fallbacks: u64,
}

fn replayed(rt: &mut Runtime, analyzer: &Analyzer, cases: &[Case], mode: Mode) -> Result<Replayed> {
    let graph = AnalyzeGraph::builder()
        .bucket("B", Schedule::new([2, 4]))
        .mode(mode)
        .deny_fallback(true)
        .build(rt)?;
    let before = rt.stats();
    let mut different = 0;
    let mut call = |rt: &mut Runtime, case: &Case| -> Result<()> {
        let step = rt.step()?;
        let got = step.read(&graph.call(&step, &case.signal, case.floor, analyzer)?)?;
        different += usize::from(got.iter().map(|x| x.to_bits()).ne(case.eager.iter().map(|x| x.to_bits())));
        Ok(())
    };
    // Rows of both buckets, twice.
    for case in [&cases[0], &cases[2], &cases[1], &cases[3]] {
        call(rt, case)?;
    }
    let first = rt.stats();
    for i in 0..REPLAYS {
        call(rt, &cases[i % cases.len()])?;
    }
    let last = rt.stats();
    Ok(Replayed {
        different,
        recorded: first.recordings - before.recordings,
        later: (last.recordings - first.recordings) + (last.warmups - first.warmups),
        replays: last.replays - first.replays,
        fallbacks: last.fallbacks - before.fallbacks,
    })
}

/// Whether a new plan is recorded in the place of the old one, with the same results.
fn replaced(rt: &mut Runtime, analyzer: &mut Analyzer, case: &Case) -> Result<bool> {
    let graph = AnalyzeGraph::builder()
        .bucket("B", Schedule::new([2, 4]))
        .mode(Mode::Full)
        .deny_fallback(true)
        .build(rt)?;
    let mut nodes = Vec::new();
    let mut equal = true;
    for _ in 0..5 {
        for _ in 0..3 {
            let step = rt.step()?;
            equal &= step.read(&graph.call(&step, &case.signal, case.floor, analyzer)?)? == case.eager;
        }
        nodes.push(rt.stats().live_recordings);
        // Dropping the old one ends its recordings, and with them its plans.
        analyzer.fft = HostContext::new(rt, fft::real_fft(LENGTH));
    }
    Ok(equal && nodes == [1; 5])
}

/// Prints one line for each check.
struct Report {
    failed: usize,
}

impl Report {
    fn check(&mut self, holds: bool, what: &str) {
        println!("{}: {what}", if holds { "ok" } else { "FAILED" });
        self.failed += usize::from(!holds);
    }
}

fn run(report: &mut Report) -> Result<()> {
    let mut rt = Runtime::new(Device::best()?)?;
    println!("device: {}", rt.device());
    let mut analyzer = analyzer(&rt)?;
    let cases = cases(&mut rt, &analyzer)?;

    let gain: Vec<f32> = (0..BINS).map(|i| i as f32 / 8.0 - 3.0).collect();
    let furthest = cases
        .iter()
        .map(|case| reference::distance(&case.eager, &reference::analyze(&case.signal, case.floor, &gain)));
    let furthest = furthest.fold(0.0, f64::max);
    report.check(
        furthest < 1e-4,
        &format!("the model agrees with double precision on the host, to {furthest:.1e}"),
    );

    // A segment before the eager region, and one behind it.
    for (mode, segments) in [(Mode::Full, 1), (Mode::Piecewise, 2)] {
        let found = replayed(&mut rt, &analyzer, &cases, mode)?;
        let equal = found.different == 0 && found.replays == (REPLAYS * segments) as u64;
        report.check(equal, &format!("{mode}: {REPLAYS} replayed calls are equal to eager ones, bit by bit"));
        let (recorded, later) = (found.recorded, found.later);
        let settled = recorded == 2 * segments as u64 && later == 0;
        report.check(
            settled,
            &format!(
                "{mode}: the first two calls of a bucket record ({recorded}), later ones do not ({later})"
            ),
        );
        report.check(found.fallbacks == 0, &format!("{mode}: nothing fell back"));
    }
    let replaced = replaced(&mut rt, &mut analyzer, &cases[0])?;
    report.check(replaced, "a plan that is replaced goes, with its recordings");
    rt.check_memory()
}

fn main() -> ExitCode {
    let mut report = Report { failed: 0 };
    if let Err(error) = run(&mut report) {
        report.check(false, &error.to_string());
    }
    ExitCode::from(u8::from(report.failed > 0))
}
