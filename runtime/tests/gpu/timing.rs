//! Time on the device.

use std::time::{Duration, Instant};

use graphable::prelude::*;

use crate::support::{runtime, skipped};

/// What the device says of its work is less than what the host waits for it, and not nothing.
#[test]
fn events_tell_the_time_of_what_is_between_them() {
    if skipped("events_tell_the_time_of_what_is_between_them") {
        return;
    }
    let mut rt = runtime();
    let w = Param::<f32>::zeros(&rt, &[2048, 2048]).unwrap();
    let step = rt.step().unwrap();
    let x = ops::zeros::<f32>(step.scope(), &[2048, 2048]).unwrap();
    // Measured, compiled.
    drop(ops::matmul(&x, &w).unwrap());
    step.synchronize().unwrap();
    let begun = Instant::now();
    let begin = step.record_event().unwrap();
    for _ in 0..100 {
        drop(ops::matmul(&x, &w).unwrap());
    }
    let end = step.record_event().unwrap();
    let device = end.elapsed_since(&begin).unwrap();
    let host = begun.elapsed();
    // A hundred products of 17 GFLOP: no device does one in two microseconds.
    assert!(
        device > Duration::from_micros(200) && device <= host + Duration::from_micros(5),
        "{device:?} of {host:?}"
    );
    assert!(begin.is_done().unwrap() && begin.elapsed_since(&end).is_err());
}
