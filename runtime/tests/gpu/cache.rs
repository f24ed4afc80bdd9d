//! Compiled kernels on disk: with all of them there, the compiler is not needed. In processes of their own, since a
//! process loads a compiler once.

use std::{env, fs, path::Path, process::Command};

use graphable::{Error, graphable, prelude::*};

use crate::support::{runtime, skipped};

const VARIABLE: &str = "GRAPHABLE_TEST_CACHE";

#[graphable]
fn mixed(
    #[host]
    #[dims(N)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let y = ops::exp(&ops::scale(x, 0.5)?)?;
    ops::add(&y, &ops::softmax(x, 0)?)
}

fn run() -> Result<()> {
    let mut rt = runtime();
    let graph = MixedGraph::builder().build(&mut rt)?;
    for _ in 0..4 {
        let step = rt.step()?;
        let y = graph.call(&step, &[1.0; 100])?;
        assert!(step.read(&y)?.iter().all(|v| (v - 0.5f32.exp() - 0.01).abs() < 1e-5));
    }
    assert!(rt.stats().replays > 0, "{:?}", rt.stats());
    Ok(())
}

/// Runs this test in a process with such a cache, with the compiler or without.
fn process(cache: &Path, without: bool) -> bool {
    let mut command = Command::new(env::current_exe().unwrap());
    command.env(VARIABLE, if without { "without" } else { "with" }).env("GRAPHABLE_CACHE", cache);
    if without {
        command.env("GRAPHABLE_NVRTC", "/no/such/libnvrtc.so");
    }
    let arguments = ["--exact", "cache::with_a_warm_cache_nothing_is_compiled", "--nocapture"];
    command.args(arguments).status().unwrap().success()
}

#[test]
fn with_a_warm_cache_nothing_is_compiled() {
    if skipped("with_a_warm_cache_nothing_is_compiled") {
        return;
    }
    if env::var_os(VARIABLE).is_some() {
        let done = run();
        if env::var_os("GRAPHABLE_TEST_COLD").is_some() {
            let error = done.expect_err("nothing is compiled yet, and there is no compiler");
            assert!(matches!(error, Error::NoDevice { .. }), "{error}");
            assert!(error.to_string().contains("GRAPHABLE_NVRTC"), "{error}");
        } else {
            done.unwrap();
        }
        return;
    }
    let cache = env::temp_dir().join(format!("graphable-warm-{}", std::process::id()));
    let _ = fs::remove_dir_all(&cache);
    let cold = Command::new(env::current_exe().unwrap())
        .env(VARIABLE, "without")
        .env("GRAPHABLE_TEST_COLD", "1")
        .env("GRAPHABLE_CACHE", &cache)
        .env("GRAPHABLE_NVRTC", "/no/such/libnvrtc.so")
        .args(["--exact", "cache::with_a_warm_cache_nothing_is_compiled", "--nocapture"])
        .status()
        .unwrap();
    assert!(cold.success(), "without compiler and cache there is a typed error");
    assert!(process(&cache, false), "with the compiler");
    assert!(process(&cache, true), "with the cache alone");
    fs::remove_dir_all(&cache).unwrap();
}
