//! Events on the device, and the time between them.

use std::time::Duration;

use graphable::{Device, Eager, Error, Mode, Runtime, backend::cpu::CpuOptions, graphable, prelude::*};

#[graphable]
fn around(
    #[host]
    #[dims(N)]
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let y = ops::exp(x)?;
    let z = #[eager(cx)]
    timed(cx, &y)?;
    ops::exp(&z)
}

fn timed<'s>(cx: &Eager<'s>, x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    cx.record_event()?.is_done()?;
    ops::neg(x)
}

#[test]
fn time_passes_between_two_events() {
    let mut rt = Runtime::new(crate::device::device(CpuOptions::default())).unwrap();
    let (begin, middle, end) = {
        let step = rt.step().unwrap();
        let begin = step.record_event().unwrap();
        let x = step.tensor(&[200, 200], &[0.5f32; 40_000]).unwrap();
        for _ in 0..20 {
            drop(ops::matmul(&x, &x).unwrap());
        }
        let middle = step.record_event().unwrap();
        (begin, middle, step.record_event().unwrap())
    };
    // They outlive their step, and go anywhere.
    std::thread::spawn(move || {
        let first = middle.elapsed_since(&begin).unwrap();
        assert!(first > Duration::ZERO);
        let all = end.elapsed_since(&begin).unwrap();
        assert!(all >= first && middle.is_done().unwrap());
        assert_eq!(begin.elapsed_since(&begin.clone()).unwrap(), Duration::ZERO);
        assert!(matches!(begin.elapsed_since(&middle), Err(Error::Argument { .. })));
    })
    .join()
    .unwrap();
    rt.step().unwrap();
}

#[test]
fn events_of_two_runtimes_have_no_time_between_them() {
    let mut all = [(); 2].map(|()| Runtime::new(crate::device::device(CpuOptions::default())).unwrap());
    let [a, b] = all.each_mut().map(|rt| rt.step().unwrap().record_event().unwrap());
    assert!(matches!(b.elapsed_since(&a), Err(Error::DifferentRuntimes { .. })));
}

#[test]
fn regions_record_events_and_captures_do_not() {
    for mode in [Mode::Piecewise, Mode::None, Mode::Full] {
        let mut rt = Runtime::new(crate::device::device(CpuOptions::default())).unwrap();
        let graph = AroundGraph::builder().mode(mode).build(&mut rt).unwrap();
        for _ in 0..4 {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[1.0, 2.0]).unwrap();
            assert_eq!(step.read(&y).unwrap().len(), 2);
        }
        assert_eq!(rt.stats().replays > 0, mode != Mode::None, "{:?}", rt.stats());
    }
    let mut backend = crate::device::backend(CpuOptions::default());
    backend.begin_capture(None).unwrap();
    let refused = backend.mark().unwrap_err();
    assert!(matches!(refused, Error::RefusedInCapture { call: "an event" }), "{refused}");
    backend.abort_capture();
    backend.mark().unwrap().wait().unwrap();
}

#[test]
fn an_event_of_a_runtime_that_is_gone_says_so_or_was_reached() {
    let event = {
        let mut rt = Runtime::new(Device::cpu()).unwrap();
        let step = rt.step().unwrap();
        step.record_event().unwrap()
    };
    // The stream carries out what it has before it ends.
    event.wait().unwrap();
    assert!(event.is_done().unwrap());
}
