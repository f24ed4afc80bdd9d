//! Figures on a GPU. `compare.py` beside this runs PyTorch on the same device in the same command and prints
//! the ratios; this prints one JSON object a line.
//!
//! `cargo bench -p graphable --bench gpu -- [calls] [partition] [small] [batches] [copies] [current] [chains] [kernels] [rows] [norms] [indexed] [conv] [transposes] [attention] [numerics] [loading] [decode]`, all when none is named.

use std::process::ExitCode;

use graphable::{Error, Result};

mod attention;
mod batches;
mod calls;
mod chains;
mod conv;
mod copies;
mod decode;
mod indexed;
mod kernels;
mod loading;
mod norms;
mod numerics;
mod partition;
#[path = "../shared/partitioned.rs"]
mod partitioned;
mod rows;
#[path = "../shared/indexed.rs"]
mod shared_indexed;
#[path = "../shared/rows.rs"]
mod shared_rows;
mod small;
mod timing;
mod transposes;
#[path = "../shared/twins.rs"]
mod twins;

type Bench = fn() -> Result<(), Error>;

const ALL: [(&str, Bench); 18] = [
    ("calls", calls::run),
    ("partition", partition::run),
    ("small", small::run),
    ("batches", batches::run),
    ("copies", copies::run),
    ("current", copies::current),
    ("chains", chains::run),
    ("kernels", kernels::run),
    ("rows", rows::run),
    ("norms", norms::run),
    ("indexed", indexed::run),
    ("conv", conv::run),
    ("transposes", transposes::run),
    ("attention", attention::run),
    ("numerics", numerics::run),
    ("loading", loading::run),
    ("decode", decode::run),
    ("prefill", decode::prefill),
];
/// What `batches` starts, the models of `decode`, and what `weights.py` starts.
const PARTS: [(&str, Bench); 9] = [
    ("descending-first", batches::descending_first),
    ("descending", batches::descending),
    ("ascending", batches::ascending),
    ("decode-llama", decode::llama),
    ("decode-gpt", decode::gpt),
    ("decode-smollm", decode::smollm),
    ("decode-blocks", decode::blocks),
    ("prefill-blocks", decode::prompts),
    ("weights", decode::formats),
];

fn main() -> ExitCode {
    // `cargo bench` passes `--bench`.
    let named: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [part] = named.as_slice()
        && let Some((_, bench)) = PARTS.iter().find(|(name, _)| name == part)
    {
        return match bench() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{part}: {error}");
                ExitCode::FAILURE
            }
        };
    }
    if let Some(unknown) = named.iter().find(|n| ALL.iter().all(|(name, _)| name != n)) {
        eprintln!(
            "no figure `{unknown}`; there are calls, partition, small, batches, copies, current, chains, kernels, rows, norms, indexed, conv, transposes, attention, numerics, loading, decode, prefill"
        );
        return ExitCode::from(2);
    }
    if let Err(error) = graphable::backend::cuda::check(0) {
        println!("skipped: {error}");
        return ExitCode::SUCCESS;
    }
    for (name, bench) in ALL {
        if !named.is_empty() && !named.iter().any(|n| n == name) {
            continue;
        }
        if let Err(error) = bench() {
            eprintln!("{name}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
