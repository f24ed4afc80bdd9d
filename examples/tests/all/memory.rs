//! What the decode function needs of the pool, with memory given back at its last use and without.

use graphable::{Device, Mode, Runtime};
use graphable_examples::{
    gguf::Gguf,
    llama::{Language, Session},
    sampling::SamplingOptions,
};

use crate::tiny;

/// Pool bytes of the decode function's recordings: those it needs, and their sum; then those of warm-up.
fn decode(file: &Gguf, mode: Mode, early: bool) -> [u64; 3] {
    let language = Language::of(file).unwrap();
    let mut session =
        Session::<f32>::load(file, language, Device::cpu(), mode, 64, SamplingOptions::default()).unwrap();
    let rt: &Runtime = session.runtime();
    rt.free_at_last_use(early);
    session.capture(|_, _| {}).unwrap();
    let memory = session.runtime().memory();
    let decode = memory.functions.iter().find(|f| f.function == "decode").unwrap();
    [decode.pool_bytes, decode.pool_sum_bytes, memory.pool_recorded_bytes]
}

#[test]
fn freeing_at_the_last_use_needs_less() {
    let file = Gguf::from_bytes(tiny::llama(1).build()).unwrap();
    for mode in [Mode::Piecewise, Mode::Full] {
        let (early, late) = (decode(&file, mode, true), decode(&file, mode, false));
        assert!(early[1] < late[1], "{mode}: {early:?} with, {late:?} without");
    }
}
