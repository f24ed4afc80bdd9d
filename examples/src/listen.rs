//! The program that finds speech: from samples to segments.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use graphable::Mode;
use serde::Serialize;

use crate::{
    Error, Result,
    audio::Recording,
    cli::{Listen, device, print, say},
    fetch::{Cache, SILERO},
    progress::{CaptureBar, SpeechBar},
    silero::{CHUNK, HearGraph, Listener, Segment, Segments},
};

/// What `--json` prints.
#[derive(Serialize)]
struct Answer {
    /// One for each chunk.
    probabilities: Vec<f32>,
    /// In seconds.
    segments: Vec<Segment>,
}

/// Listens to a recording as the options say.
///
/// # Errors
/// Everything that can go wrong with options, recording, model, device and output.
pub fn run(args: Listen) -> Result<()> {
    let loud = !args.quiet;
    // What needs no model is checked before one is fetched.
    let device = device(&args.device)?;
    let mut recording = open(&args)?;
    let path = match &args.model {
        Some(path) => path.clone(),
        None => Cache::of_user(args.quiet)?.get(&SILERO)?.join(SILERO.files[0].name),
    };
    let mode = args.mode.of(&device);
    let mut listener = Listener::load(&path, device, mode)?;
    if loud {
        say(format_args!("{}", HearGraph::PLAN));
    }
    let bar = CaptureBar::new(args.bars());
    listener.capture(|p| bar.show("hear", &p))?;
    drop(bar);

    let answer = listen(&mut listener, &mut recording, args.bars(), args.json)?;
    if args.json {
        // What is serialized are numbers in lists.
        let json = serde_json::to_string(&answer).unwrap_or_default();
        print(&format!("{json}\n"))?;
    }
    if loud {
        report(mode, &listener);
    }
    Ok(())
}

fn open(args: &Listen) -> Result<Recording<Box<dyn Read>>> {
    let (source, name): (Box<dyn Read>, &Path) = match &args.recording {
        Some(path) if path.as_os_str() != "-" => {
            let file = File::open(path).map_err(|e| Error::io(path, "open", &e))?;
            (Box::new(file), path)
        }
        _ => (Box::new(io::stdin()), Path::new("standard input")),
    };
    if args.raw { Ok(Recording::raw(source, name)) } else { Recording::wav(source, name) }
}

/// Reads chunk by chunk, and prints each segment when it has ended.
fn listen(
    listener: &mut Listener,
    recording: &mut Recording<Box<dyn Read>>,
    bars: bool,
    json: bool,
) -> Result<Answer> {
    let bar = SpeechBar::new(bars);
    let mut answer = Answer { probabilities: Vec::new(), segments: Vec::new() };
    let (mut segments, mut heard) = (Segments::default(), 0);
    let mut found = |segment: Segment| {
        answer.segments.push(segment);
        if json {
            Ok(())
        } else {
            bar.hidden(|| print(&format!("{:.2} – {:.2} s\n", segment.start, segment.end)))
        }
    };
    loop {
        let mut chunk = [0.0; CHUNK];
        let n = recording.read(&mut chunk)?;
        if n == 0 {
            break;
        }
        heard += n;
        let probability = listener.hear(&chunk)?;
        answer.probabilities.push(probability);
        bar.show(heard as f64 / 16_000.0, probability);
        segments.next(probability).map_or(Ok(()), &mut found)?;
        if n < CHUNK {
            break;
        }
    }
    segments.finish(heard).map_or(Ok(()), &mut found)?;
    Ok(answer)
}

fn report(mode: Mode, listener: &Listener) {
    let (stats, times) = (listener.runtime().stats(), listener.times());
    let (graphs, replays, recordings) = (stats.live_recordings, stats.replays, stats.recordings);
    say(format_args!(
        "\n{mode} on {}: {graphs} graphs, {recordings} recordings, {replays} replays",
        listener.runtime().device()
    ));
    if times.chunks > 0 {
        let each = |time: std::time::Duration| (time / times.chunks).as_secs_f64() * 1e6;
        say(format_args!(
            "{} chunks of 32 ms: {:.1} µs each, of which the host works {:.1} µs",
            times.chunks,
            each(times.whole),
            each(times.host)
        ));
    }
    for (reason, count) in &stats.fallback_reasons {
        say(format_args!("  {count} calls without a graph: {reason}"));
    }
}
