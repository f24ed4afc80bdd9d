//! `fail/side_effects/counters.rs`, by its help.

use graphable::prelude::*;

use std::sync::atomic::{AtomicUsize, Ordering};
static CALLS: AtomicUsize = AtomicUsize::new(0);
#[derive(Params)]
struct Counter {
    calls: State<u32>,
}
#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize, counter: &Counter) -> Result<Tensor<f32>> {
    #[eager]
    {
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
    let calls = ops::load(x.scope(), &counter.calls)?;
    ops::store(&counter.calls, &ops::add(&calls, &calls)?)?;
    ops::scale(x, n as f32)
}
