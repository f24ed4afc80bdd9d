//! What the decode function of SmolLM2 needs of the pool, with memory given back at its last use and without.
//!
//! `cargo bench -p graphable-examples --bench last_use` prints the table of docs/BENCHMARKS.md: counts, not times. The
//! first run downloads the model (90 MB) into the user's cache.

use std::{error::Error, io};

use graphable_examples::{
    fetch::{Cache, SMOLLM2},
    gguf::Gguf,
    llama::{Language, Session},
    sampling::SamplingOptions,
};

use graphable::{Device, Mode};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Cache::of_user(true)?.get(&SMOLLM2)?;
    let file = Gguf::open(&folder.join(SMOLLM2.files[0].name))?;
    for mode in [Mode::Piecewise, Mode::Full] {
        for early in [false, true] {
            let (language, greedy) = (Language::of(&file)?, SamplingOptions::default());
            let mut session = Session::<f32>::load(&file, language, Device::cpu(), mode, 64, greedy)?;
            session.runtime().free_at_last_use(early);
            session.capture(|_, _| {})?;
            let memory = session.runtime().memory();
            let decode = memory.functions.iter().find(|f| f.function == "decode");
            let decode = decode.ok_or_else(|| io::Error::other("nothing of `decode` was captured"))?;
            println!(
                "{mode}, free at last use {early}: decode {}, sum {}, all functions {}",
                decode.pool_bytes, decode.pool_sum_bytes, memory.pool_recorded_bytes
            );
        }
    }
    Ok(())
}
