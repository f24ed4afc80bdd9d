//! Logs that bodies append to.

use std::{
    sync::{Mutex, mpsc},
    time::Duration,
};

use graphable::{LogReader, PendingRead, PinnedLog, custom::CustomOp, prelude::*};

use crate::{
    device,
    support::{MODES, build, runtime, setups},
};

/// What a reader sees until a value is there.
fn followed(reader: &mut LogReader<u32>, until: &PendingRead<u32>) -> Vec<u32> {
    let mut seen = Vec::new();
    let followed = reader.follow(until, |value| {
        seen.push(value);
        Ok::<_, Error>(())
    });
    followed.unwrap();
    seen
}

/// Counts from `start` to `end`; appends each number, and those that three divides twice.
#[graphable]
fn counted(
    #[host] start: &Scalar<u32>,
    #[host] end: &Scalar<u32>,
    log: &PinnedLog<u32>,
) -> Result<Tensor<u32>> {
    let mut i = ops::add(&ops::zeros(start.scope(), ())?, start.tensor())?;
    #[device(limit = 1000)]
    while ops::lt(&i, end)? {
        ops::append(log, &i)?;
        #[device]
        if ops::eq(&ops::remainder(&i, 3u32)?, 0)? {
            ops::append(log, &i)?;
        }
        i = ops::add(&i, 1)?;
    }
    ops::append(log, &ops::full(start.scope(), (), 7000u32)?)?;
    Ok(i)
}

fn expected(start: u32, end: u32) -> Vec<u32> {
    let rounds = (start..end).flat_map(|i| std::iter::repeat_n(i, if i % 3 == 0 { 2 } else { 1 }));
    rounds.chain([7000]).collect()
}

/// Warm-up, recordings, replays, audits and runs without graphs append each element once, in order.
#[test]
fn each_call_appends_once_in_every_mode() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let log = PinnedLog::new(&rt, 2000).unwrap();
        let graph = build!(CountedGraph, setup, &mut rt);
        for (call, (start, end)) in
            [(0, 9), (5, 5), (3, 40), (7, 8), (0, 9), (100, 700), (1, 2)].into_iter().enumerate()
        {
            let step = rt.step().unwrap();
            let mut reader = log.reader(&step).unwrap();
            let last = graph.call(&step, start, end, &log).unwrap();
            let until = step.read_later(&last).unwrap();
            let seen = followed(&mut reader, &until);
            assert_eq!(until.wait().unwrap(), [end], "{setup:?}, call {call}");
            assert_eq!(seen, expected(start, end), "{setup:?}, call {call}");
            assert!(reader.take().unwrap().is_empty(), "{setup:?}, call {call}: and not again");
        }
        assert!(setup.mode == Mode::None || rt.stats().replays > 0);
    }
}

/// Several calls of one reading.
#[test]
fn a_reading_goes_on_from_call_to_call() {
    for mode in MODES {
        let mut rt = runtime();
        let log = PinnedLog::new(&rt, 100).unwrap();
        let graph = CountedGraph::builder().mode(mode).build(&mut rt).unwrap();
        let mut reader = {
            let step = rt.step().unwrap();
            log.reader(&step).unwrap()
        };
        let (mut seen, mut want) = (Vec::new(), Vec::new());
        for end in 0..8 {
            let step = rt.step().unwrap();
            let last = graph.call(&step, 0, end, &log).unwrap();
            assert_eq!(step.item(&last).unwrap(), end);
            want.extend(expected(0, end));
            if end % 3 != 1 {
                seen.extend(reader.take().unwrap());
                assert_eq!(seen, want, "{mode}, after {end}");
            }
        }
        seen.extend(reader.take().unwrap());
        assert_eq!(seen, want, "{mode}");
    }
}

/// What `gate` waits for.
static GATE: Mutex<Option<mpsc::Receiver<()>>> = Mutex::new(None);

/// Holds the device until the test lets it go on, if `n` is 4.
fn gate<'s>(n: &Tensor<'s, u32>) -> Result<Tensor<'s, u32>> {
    static OP: std::sync::LazyLock<CustomOp> = std::sync::LazyLock::new(|| {
        CustomOp::builder("gate")
            .cpu(|call| {
                let (n, out) = (call.input::<u32>(0)?, call.output::<u32>(0)?);
                if n[0] == 4
                    && let Some(gate) = &*GATE.lock().unwrap()
                {
                    gate.recv().unwrap();
                }
                out.copy_from_slice(n);
                Ok(())
            })
            .build()
    });
    OP.call(n.scope()).input(n).output(n.shape()).run()
}

#[graphable]
fn gated(#[host] end: &Scalar<u32>, log: &PinnedLog<u32>) -> Result<Tensor<u32>> {
    let mut i = ops::zeros(end.scope(), ())?;
    #[device(limit = 100)]
    while ops::lt(&i, end)? {
        let passed = gate(&i)?;
        ops::append(log, &passed)?;
        i = ops::add(&passed, 1)?;
    }
    Ok(i)
}

/// The loop is held in its fifth round until the host has seen what was appended by then.
#[test]
fn the_host_sees_elements_while_the_loop_runs() {
    if device::skipped_on_gpus("the_host_sees_elements_while_the_loop_runs", "it holds the CPU's stream") {
        return;
    }
    let mut rt = runtime();
    let log = PinnedLog::new(&rt, 100).unwrap();
    let graph = GatedGraph::builder().mode(Mode::Full).deny_fallback(true).build(&mut rt).unwrap();
    for _ in 0..4 {
        let step = rt.step().unwrap();
        let last = graph.call(&step, 9, &log).unwrap();
        assert_eq!(step.item(&last).unwrap(), 9);
    }
    let replays = rt.stats().replays;
    let (go_on, gate) = mpsc::channel();
    *GATE.lock().unwrap() = Some(gate);
    let step = rt.step().unwrap();
    let mut reader = log.reader(&step).unwrap();
    let last = graph.call(&step, 9, &log).unwrap();
    let until = step.read_later(&last).unwrap();
    let mut seen = Vec::new();
    while seen.len() < 4 {
        seen.extend(reader.take().unwrap());
        std::thread::sleep(Duration::from_micros(100));
    }
    assert_eq!(seen, [0, 1, 2, 3]);
    assert!(!until.is_ready() && reader.take().unwrap().is_empty(), "it is held");
    go_on.send(()).unwrap();
    reader
        .follow(&until, |value| {
            seen.push(value);
            Ok::<_, Error>(())
        })
        .unwrap();
    assert_eq!((until.wait().unwrap(), seen), (vec![9], (0..9).collect()));
    assert_eq!(step.stats().replays, replays + 1, "one launch");
}

/// `capture_all` leaves nothing in later readings, and ends those before.
#[test]
fn capturing_ahead_appends_nothing() {
    let mut rt = runtime();
    let log = PinnedLog::new(&rt, 100).unwrap();
    let graph = CountedGraph::builder().mode(Mode::Full).build(&mut rt).unwrap();
    let mut before = {
        let step = rt.step().unwrap();
        let reader = log.reader(&step).unwrap();
        graph.call(&step, 0, 3, &log).map(drop).unwrap();
        step.synchronize().unwrap();
        reader
    };
    assert_eq!(before.take().unwrap(), expected(0, 3));
    graph.capture_all(&mut rt, &log).unwrap();
    let refused = before.take().unwrap_err().to_string();
    assert!(refused.contains("capture_all"), "{refused}");
    let captured = rt.stats().recordings;
    let step = rt.step().unwrap();
    let mut reader = log.reader(&step).unwrap();
    let last = graph.call(&step, 1, 5, &log).unwrap();
    assert_eq!(step.item(&last).unwrap(), 5);
    assert_eq!(reader.take().unwrap(), expected(1, 5));
    assert_eq!(step.stats().recordings, captured);
}

#[graphable]
fn rows(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
    log: &PinnedLog<f32>,
) -> Result<Tensor<f32>> {
    let y = ops::scale(x, 2.0)?;
    ops::append(log, &y)?;
    Ok(y)
}

#[graphable]
fn columns(
    #[host]
    #[dims(2, B)]
    x: &Tensor<f32>,
    log: &PinnedLog<f32>,
) -> Result<Tensor<f32>> {
    ops::append(log, x)?;
    ops::neg(x)
}

#[test]
fn padding_is_not_appended() {
    for mode in MODES {
        let mut rt = runtime();
        let log = PinnedLog::new(&rt, 100).unwrap();
        let builder = RowsGraph::builder().mode(mode).bucket("B", Schedule::new([4, 8]));
        let graph = builder.build(&mut rt).unwrap();
        for n in [3usize, 4, 1, 7, 8, 3, 2, 5] {
            let x: Vec<f32> = (0..2 * n).map(|i| i as f32).collect();
            let step = rt.step().unwrap();
            let mut reader = log.reader(&step).unwrap();
            let y = graph.call(&step, &x, &log).unwrap();
            let y = step.read(&y).unwrap();
            assert_eq!(y.len(), 2 * n);
            assert_eq!(reader.take().unwrap(), y, "{mode}, {n} rows");
        }
        let columns =
            ColumnsGraph::builder().mode(mode).bucket("B", Schedule::new([4])).build(&mut rt).unwrap();
        let step = rt.step().unwrap();
        let refused = columns.call(&step, &[1.0; 6], &log);
        assert!(matches!(refused, Err(Error::PaddedMix { op: "append", .. })), "{mode}: {refused:?}");
    }
}

#[graphable]
fn branched(#[host] n: &Scalar<u32>, log: &PinnedLog<u32>) -> Result<(Tensor<u32>, Tensor<u32>)> {
    let append = |by: u32| {
        let x = ops::add(n.tensor(), by)?;
        ops::append(log, &x)?;
        Ok::<_, Error>(x)
    };
    join(n.scope(), || append(1), || append(2))
}

/// The order would decide who comes first.
#[test]
fn branches_cannot_share_a_log() {
    for mode in MODES {
        let mut rt = runtime();
        let log = PinnedLog::new(&rt, 100).unwrap();
        let graph = BranchedGraph::builder().mode(mode).build(&mut rt).unwrap();
        let step = rt.step().unwrap();
        let refused = graph.call(&step, 1, &log).map(drop);
        assert!(matches!(refused, Err(Error::BranchesShare { .. })), "{mode}: {refused:?}");
    }
}

/// A log may be dropped at any time, also while the calls that append to it are under way; its reader keeps what it reads.
#[test]
fn logs_are_dropped_while_calls_are_under_way() {
    let mut rt = runtime();
    let graph = CountedGraph::builder().mode(Mode::Full).build(&mut rt).unwrap();
    for round in 0..6 {
        let log = PinnedLog::new(&rt, 1000).unwrap();
        let mut last = None;
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let reader = log.reader(&step).unwrap();
            let count = graph.call(&step, 0, 200, &log).unwrap();
            last = Some((reader, step.read_later(&count).unwrap()));
        }
        drop(log);
        let Some((mut reader, until)) = last else { continue };
        if round % 2 == 0 {
            let seen = followed(&mut reader, &until);
            assert_eq!(seen, expected(0, 200), "round {round}");
        }
    }
    rt.synchronize().unwrap();
}

/// Appends in two launches, one of them of a strided view; gives what a reader sees.
macro_rules! appended {
    ($rt:expr, $values:expr) => {{
        let values = $values;
        let log = PinnedLog::new(&$rt, 12).unwrap();
        let step = $rt.step().unwrap();
        let mut reader = log.reader(&step).unwrap();
        let x = step.tensor([2, 3], &values).unwrap();
        ops::append(&log, &x).unwrap();
        ops::append(&log, &ops::transpose(&x, 0, 1).unwrap()).unwrap();
        step.synchronize().unwrap();
        let [a, b, c, d, e, f] = values;
        assert_eq!(reader.take().unwrap(), [a, b, c, d, e, f, a, d, b, e, c, f]);
        assert!(reader.take().unwrap().is_empty());
    }};
}

#[test]
fn elements_of_every_size_arrive_row_major() {
    let mut rt = runtime();
    appended!(rt, [1.5f32, -2.0, f32::MAX, 0.0, -3.5, 1e-40]);
    appended!(rt, [1u32, u32::MAX, 0, 3, 4, 1 << 31]);
    appended!(rt, [1i32, -1, i32::MIN, 3, 4, i32::MAX]);
    appended!(rt, [1u8, 255, 0, 3, 4, 128]);
    appended!(rt, [true, false, false, true, true, false]);
    appended!(rt, [1.5, -2.0, 3.0, 0.25, -0.5, 1e30].map(bf16::from_f32));
}

fn append(step: &Eager<'_>, log: &PinnedLog<u32>, values: &[u32]) {
    ops::append(log, &step.tensor([values.len()], values).unwrap()).unwrap();
}

#[test]
fn what_finds_no_room_is_reported_after_the_rest() {
    let mut rt = runtime();
    let log = PinnedLog::new(&rt, 3).unwrap();
    assert_eq!(log.capacity(), 3);
    let step = rt.step().unwrap();
    let mut reader = log.reader(&step).unwrap();
    append(&step, &log, &[1, 2]);
    append(&step, &log, &[3, 4]);
    append(&step, &log, &[5]);
    append(&step, &log, &[]);
    step.synchronize().unwrap();
    assert_eq!(reader.take().unwrap(), [1, 2, 3]);
    for _ in 0..2 {
        assert!(matches!(reader.take(), Err(Error::LogFull { capacity: 3, appended: 5 })));
    }
    // `follow` reports it as well.
    let mut reader = log.reader(&step).unwrap();
    let x = step.tensor([4], &[6u32, 7, 8, 9]).unwrap();
    ops::append(&log, &x).unwrap();
    let (mut seen, until) = (Vec::new(), step.read_later(&x).unwrap());
    let followed = reader.follow(&until, |value| {
        seen.push(value);
        Ok(())
    });
    assert!(matches!(followed, Err(Error::LogFull { capacity: 3, appended: 4 })), "{followed:?}");
    assert_eq!((seen, until.wait().unwrap()), (vec![6, 7, 8], vec![6, 7, 8, 9]));
}

#[test]
fn a_new_reading_ends_those_before() {
    let mut rt = runtime();
    let log = PinnedLog::new(&rt, 4).unwrap();
    let step = rt.step().unwrap();
    append(&step, &log, &[99]);
    let mut first = log.reader(&step).unwrap();
    append(&step, &log, &[1, 2]);
    step.synchronize().unwrap();
    assert_eq!(first.take().unwrap(), [1, 2], "not what was appended before");
    let mut second = log.clone().reader(&step).unwrap();
    append(&step, &log, &[3]);
    let refused = first.take().unwrap_err().to_string();
    assert!(refused.contains("another reading"), "{refused}");
    step.synchronize().unwrap();
    assert_eq!(second.take().unwrap(), [3]);
    // A reader outlives the log and the runtime.
    append(&step, &log, &[4]);
    step.synchronize().unwrap();
    drop((log, step));
    drop(rt);
    let taken = std::thread::spawn(move || second.take().unwrap()).join().unwrap();
    assert_eq!(taken, [4]);
}

#[test]
fn misuse_is_refused() {
    let (mut rt, mut other) = (runtime(), runtime());
    let log = PinnedLog::<u32>::new(&rt, 4).unwrap();
    assert!(matches!(PinnedLog::<u8>::new(&rt, u32::MAX as usize), Err(Error::TooLarge { .. })));
    let foreign = other.step().unwrap();
    let x = foreign.tensor([1], &[1u32]).unwrap();
    assert!(matches!(ops::append(&log, &x), Err(Error::DifferentRuntimes { op: "append" })));
    assert!(matches!(log.reader(&foreign), Err(Error::DifferentRuntimes { .. })));
    let step = rt.step().unwrap();
    let mut reader = log.reader(&step).unwrap();
    append(&step, &log, &[1]);
    step.synchronize().unwrap();
    assert_eq!(reader.take().unwrap(), [1], "nothing of what was refused");
}
