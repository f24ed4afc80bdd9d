//! Small transformers, each as one graph in every mode, with and without buckets: their results are those of PyTorch.

mod gemma;
mod mistral;
mod mixture;
mod t5;
mod vit;

use std::collections::HashMap;

use graphable::{Mode, Step, Tensor};

use crate::{
    device::gpu,
    fixtures::{Fixture, param, values},
    harness::assert_close,
};

fn fixture(case: &str) -> Fixture {
    Fixture::new(include_str!("../fixtures/transformers.txt"), case)
}

/// The modes, and whether sizes are padded to those of a bucket.
const WAYS: [(Mode, bool); 5] = [
    (Mode::None, false),
    (Mode::Piecewise, false),
    (Mode::Full, false),
    (Mode::Piecewise, true),
    (Mode::Full, true),
];

/// The bits of results, by case: the same in every mode, with padding and without. With more rows or keys, products and
/// attention may add in another order. On the CPU, buckets are of sizes for which they do not, but for models that are `apart`; on
/// a GPU, the library chooses by the size, so results are compared for one size alone.
#[derive(Default)]
struct Known {
    apart: bool,
    bits: HashMap<(usize, bool), Vec<u32>>,
}

impl Known {
    /// Compares result number `i` with PyTorch's, and with that of the other modes.
    fn check(&mut self, step: &Step<'_>, y: &Tensor<'_, f32>, i: usize, case: &Fixture, way: (Mode, bool)) {
        assert_close(step, y, case.array("y0"), 30.0);
        let bits: Vec<u32> = step.read(y).unwrap().iter().map(|v| v.to_bits()).collect();
        let key = (i, way.1 && (self.apart || gpu().is_some()));
        assert_eq!(*self.bits.entry(key).or_insert_with(|| bits.clone()), bits, "{way:?}");
    }
}

/// Calls a graph on the sequences of several cases in turn: in full mode, each bucket is one recording.
macro_rules! check {
    ($graph:ident, $symbol:literal to $bucket:literal $($apart:ident)?, $model:ident: |$rt:ident, $first:ident| $new:expr, $cases:expr, |$case:ident| $x:expr) => {{
        let cases: Vec<_> = $cases.into_iter().map($crate::transformers::fixture).collect();
        let apart = stringify!($($apart)?) == "apart";
        let mut known = $crate::transformers::Known { apart, ..Default::default() };
        for (mode, padded) in $crate::transformers::WAYS {
            let mut rt = graphable::Runtime::new($crate::harness::device()).unwrap();
            let $model = {
                let ($rt, $first) = (&rt, &cases[0]);
                $new
            };
            let builder = $graph::builder().mode(mode);
            let builder = match padded {
                true => builder.bucket($symbol, graphable::Schedule::new([$bucket])),
                false => builder,
            };
            let graph = builder.build(&mut rt).unwrap();
            for _ in 0..3 {
                for (i, $case) in cases.iter().enumerate() {
                    let step = rt.step().unwrap();
                    let y = graph.call(&step, &$x, &$model).unwrap();
                    known.check(&step, &y, i, $case, (mode, padded));
                }
            }
            if mode == graphable::Mode::Full {
                let shapes = if padded { 1 } else { cases.len() as u64 };
                assert_eq!((rt.stats().recordings, rt.stats().fallbacks), (shapes, 0), "padded: {padded}");
            }
        }
    }};
}
use check;
