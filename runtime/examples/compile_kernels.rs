//! Compiles every CUDA kernel for the architectures that are named, without a GPU: what CI runs.
//!
//! `cargo run -p graphable --example compile_kernels -- compute_80 sm_90a`; `compute_80` stops at PTX, `sm_90a` makes
//! machine code. `GRAPHABLE_NVRTC` may name the compiler's library or its folder. `--verbose` prints registers of each
//! kernel.

use std::process::ExitCode;

use graphable::backend::cuda::compile_all;

fn main() -> ExitCode {
    let (flags, archs): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|a| a.starts_with('-'));
    let verbose = flags.iter().any(|f| f == "--verbose");
    if archs.is_empty() || flags.iter().any(|f| f != "--verbose") {
        eprintln!("usage: compile_kernels [--verbose] sm_80 sm_90a …");
        return ExitCode::from(2);
    }
    let mut spilled = false;
    for arch in &archs {
        let units = match compile_all(arch) {
            Ok(units) => units,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        };
        let mut kernels = 0;
        for (name, log) in &units {
            // Of the part that makes machine code.
            kernels += log.matches("Compiling entry function").count();
            // Local memory instead of registers: a kernel that was not meant to be so.
            let spills = log
                .lines()
                .filter(|l| l.contains("bytes spill stores") && !l.contains(" 0 bytes spill stores"));
            for line in spills {
                spilled = true;
                eprintln!("{arch}: {name}: {}", line.trim());
            }
            if verbose {
                println!("{arch}: {name}\n{log}");
            }
        }
        match arch.starts_with("compute_") {
            true => println!("{arch}: {} units compiled to PTX", units.len()),
            false => println!("{arch}: {kernels} kernels of {} units compiled", units.len()),
        }
    }
    if spilled { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
