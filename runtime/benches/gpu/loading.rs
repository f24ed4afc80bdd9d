//! Loading weights from a mapped file, beside reading that file: with its pages in the page cache, and without.
//!
//! The file of 2 GiB is written to the folder for temporary files (`TMPDIR`), which should be on a disk.

use std::{
    fs::File,
    io::{BufWriter, Read as _, Write as _},
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use graphable::{
    Device, Error, Result, Runtime,
    load::{self, MappedFile, SafeTensors},
    prelude::*,
};
use half::bf16;

use crate::timing::median;

/// Tensors of the file, and the bytes of each.
const TENSORS: usize = 32;
const BYTES: usize = 64 << 20;
const ROUNDS: usize = 5;

#[derive(Params)]
#[params(config = usize)]
struct Weights {
    #[param("w.{}", shape = [8192, 4096], len = *config)]
    w: Vec<Param<bf16>>,
}

fn failed(call: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |e| Error::Device { device: "the host".into(), call, reason: e.to_string() }
}

/// Writes the file. Its elements are random bits.
fn write(path: &Path) -> std::io::Result<()> {
    let entry = |i: usize| {
        let (from, to) = (i * BYTES, (i + 1) * BYTES);
        format!("\"w.{i}\":{{\"dtype\":\"BF16\",\"shape\":[8192,4096],\"data_offsets\":[{from},{to}]}}")
    };
    let mut header = format!("{{{}}}", (0..TENSORS).map(entry).collect::<Vec<_>>().join(","));
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    let mut file = BufWriter::with_capacity(4 << 20, File::create(path)?);
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    // Xorshift, by Marsaglia, 2003.
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for _ in 0..TENSORS * BYTES / 8 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        file.write_all(&state.to_le_bytes())?;
    }
    file.into_inner()?.sync_all()
}

/// Removes the file's pages from the page cache.
#[cfg(target_os = "linux")]
fn forget(path: &Path) -> std::io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let file = File::open(path)?;
    // SAFETY: the descriptor is open; the call reads and writes no memory of this process.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        code => Err(std::io::Error::from_raw_os_error(code)),
    }
}

#[cfg(not(target_os = "linux"))]
fn forget(_: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Reads the whole file, and returns the seconds that it takes.
fn read(path: &Path) -> std::io::Result<f64> {
    let start = Instant::now();
    let (mut file, mut buffer) = (File::open(path)?, vec![0; 4 << 20]);
    while file.read(&mut buffer)? > 0 {}
    Ok(start.elapsed().as_secs_f64())
}

/// Loads the file, and returns the seconds until the device has it.
fn loaded(rt: &mut Runtime, path: &Path) -> Result<f64> {
    let start = Instant::now();
    // SAFETY: the file is this program's, and nothing writes to it from here on.
    let source = SafeTensors::open_mapped(path, |file| unsafe { MappedFile::open(file) })?;
    let weights: Weights = load::load(rt, &source, &TENSORS)?;
    rt.step()?.synchronize()?;
    let seconds = start.elapsed().as_secs_f64();
    drop(weights);
    Ok(seconds)
}

/// Bytes of the process that are not a file's.
fn own_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or_default()
    };
    (of("RssAnon:") + of("RssShmem:")) << 10
}

/// Runs something, and returns the most bytes by which the process grows meanwhile.
fn growth<R>(run: impl FnOnce() -> R) -> (R, u64) {
    let (over, most, before) = (AtomicBool::new(false), AtomicU64::new(0), own_memory());
    let result = std::thread::scope(|s| {
        s.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                most.fetch_max(own_memory().saturating_sub(before), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let result = run();
        over.store(true, Ordering::Relaxed);
        result
    });
    (result, most.into_inner())
}

pub(crate) fn run() -> Result<()> {
    let path = std::env::temp_dir().join(format!("graphable-loading-{}.safetensors", std::process::id()));
    let measured = write(&path).map_err(failed("writing the file")).and_then(|()| measure(&path));
    // An error of the measurement is the one to report.
    std::fs::remove_file(&path).ok();
    measured
}

fn measure(path: &Path) -> Result<()> {
    let mut rt = Runtime::new(Device::cuda(0))?;
    for is_cold in [false, true] {
        let (mut reads, mut loads, mut most) = (Vec::new(), Vec::new(), 0);
        let prepare = || match is_cold {
            true => forget(path).map_err(failed("posix_fadvise")),
            false => read(path).map(drop).map_err(failed("read")),
        };
        for _ in 0..ROUNDS {
            prepare()?;
            reads.push(read(path).map_err(failed("read"))?);
            prepare()?;
            let (seconds, grown) = growth(|| loaded(&mut rt, path));
            loads.push(seconds?);
            most = most.max(grown);
        }
        let (read, load) = (median(reads), median(loads));
        let gigabytes = (TENSORS * BYTES) as f64 / 1e9;
        println!(
            "{{\"what\": \"loading\", \"case\": \"{}\", \"read_gb_s\": {:.2}, \"load_gb_s\": {:.2}, \"load_of_read\": {:.3}, \
             \"grown_mb\": {:.0}}}",
            if is_cold { "cold" } else { "warm" },
            gigabytes / read,
            gigabytes / load,
            read / load,
            most as f64 / 1e6
        );
    }
    Ok(())
}
