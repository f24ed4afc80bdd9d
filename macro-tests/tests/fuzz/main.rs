//! The macros over inputs that nobody would write: no panic, no hang, and whatever comes out is Rust with
//! errors that help.
//!
//! `cargo test -p macro-tests --test fuzz` runs a fixed list of inputs.
//! `GRAPHABLE_FUZZ_SECONDS=600` goes on for that long with others, `GRAPHABLE_FUZZ_FROM=n` begins with the
//! n-th, and `GRAPHABLE_FUZZ_ONE=n` runs the n-th only, and prints it; with
//! `GRAPHABLE_FUZZ_ALL` set, a failure does not end the run. `fuzz/` has the same for libFuzzer.

use std::{
    env,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

mod check;
mod found;
mod input;

use input::{Input, Inputs};

/// Inputs of every run.
const SHORT: u64 = 3000;

/// Longer than any expansion takes on any machine: what is not done then never will be.
const HANGS: Duration = Duration::from_secs(120);

/// Deep enough for every input that is small enough.
const STACK: usize = 1 << 30;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The bytes of the `n`-th input (SplitMix64).
fn bytes(n: u64) -> Vec<u8> {
    let mut state = n;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    let mut bytes = next().to_le_bytes().to_vec();
    for _ in 0..next() % 24 {
        bytes.extend(next().to_le_bytes());
    }
    bytes
}

/// What is being expanded, and since when.
type Current = Arc<Mutex<Option<(String, Instant)>>>;

/// Runs `work` on a deep stack; a process that is stuck in one expansion says which, and ends.
fn watched(work: impl FnOnce(&Current) + Send + 'static) {
    let current = Current::default();
    let done = Arc::new(AtomicBool::new(false));
    let worker = {
        let (current, done) = (current.clone(), done.clone());
        thread::Builder::new().stack_size(STACK).spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(|| work(&current)));
            done.store(true, Ordering::Release);
            result
        })
    };
    while !done.load(Ordering::Acquire) {
        thread::sleep(Duration::from_millis(20));
        let now = current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((what, _)) = now.as_ref().filter(|(_, since)| since.elapsed() > HANGS) {
            eprintln!("no end after {HANGS:?}: {what}");
            std::process::exit(1);
        }
    }
    if let Err(panic) = worker.unwrap().join().unwrap() {
        std::panic::resume_unwind(panic);
    }
}

/// Checks one input; `name` says how to run it again.
fn run(name: &str, input: &Input, current: &Current) {
    let set = |value| *current.lock().unwrap_or_else(PoisonError::into_inner) = value;
    set(Some((format!("{name}: {input}"), Instant::now())));
    match catch_unwind(AssertUnwindSafe(|| check::check(input))) {
        Ok(Ok(())) => {}
        Ok(Err(reason)) => fail(format!("{name}: {reason}\n\nthe input: {input}")),
        Err(_) => fail(format!("{name}: the macro panics\n\nthe input: {input}")),
    }
    set(None);
}

/// All failures of a run, with `GRAPHABLE_FUZZ_ALL` set; else the first ends it.
fn fail(what: String) {
    if env::var_os("GRAPHABLE_FUZZ_ALL").is_none() {
        panic!("{what}");
    }
    FAILED.store(true, Ordering::Relaxed);
    eprintln!("{what}\n");
}

static FAILED: AtomicBool = AtomicBool::new(false);

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not `{text}`")))
}

#[test]
fn random_inputs() {
    watched(|current| {
        let inputs = Inputs::of(&root());
        let name = |n| format!("GRAPHABLE_FUZZ_ONE={n}");
        if let Some(n) = number("GRAPHABLE_FUZZ_ONE") {
            let input = inputs.make(&bytes(n)).expect("an input");
            println!("{input}");
            return run(&name(n), &input, current);
        }
        let from = number("GRAPHABLE_FUZZ_FROM").unwrap_or(0);
        let seconds = number("GRAPHABLE_FUZZ_SECONDS").map(Duration::from_secs);
        let start = Instant::now();
        let (mut n, mut expanded) = (from, 0);
        while seconds.map_or(n < from + SHORT, |seconds| start.elapsed() < seconds) {
            if let Some(input) = inputs.make(&bytes(n)) {
                run(&name(n), &input, current);
                expanded += 1;
            }
            n += 1;
        }
        assert!(!FAILED.load(Ordering::Relaxed), "failures are above");
        println!("{expanded} inputs, {from} to {n}, in {:.0?}", start.elapsed());
        assert!(seconds.is_some() || expanded > SHORT / 2, "only {expanded} of {SHORT} are inputs");
    });
}

#[test]
fn the_seeds_themselves() {
    watched(|current| {
        let inputs = Inputs::of(&root());
        assert!(inputs.seeds().len() >= 100, "only {} seeds", inputs.seeds().len());
        for (i, seed) in inputs.seeds().enumerate() {
            run(&format!("seed {i}"), &seed, current);
        }
    });
}

#[test]
fn what_was_found_before() {
    watched(|current| {
        for (i, (entry, args, item)) in found::FOUND.iter().enumerate() {
            let (args, item) = (args.parse().unwrap(), item.parse().unwrap());
            run(&format!("find {i}"), &Input { entry: *entry, args, item }, current);
        }
    });
}
