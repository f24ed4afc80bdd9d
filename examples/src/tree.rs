//! The tree program: records something small or a language model, and shows what the runtime holds then.

use std::path::Path;

use graphable::{
    Device, Param, Runtime,
    inspect::{GraphTree, PlanReport, Topology},
};
use serde::Serialize;

use crate::{
    Error, Result,
    branchy::{ApartGraph, BranchyGraph, ELEMENTS},
    checkpoint::{Blocks, Files, LoadProgress},
    cli::{Format, Program, Tree, device, print},
    fetch::{Cache, SMOLLM2},
    llama::{DecodeGraph, Language, Session},
    progress::{ByteBar, CaptureBar},
    sampling::SamplingOptions,
    timeline,
};

/// Calls of the branchy programs: both branches warm up, are recorded, and are replayed.
const CALLS: usize = 12;
/// What the language model is asked, and how many tokens it may answer with.
const PROMPT: &str = "Hello";
const TOKENS: usize = 4;

/// What is shown. Its fields are the keys of `--format json`.
#[derive(Debug, Serialize)]
struct Shown {
    plan: PlanReport,
    tree: GraphTree,
    #[serde(skip_serializing_if = "Option::is_none")]
    recording: Option<Topology>,
}

/// Runs a program as the options say, and prints its tree. `open` reads or maps the files of a model.
///
/// # Errors
/// Everything that can go wrong with options, model, device and output.
pub fn run(args: Tree, open: impl FnOnce(&Path) -> Result<Files>) -> Result<()> {
    if args.model.is_some() && !matches!(args.program, Program::Decode) {
        return Err(Error::Option {
            option: "--model".into(),
            reason: "only the program `decode` has a model".into(),
            help: "run `tree decode --model FILE`, or leave it out".into(),
        });
    }
    // What needs no model is checked before one is fetched.
    let device = device(&args.device)?;
    let work = || match args.program {
        Program::Branchy => branchy(&args, device),
        Program::Apart => apart(&args, device),
        Program::Decode => decode(&args, device, open),
    };
    let shown = match &args.timeline {
        Some(path) => timeline::record(path, work)?,
        None => work()?,
    };
    print(&written(&args, &shown))
}

fn written(args: &Tree, shown: &Shown) -> String {
    match (args.format, &shown.recording) {
        (Format::Text, None) => format!("{}\n{}", shown.plan, shown.tree),
        (Format::Text, Some(recording)) => recording.to_string(),
        (Format::Dot, None) => shown.tree.to_dot(),
        (Format::Dot, Some(recording)) => recording.to_dot(),
        (Format::Json, _) => match serde_json::to_string(shown) {
            Ok(json) => json + "\n",
            Err(_) => unreachable!("strings and numbers can always be written"),
        },
    }
}

fn shown(args: &Tree, rt: &Runtime, plan: PlanReport) -> Result<Shown> {
    let tree = rt.tree();
    let recording = match args.recording {
        None => None,
        Some(id) => Some(rt.topology(id).ok_or_else(|| no_recording(id, &tree))??),
    };
    Ok(Shown { plan, tree, recording })
}

fn no_recording(id: usize, tree: &GraphTree) -> Error {
    let ids = match (tree.recordings.first(), tree.recordings.last()) {
        (Some(first), Some(last)) => {
            format!("there are {} to {}, some of which may be gone", first.id, last.id)
        }
        _ => "nothing was recorded in this mode".to_owned(),
    };
    Error::Option {
        option: format!("--recording {id}"),
        reason: format!("there is no such recording; {ids}"),
        help: "run without `--recording` to see them all".into(),
    }
}

/// Inputs that go one way and the other.
fn inputs() -> impl Iterator<Item = [f32; ELEMENTS]> {
    (0..CALLS).map(|i| [(i % 2) as f32; ELEMENTS])
}

fn branchy(args: &Tree, device: Device) -> Result<Shown> {
    let mode = args.mode.of(&device).mixed();
    let mut rt = Runtime::new(device)?;
    rt.keep_topology(true);
    let one = Param::new(&rt, &[ELEMENTS], &[1.0; ELEMENTS])?;
    let graph = BranchyGraph::builder().mode(mode).build(&mut rt)?;
    for x in inputs() {
        let step = rt.step()?;
        graph.call(&step, &x, &one)?;
    }
    shown(args, &rt, BranchyGraph::PLAN.report())
}

fn apart(args: &Tree, device: Device) -> Result<Shown> {
    let mode = args.mode.of(&device).mixed();
    let mut rt = Runtime::new(device)?;
    rt.keep_topology(true);
    let one = Param::new(&rt, &[ELEMENTS], &[1.0; ELEMENTS])?;
    let graph = ApartGraph::builder().mode(mode).build(&mut rt)?;
    for x in inputs() {
        let step = rt.step()?;
        graph.call(&step, &x, &one)?;
    }
    shown(args, &rt, ApartGraph::PLAN.report())
}

fn decode(args: &Tree, device: Device, open: impl FnOnce(&Path) -> Result<Files>) -> Result<Shown> {
    let path = match &args.model {
        Some(path) => path.clone(),
        None => Cache::of_user(args.quiet)?.get(&SMOLLM2)?.join(SMOLLM2.files[0].name),
    };
    let files = open(&path)?;
    let language = Language::of(&files)?;
    let prompt = language.prompt(PROMPT)?;
    let (capacity, greedy) = (prompt.len() + TOKENS, SamplingOptions::default());
    let mode = args.mode.of(&device);
    let bar = ByteBar::new("loading", args.bars());
    let mut show = |p: LoadProgress| bar.show(p.done, p.total);
    let mut session = Session::<f32>::load_with(
        &files,
        language,
        device,
        mode,
        capacity,
        greedy,
        Blocks::Never,
        &mut show,
    )?;
    // The weights are on the device now.
    drop((files, bar));
    session.runtime().keep_topology(true);
    let bar = CaptureBar::new(args.bars());
    session.capture(|function, p| bar.show(function, &p))?;
    drop(bar);
    session.answer(&prompt, TOKENS, |_| Ok(()))?;
    shown(args, session.runtime(), DecodeGraph::<f32>::PLAN.report())
}
