//! Sizes of padded dimensions: what a body may do with them gives what it gives without buckets, and anything else is
//! the same error in every mode and for every size.

mod conv;
#[path = "../common/device.rs"]
mod device;
mod errors;
mod groups;
mod kernels;
mod numbers;
mod objects;
mod shapes;

use graphable::{Error, Mode, Result, Runtime, Schedule, Step, Tensor, backend::cpu::CpuOptions};

const MODES: [Mode; 3] = [Mode::None, Mode::Piecewise, Mode::Full];

fn runtime() -> Runtime {
    Runtime::new(device::device(CpuOptions::default())).unwrap()
}

/// What a call returned, in a form that compares.
#[derive(Clone, Debug, PartialEq)]
enum Outcome {
    Values(Vec<usize>, Vec<f32>),
    Padded,
    Mix,
    OutOfRange { index: u64, bound: u64 },
    Other(String),
}

fn outcome(step: &Step<'_>, result: Result<Tensor<'_, f32>>) -> Outcome {
    let read = |y: Tensor<'_, f32>| Ok(Outcome::Values(y.shape().numbers()?, step.read(&y)?));
    match result.and_then(read) {
        Ok(values) => values,
        Err(Error::PaddedSize { .. }) => Outcome::Padded,
        Err(Error::PaddedMix { .. }) => Outcome::Mix,
        Err(Error::IndexOutOfRange { index, bound, .. }) => Outcome::OutOfRange { index, bound },
        Err(other) => Outcome::Other(other.to_string()),
    }
}

/// Rows of two columns.
fn rows(n: usize) -> Vec<f32> {
    (0..2 * n).map(|i| i as f32 + 1.0).collect()
}

/// A schedule in which sizes fit exactly, are padded, and are above the largest bucket.
fn schedule() -> Schedule {
    Schedule::new([1, 4, 8])
}

const SIZES: [usize; 7] = [3, 4, 1, 5, 8, 2, 9];

/// Calls `$graph` on rows of several sizes: without buckets, and with them in every mode, in warm-up, recordings,
/// replays and audits.
macro_rules! each {
    ($graph:ident, |$plain:ident, $n:ident, $mode:ident, $got:ident| $check:expr) => {{
        let mut rt = $crate::runtime();
        let plain = $graph::builder().mode(graphable::Mode::None).build(&mut rt).unwrap();
        for $mode in $crate::MODES {
            let graph = $graph::builder()
                .bucket("B", $crate::schedule())
                .mode($mode)
                .audit_every(3)
                .build(&mut rt)
                .unwrap();
            for _ in 0..5 {
                for $n in $crate::SIZES {
                    let x = $crate::rows($n);
                    let step = rt.step().unwrap();
                    let $plain = $crate::outcome(&step, plain.call(&step, &x));
                    let $got = $crate::outcome(&step, graph.call(&step, &x));
                    $check
                }
            }
        }
    }};
}
pub(crate) use each;

/// As without buckets.
macro_rules! agrees {
    ($graph:ident) => {
        $crate::each!($graph, |plain, n, mode, got| assert_eq!(
            got,
            plain,
            "{}, {mode}, {n} rows",
            stringify!($graph)
        ))
    };
}
pub(crate) use agrees;

/// As without buckets, but for the rounding of products whose sums are not exact: on a GPU, the order of a product's sums
/// may depend on its number of rows.
macro_rules! agrees_but_for_products {
    ($graph:ident) => {
        $crate::each!($graph, |plain, n, mode, got| {
            let what =
                format!("{}, {mode}, {n} rows: {got:?}, without buckets {plain:?}", stringify!($graph));
            match (&got, &plain) {
                (Outcome::Values(shape, got), Outcome::Values(plain_shape, plain))
                    if $crate::device::gpu().is_some() =>
                {
                    assert_eq!(shape, plain_shape, "{what}");
                    let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * (1.0 + b.abs());
                    assert!(got.len() == plain.len() && got.iter().zip(plain).all(near), "{what}");
                }
                _ => assert_eq!(got, plain, "{what}"),
            }
        })
    };
}
pub(crate) use agrees_but_for_products;

/// An error, with buckets; without them it works.
macro_rules! refuses {
    ($graph:ident, $error:ident) => {
        $crate::each!($graph, |plain, n, mode, got| {
            assert!(matches!(plain, $crate::Outcome::Values(..)), "{plain:?}");
            assert_eq!(got, $crate::Outcome::$error, "{mode}, {n} rows");
        })
    };
}
pub(crate) use refuses;
