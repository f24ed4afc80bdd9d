//! The device that a test binary works on: the CPU, or what `GRAPHABLE_TEST_DEVICE` names (`cuda:0`).
//! Where there is a GPU, one test runs the whole binary again on it.

use std::{
    env,
    io::Write as _,
    process::{Command, Stdio},
};

use graphable::{
    Device,
    backend::{
        Backend,
        cpu::{CpuBackend, CpuOptions},
        cuda::{self, CudaBackend, CudaOptions},
    },
};

const VARIABLE: &str = "GRAPHABLE_TEST_DEVICE";

/// The ordinal of the GPU that is asked for; `None` is the CPU.
pub(crate) fn gpu() -> Option<usize> {
    let named = env::var(VARIABLE).ok()?;
    match named.strip_prefix("cuda:").map(str::parse) {
        Some(Ok(ordinal)) => Some(ordinal),
        _ if named == "cpu" => None,
        _ => panic!("{VARIABLE} is `{named}`; it may be `cpu` or `cuda:0`"),
    }
}

/// The device, in test mode if `options` say so.
pub(crate) fn device(options: CpuOptions) -> Device {
    match gpu() {
        Some(ordinal) => Device::cuda_with(ordinal, cuda_options(&options)),
        None => Device::cpu_with(options),
    }
}

/// The same as a backend, to be wrapped.
#[allow(dead_code, reason = "not every test binary wraps one")]
pub(crate) fn backend(options: CpuOptions) -> Box<dyn Backend> {
    match gpu() {
        Some(ordinal) => Box::new(CudaBackend::new(ordinal, cuda_options(&options)).unwrap()),
        None => Box::new(CpuBackend::new(options).unwrap()),
    }
}

/// Whether unmapped pages lie between the blocks of a GPU's arenas: their sizes mean nothing then, and none is
/// counted.
pub(crate) fn has_gaps() -> bool {
    env::var_os("GRAPHABLE_GUARD_GAPS").is_some()
}

/// Whether a test that counts bytes of an arena is skipped, and says so.
#[allow(dead_code, reason = "not every test binary counts them")]
pub(crate) fn skipped_with_gaps(test: &str) -> bool {
    if has_gaps() {
        say(&format!("GPU tests: skipped {test}: with GRAPHABLE_GUARD_GAPS sizes of arenas mean nothing"));
    }
    has_gaps()
}

/// Whether a test for the CPU alone is skipped, and says so.
#[allow(dead_code, reason = "not every test binary has one")]
pub(crate) fn skipped_on_gpus(test: &str, reason: &str) -> bool {
    if gpu().is_some() {
        say(&format!("GPU tests: skipped {test}: {reason}"));
    }
    gpu().is_some()
}

fn cuda_options(options: &CpuOptions) -> CudaOptions {
    CudaOptions::default().test_mode(options.test_mode.is_some()).guard_gaps(has_gaps())
}

/// Not captured by the test harness: what is skipped must be seen.
fn say(line: &str) {
    // A closed standard error is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[test]
fn all_of_it_on_a_gpu() {
    if env::var_os(VARIABLE).is_some() {
        // This is the run on the GPU, or one that is meant for the CPU alone.
        return;
    }
    let this = env::current_exe().unwrap();
    let name = this.file_name().unwrap().to_string_lossy().into_owned();
    if let Err(error) = cuda::check(0) {
        let list = Command::new(&this).args(["--list", "--format", "terse"]).output().unwrap();
        let tests = String::from_utf8_lossy(&list.stdout).lines().filter(|l| l.ends_with(": test")).count();
        say(&format!("GPU tests: skipped {} of {name}: {error}", tests - 1));
        return;
    }
    // One thread: tests that count bytes of the device must not meet others.
    let status = Command::new(&this)
        .env(VARIABLE, "cuda:0")
        .arg("--test-threads=1")
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{name} fails on cuda:0; run it with {VARIABLE}=cuda:0 to see more");
}
