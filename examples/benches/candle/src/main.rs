//! Answers a prompt with candle's quantised Llama, for `examples/benches/speed.py`, which measures the process.
//!
//! `graphable-candle-peer FILE.gguf TOKENS ID,ID,..` reads the ids at once, takes the likeliest token TOKENS times, whatever it is,
//! and prints one JSON object: the tokens, and the seconds to the first of them and from there to the last.

use std::{env, error::Error, fs::File, io::BufReader, time::Instant};

use candle_core::{Device, Tensor, quantized::gguf_file};
use candle_transformers::models::quantized_llama::ModelWeights;

fn main() -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let mut args = env::args().skip(1);
    let mut next = || args.next().ok_or("FILE.gguf TOKENS ID,ID,..");
    let (path, count) = (next()?, next()?.parse::<usize>()?);
    let prompt = next()?.split(',').map(str::parse).collect::<Result<Vec<u32>, _>>()?;

    let device = Device::Cpu;
    let mut file = BufReader::new(File::open(path)?);
    let content = gguf_file::Content::read(&mut file)?;
    let mut model = ModelWeights::from_gguf(content, &mut file, &device)?;

    let mut choose = |ids: &[u32], at: usize| -> candle_core::Result<u32> {
        let logits = model.forward(&Tensor::new(ids, &device)?.unsqueeze(0)?, at)?;
        logits.squeeze(0)?.argmax(0)?.to_scalar()
    };
    let mut tokens = vec![choose(&prompt, 0)?];
    let first = start.elapsed();
    while tokens.len() < count {
        let at = prompt.len() + tokens.len() - 1;
        tokens.push(choose(&tokens[tokens.len() - 1..], at)?);
    }
    println!(
        "{{\"tokens\":{tokens:?},\"first_token_seconds\":{},\"decode_seconds\":{}}}",
        first.as_secs_f64(),
        (start.elapsed() - first).as_secs_f64()
    );
    Ok(())
}
