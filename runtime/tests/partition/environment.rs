//! What can be asked for from outside: events on standard error, a limit for graphs. In processes of their own, since
//! the environment is everybody's.

use std::{
    env,
    process::{Command, Output},
};

use graphable::{Error, Event, FallbackReason, Runtime, backend::cpu::CpuOptions, graphable, prelude::*};
use tracing::{
    Metadata, Subscriber,
    span::{Attributes, Id, Record},
};

const VARIABLE: &str = "GRAPHABLE_TEST_CHILD";

#[graphable]
fn sized(
    #[host]
    #[dims(N)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    ops::exp(&ops::neg(x)?)
}

fn runtime() -> Result<Runtime> {
    Runtime::new(crate::device::device(CpuOptions::default()))
}

/// Two sizes: each is warmed up, recorded and replayed.
fn program() -> Result<()> {
    let mut rt = runtime()?;
    let graph = SizedGraph::builder().limits(|l| l.max_shapes = Some(1)).build(&mut rt)?;
    for n in [3usize, 3, 3, 4, 4, 4] {
        let step = rt.step()?;
        step.read(&graph.call(&step, &vec![0.0; n])?)?;
    }
    Ok(())
}

/// Runs this test's program in a process with such variables.
fn child(set: &[(&str, &str)]) -> Output {
    Command::new(env::current_exe().unwrap())
        .env(VARIABLE, "1")
        .env_remove("GRAPHABLE_LOG")
        .envs(set.iter().copied())
        .args(["--exact", "environment::the_program", "--nocapture"])
        .output()
        .unwrap()
}

/// Takes everything, and says nothing.
struct Taking;

impl Subscriber for Taking {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &tracing::Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn the_program() {
    let done = match env::var_os(VARIABLE) {
        None => Ok(()),
        Some(with) if with == "subscriber" => tracing::subscriber::with_default(Taking, program),
        Some(_) => program(),
    };
    if let Err(error) = done {
        panic!("{error}");
    }
}

#[test]
fn what_a_subscriber_takes_is_not_printed_too() {
    let said = lines(&child(&[("GRAPHABLE_LOG", "all"), (VARIABLE, "subscriber")]));
    assert_eq!(said, ["a `tracing` subscriber takes events of the runtime; GRAPHABLE_LOG prints the others"]);
}

/// What the runtime has printed, without the places of the source.
fn lines(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.lines().filter_map(|line| line.strip_prefix("graphable: ")).map(str::to_owned).collect()
}

#[test]
fn events_are_printed_where_they_are_asked_for() {
    assert_eq!(lines(&child(&[])), Vec::<String>::new(), "not asked for");
    assert_eq!(lines(&child(&[("GRAPHABLE_LOG", "off")])), Vec::<String>::new());
    let recordings = lines(&child(&[("GRAPHABLE_LOG", "recordings")]));
    assert_eq!(recordings.len(), 2, "{recordings:?}");
    assert!(recordings[0].starts_with("warmed up `sized` #0 ("), "{recordings:?}");
    assert!(
        recordings[1].starts_with("recorded `sized` #0 (") && recordings[1].contains(" in "),
        "{recordings:?}"
    );
    let fallbacks = lines(&child(&[("GRAPHABLE_LOG", "fallbacks")]));
    assert_eq!(fallbacks.len(), 1, "each cause once: {fallbacks:?}");
    assert!(
        fallbacks[0].contains("runs without a graph") && fallbacks[0].contains("max_shapes"),
        "{fallbacks:?}"
    );
    assert_eq!(lines(&child(&[("GRAPHABLE_LOG", "info")])).len(), 3);
    let replays = lines(&child(&[("GRAPHABLE_LOG", "replays")]));
    assert!(replays.iter().all(|line| line.starts_with("replayed ")) && !replays.is_empty(), "{replays:?}");
}

#[test]
fn a_kind_that_there_is_not_is_said_once() {
    let said = lines(&child(&[("GRAPHABLE_LOG", "recording,fallbacks")]));
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].contains("unknown kind `recording` in GRAPHABLE_LOG") && said[0].contains("recordings"),
        "{said:?}"
    );
    assert!(said[1].contains("runs without a graph"), "{said:?}");
}

#[test]
fn captures_have_a_time() {
    let mut rt = runtime().unwrap();
    rt.keep_events(true);
    let graph = SizedGraph::builder().build(&mut rt).unwrap();
    for _ in 0..3 {
        let step = rt.step().unwrap();
        graph.call(&step, &[0.0; 3]).unwrap();
    }
    let times: Vec<_> = rt
        .take_events()
        .into_iter()
        .filter_map(|event| match event {
            Event::Recorded { capture, .. } => Some(capture),
            _ => None,
        })
        .collect();
    assert!(times.len() == 1 && !times[0].is_zero(), "{times:?}");
    assert_eq!(rt.stats().capture_time, times[0]);
}

#[test]
fn graphs_stop_at_their_limit_and_go_on_above_it() {
    if crate::device::has_gaps() {
        return;
    }
    let mut rt = runtime().unwrap();
    let graph = SizedGraph::builder().build(&mut rt).unwrap();
    let strict = SizedGraph::builder().deny_fallback(true).build(&mut rt).unwrap();
    let call = |rt: &mut Runtime, graph: &SizedGraph, n: usize| {
        (0..4).try_for_each(|_| {
            let step = rt.step()?;
            let y = graph.call(&step, &vec![0.0; n])?;
            assert_eq!(step.read(&y)?, vec![1.0; n]);
            Ok::<(), Error>(())
        })
    };
    call(&mut rt, &graph, 3).unwrap();
    assert_eq!((rt.stats().recordings, rt.stats().fallbacks), (1, 0));
    rt.limit_graph_memory(Some(1));
    call(&mut rt, &graph, 4).unwrap();
    let stats = rt.stats();
    assert_eq!((stats.recordings, stats.fallbacks), (1, 3), "warmed up, then eager: {stats:?}");
    let [(FallbackReason::OverGraphMemory { bytes, limit: 1 }, 3)] = stats.fallback_reasons[..] else {
        panic!("{stats:?}")
    };
    assert!(bytes > 1);
    // What is recorded goes on; what forbids a fallback says so.
    call(&mut rt, &graph, 3).unwrap();
    assert_eq!(rt.stats().fallbacks, 3);
    let error = call(&mut rt, &strict, 5).unwrap_err();
    assert!(matches!(&error, Error::FallbackForbidden { .. }), "{error}");
    assert!(error.to_string().contains("limit_graph_memory"), "{error}");
    rt.limit_graph_memory(Some(1 << 40));
    call(&mut rt, &graph, 4).unwrap();
    assert_eq!(rt.stats().recordings, 2);
    rt.limit_graph_memory(None);
    call(&mut rt, &strict, 5).unwrap();
    assert_eq!(rt.stats().recordings, 3);
}

#[test]
fn the_limit_can_be_set_from_outside() {
    let limited = lines(&child(&[("GRAPHABLE_GRAPH_MEMORY", "1K"), ("GRAPHABLE_LOG", "info")]));
    assert!(limited.iter().any(|line| line.contains("and may use 1024")), "{limited:?}");
    assert!(!limited.iter().any(|line| line.starts_with("recorded")), "{limited:?}");
    let refused = child(&[("GRAPHABLE_GRAPH_MEMORY", "much")]);
    assert!(!refused.status.success());
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(text.contains("GRAPHABLE_GRAPH_MEMORY") && text.contains("`much`"), "{text}");
}
