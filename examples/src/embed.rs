//! The program that compares sentences: from the command line to the cosines.

use std::fmt::Write;

use serde_json::json;

use crate::{
    Result,
    bert::{EncodeGraph, Encoder},
    cli::{Embed, device, print, say},
    fetch::{Cache, MINILM},
    progress::CaptureBar,
};

/// Compares the first sentence with each of the others, as the options say.
///
/// # Errors
/// Everything that can go wrong with options, model, device and output.
pub fn run(args: Embed) -> Result<()> {
    let common = &args.common;
    let loud = !common.quiet;
    let device = device(&common.device)?;
    let folder = match &args.model {
        Some(folder) => folder.clone(),
        None => Cache::of_user(common.quiet)?.get(&MINILM)?,
    };
    let mode = common.mode.of(&device);
    let mut encoder = Encoder::load(&folder, device, mode)?;

    if loud {
        say(format_args!("{}", EncodeGraph::PLAN));
    }
    let bar = CaptureBar::new(common.bars());
    encoder.capture(|p| bar.show("encode", &p))?;
    drop(bar);

    let embeddings = encoder.encode(&args.sentences)?;
    let cosines: Vec<f32> = embeddings[1..].iter().map(|e| cosine(&embeddings[0], e)).collect();
    if common.json {
        print(&format!("{}\n", json!({ "cosines": cosines })))?;
    } else {
        let mut text = String::new();
        for (cosine, sentence) in cosines.iter().zip(&args.sentences[1..]) {
            // Writing to a string cannot fail.
            writeln!(text, "{cosine:.4}  {sentence}").ok();
        }
        print(&text)?;
    }
    if loud {
        let stats = encoder.runtime().stats();
        let device = encoder.runtime().device();
        let (graphs, replays, recordings) = (stats.live_recordings, stats.replays, stats.recordings);
        say(format_args!(
            "\n{mode} on {device}: {graphs} graphs, {recordings} recordings, {replays} replays"
        ));
        for (reason, count) in &stats.fallback_reasons {
            say(format_args!("  {count} calls without a graph: {reason}"));
        }
    }
    Ok(())
}

/// The cosine of the angle between two vectors of length 1.
fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
