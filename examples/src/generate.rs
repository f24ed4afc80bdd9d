//! The chat program: from the command line to the answer.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use graphable::{DType, Device, Float, Mode};
use half::{bf16, f16};

use crate::{
    Result,
    checkpoint::{Blocks, Checkpoint, Files, LoadProgress},
    cli::{Generate, device, print, say},
    fetch::{Cache, SMOLLM2},
    llama::{AdapterFile, DecodeGraph, DecodeLoopGraph, Language, Session},
    progress::{ByteBar, CaptureBar},
    report::{FinishReason, Report, Waited},
    sampling::SamplingOptions,
};

/// What is the same for every type of the weights.
struct Request<'a> {
    args: &'a Generate,
    files: Files,
    language: Language,
    prompt: Vec<u32>,
    device: Device,
    mode: Mode,
    sampling: SamplingOptions,
    blocks: Blocks,
    /// When the program began, as if nothing had been downloaded.
    start: Instant,
}

/// Answers one prompt as the options say. `open` reads or maps the files of the model.
///
/// # Errors
/// Everything that can go wrong with options, model, device and output.
pub fn run(args: Generate, open: impl FnOnce(&Path) -> Result<Files>) -> Result<()> {
    // What needs no model is checked before one is fetched.
    let sampling = args.sampling();
    sampling.check()?;
    if let Some(option) = sampling.unused().filter(|_| !args.common.quiet) {
        say(format_args!(
            "note: {option} has no effect: without --temperature, the likeliest token is taken; try --temperature 0.8"
        ));
    }
    if let Some(note) = args.dtype.unused(args.activations).filter(|_| !args.common.quiet) {
        say(format_args!("{note}"));
    }
    let start = Instant::now();
    let device = device(&args.common.device)?;
    let opening = start.elapsed();
    let mode = args.common.mode.of(&device);
    let path = match &args.model {
        Some(path) => path.clone(),
        None => Cache::of_user(args.common.quiet)?.get(&SMOLLM2)?.join(SMOLLM2.files[0].name),
    };

    // A download, if there was one, does not count: it happens once.
    let start = Instant::now() - opening;
    let files = open(&path)?;
    let language = Language::of(&files)?;
    let prompt = language.prompt(&args.prompt)?;
    let (dtype, blocks) = args.dtype.of(files.stored()?, args.activations, &device);
    let request = Request { args: &args, files, language, prompt, device, mode, sampling, blocks, start };
    let report = match dtype {
        DType::Bf16 => answer::<bf16>(request)?,
        DType::F16 => answer::<f16>(request)?,
        // The only other float type.
        _ => answer::<f32>(request)?,
    };
    print(&if args.common.json { report.to_json() } else { "\n".into() })?;
    if !args.common.quiet {
        summarise(&report);
    }
    Ok(())
}

/// Loads a model with weights `T`, records what the mode records, and prints the answer as it comes.
fn answer<T: Float>(request: Request<'_>) -> Result<Report> {
    let Request { args, files, language, prompt, device, mode, sampling, blocks, start } = request;
    let loud = !args.common.quiet;
    let bars = args.common.bars();
    let capacity = prompt.len().saturating_add(args.max_new_tokens);
    let bar = ByteBar::new("loading", bars);
    let mut show = |p: LoadProgress| bar.show(p.done, p.total);
    let mut session =
        Session::<T>::load_with(&files, language, device, mode, capacity, sampling, blocks, &mut show)?;
    if let Some(path) = &args.adapter {
        session.use_adapters(&[AdapterFile::open(path)?], 1)?;
    }
    if let Some(tokens) = args.device_loop {
        session.use_device_loop(tokens)?;
    }
    // Uploads are queued until the device has done them.
    session.runtime().synchronize()?;
    drop((files, bar));
    let load = start.elapsed();

    if loud {
        match args.device_loop {
            Some(_) => say(format_args!("{}", DecodeLoopGraph::<T>::PLAN)),
            None => say(format_args!("{}", DecodeGraph::<T>::PLAN)),
        }
    }
    let capture = capture(&mut session, mode, bars)?;
    let print_unless_json = |text: &str| if args.common.json { Ok(()) } else { print(text) };
    let waited = Waited { load, capture, all: start.elapsed() };
    let answer = session.answer(&prompt, args.max_new_tokens, print_unless_json)?;
    Ok(session.report(answer, waited))
}

/// Records everything ahead, and returns how long that took; in a mode without graphs there is nothing to record.
fn capture<T: Float>(session: &mut Session<T>, mode: Mode, bars: bool) -> Result<Duration> {
    if mode == Mode::None {
        return Ok(Duration::ZERO);
    }
    let start = Instant::now();
    let bar = CaptureBar::new(bars);
    session.capture(|function, p| bar.show(function, &p))?;
    Ok(start.elapsed())
}

fn summarise(report: &Report) {
    let tokens = report.tokens.len();
    match report.finish_reason {
        FinishReason::Stop => {}
        FinishReason::Length => say(format_args!(
            "[cut off after {tokens} tokens; `--max-new-tokens {}` allows more]",
            tokens.saturating_mul(2)
        )),
        FinishReason::Context => {
            say(format_args!("[cut off after {tokens} tokens: the model's context is full]"));
        }
    }
    say(format_args!("\n{report}"));
}
