//! Compiled kernels on disk: with all of them there, the compiler is not needed. In processes of their own, since a
//! process loads a compiler once.

use std::{env, fs, path::Path, process::Command};

use graphable::{CacheFolder, CudaOptions, Error, Numerics, graphable, prelude::*};

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

/// A folder of its own, removed at the end.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("graphable-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn options(&self) -> CudaOptions {
        CudaOptions::default().cache_folder(CacheFolder::At(self.0.clone()))
    }

    fn runtime(&self, set: impl FnOnce(CudaOptions) -> CudaOptions) -> Runtime {
        Runtime::new(Device::cuda_with(0, set(self.options()))).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Eager products of these numbers of rows; returns the bits of the results.
fn products(rt: &mut Runtime, rows: impl IntoIterator<Item = usize>) -> Vec<Vec<u32>> {
    let values = |n: usize| (0..n).map(|i| ((i * 7919) % 1013) as f32 / 507.0 - 1.0).collect::<Vec<_>>();
    let w = Param::new(rt, &[1024, 256], &values(1024 * 256)).unwrap();
    let mut product = |m: usize| {
        let step = rt.step().unwrap();
        let x = step.tensor(&[m, 1024], &values(m * 1024)).unwrap();
        let y = ops::matmul(&x, &w).unwrap();
        step.read(&y).unwrap().iter().map(|v| v.to_bits()).collect()
    };
    rows.into_iter().map(&mut product).collect()
}

#[test]
fn plans_of_products_are_counted_bounded_and_cleared() {
    if skipped("plans_of_products_are_counted_bounded_and_cleared") {
        return;
    }
    let folder = Folder::new("plans");
    let rows = || (0..12).map(|i| 64 + 8 * i);
    let mut first = folder.runtime(|o| o);
    products(&mut first, rows());
    let stats = first.caches();
    assert_eq!((stats.product_plans, stats.measured, stats.measured_on_disk), (12, 12, 0), "{stats:?}");
    assert_eq!((stats.pinned_product_plans, stats.product_plans_evicted), (0, 0), "{stats:?}");
    assert!(stats.disk_entries >= 12 && stats.disk_bytes > 0, "{stats:?}");
    // Forgotten in memory, and found on disk.
    first.clear_caches().unwrap();
    assert_eq!(first.caches().product_plans, 0);
    products(&mut first, rows());
    let stats = first.caches();
    assert_eq!((stats.product_plans, stats.measured, stats.measured_on_disk), (12, 12, 12), "{stats:?}");
    // Another runtime finds them at once; with fewer places it forgets.
    let mut second = folder.runtime(|o| o.product_plans(4));
    products(&mut second, rows().chain(rows()));
    let stats = second.caches();
    assert!(stats.product_plans <= 4 && stats.product_plans_evicted >= 16, "{stats:?}");
    assert_eq!((stats.measured, stats.measured_on_disk), (0, 24), "{stats:?}");
    // Nothing is left on disk, and what is in memory stays.
    assert!(second.clear_disk_cache().unwrap() > 0);
    assert_eq!((second.caches().disk_entries, second.caches().disk_bytes), (0, 0));
    assert_eq!(first.caches().product_plans, 12);
    // Without a folder nothing is stored.
    let mut off =
        Runtime::new(Device::cuda_with(0, folder.options().cache_folder(CacheFolder::Off))).unwrap();
    products(&mut off, [64]);
    let stats = off.caches();
    assert_eq!((stats.measured, stats.disk_entries), (1, 0), "{stats:?}");
    assert_eq!(first.caches().disk_entries, 0);
}

#[test]
fn plans_of_recordings_stay() {
    #[graphable]
    fn multiply(x: &Tensor<f32>, w: &Param<f32>) -> Result<Tensor<f32>> {
        ops::matmul(x, w)
    }
    if skipped("plans_of_recordings_stay") {
        return;
    }
    let folder = Folder::new("pinned-plans");
    let mut rt = folder.runtime(|o| o.product_plans(1));
    let w = Param::new(&rt, &[256, 128], &vec![0.5f32; 256 * 128]).unwrap();
    let graph = MultiplyGraph::builder().audit_every(1).build(&mut rt).unwrap();
    for round in 0..6 {
        for m in [16usize, 32, 48] {
            let step = rt.step().unwrap();
            let x = step.tensor(&[m, 256], &vec![1.0f32; m * 256]).unwrap();
            assert_eq!(step.read(&graph.call(&step, &x, &w).unwrap()).unwrap(), vec![128.0; m * 128]);
        }
        rt.clear_caches().unwrap();
        if round > 1 {
            let stats = rt.caches();
            assert_eq!((stats.product_plans, stats.pinned_product_plans), (3, 3), "{stats:?}");
        }
    }
    assert!(rt.stats().audits > 6);
    rt.reset().unwrap();
    rt.synchronize().unwrap();
    rt.clear_caches().unwrap();
    assert_eq!(rt.caches().product_plans, 0);
}

#[test]
fn the_folder_has_a_limit() {
    if skipped("the_folder_has_a_limit") {
        return;
    }
    let folder = Folder::new("limit");
    let mut rt = folder.runtime(|o| o.cache_limit(Some(4000)));
    products(&mut rt, (0..40).map(|i| 64 + 8 * i));
    let stats = rt.caches();
    assert!(stats.disk_bytes <= 4000 && stats.disk_evicted > 0 && stats.disk_entries > 0, "{stats:?}");
    assert_eq!(stats.product_plans, 40);
}

/// Whatever was measured, and found on disk or not: the deterministic mode has its own choice.
#[test]
fn deterministic_products_do_not_depend_on_measurements() {
    if skipped("deterministic_products_do_not_depend_on_measurements") {
        return;
    }
    let folder = Folder::new("deterministic");
    let rows = || (0..20).map(|i| 8 + 24 * i);
    let mut all = Vec::new();
    for round in 0..4 {
        let mut rt = folder.runtime(|o| o);
        if round % 2 == 1 {
            products(&mut rt, rows());
        }
        rt.set_numerics(Numerics::default().deterministic(true));
        let before = rt.caches();
        all.push(products(&mut rt, rows()));
        let after = rt.caches();
        assert_eq!((after.measured, after.measured_on_disk), (before.measured, before.measured_on_disk));
        if round == 2 {
            rt.clear_disk_cache().unwrap();
        }
    }
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "the bits differ");
}
