//! The chat program: from the command line to the answer.

use std::time::Instant;

use crate::{
    Result,
    cli::{Generate, device, print, say},
    fetch::{Cache, SMOLLM2},
    gguf::Gguf,
    llama::{DecodeGraph, DecodeLoopGraph, Language, Session},
    progress::CaptureBar,
    report::FinishReason,
};

/// Answers one prompt as the options say.
///
/// # Errors
/// Everything that can go wrong with options, model, device and output.
pub fn run(args: Generate) -> Result<()> {
    let common = &args.common;
    let loud = !common.quiet;
    // What needs no model is checked before one is fetched.
    let sampling = args.sampling();
    sampling.check()?;
    let device = device(&common.device)?;
    let path = match &args.model {
        Some(path) => path.clone(),
        None => Cache::of_user(common.quiet)?.get(&SMOLLM2)?.join(SMOLLM2.files[0].name),
    };

    let start = Instant::now();
    let file = Gguf::open(&path)?;
    let language = Language::from_gguf(&file)?;
    let prompt = language.prompt(&args.prompt)?;
    let capacity = prompt.len().saturating_add(args.max_new_tokens);
    let mut session = Session::load(&file, language, device, common.mode.into(), capacity, sampling)?;
    if let Some(tokens) = args.device_loop {
        session.use_device_loop(tokens)?;
    }
    // The weights are on the device now.
    drop(file);
    let load = start.elapsed();

    if loud {
        match args.device_loop {
            Some(_) => say(format_args!("{}", DecodeLoopGraph::PLAN)),
            None => say(format_args!("{}", DecodeGraph::PLAN)),
        }
    }
    let start = Instant::now();
    let bar = CaptureBar::new(loud);
    session.capture(|function, p| bar.show(function, &p))?;
    drop(bar);
    let capture = start.elapsed();

    let answer = session
        .answer(&prompt, args.max_new_tokens, |text| if common.json { Ok(()) } else { print(text) })?;
    let report = session.report(answer, load, capture);
    print(&if common.json { report.to_json() } else { "\n".into() })?;
    if loud {
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
    Ok(())
}
