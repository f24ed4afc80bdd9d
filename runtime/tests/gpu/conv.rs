//! Convolutions by cuDNN in recordings.

use std::sync::{Arc, Mutex};

use graphable::{
    Float, Passes, bf16, f16, graphable,
    passes::{Pass, PassFailure, Program},
    prelude::*,
};

use crate::support::{runtime, skipped};

#[graphable]
fn block<T: Float>(x: &Tensor<T>, wide: &Param<T>, bias: &Param<T>, grouped: &Param<T>) -> Result<Tensor<T>> {
    let y = ops::conv2d_bias(x, wide, bias, ops::ConvConfig::new().padding(1))?;
    ops::conv2d(&y, grouped, ops::ConvConfig::new().stride(2).groups(2))
}

fn values<T: Float>(count: usize) -> Vec<T> {
    (0..count).map(|i| T::from_f64(((i * 37 % 101) as f64 - 50.0) / 64.0)).collect()
}

fn replays_are_as_eager<T: Float>() {
    let mut rt = runtime();
    rt.keep_topology(true);
    let param = |shape: &[usize]| Param::new(&rt, shape, &values::<T>(shape.iter().product())).unwrap();
    let (wide, bias, grouped) = (param(&[32, 16, 3, 3]), param(&[32]), param(&[32, 16, 3, 3]));
    let graph = BlockGraph::<T>::builder().build(&mut rt).unwrap();
    let mut want = Vec::new();
    for round in 0..100 {
        let step = rt.step().unwrap();
        let x = step.tensor(&[2, 16, 12, 10], &values::<T>(2 * 16 * 12 * 10)).unwrap();
        let y = if round == 0 {
            block(&x, &wide, &bias, &grouped).unwrap()
        } else {
            graph.call(&step, &x, &wide, &bias, &grouped).unwrap()
        };
        let y = step.read(&y).unwrap();
        if round == 0 {
            assert!(
                y.iter().all(|y| !y.to_f64().is_nan()) && y.iter().any(|y| *y != T::from_f64(0.0)),
                "numbers, and not all 0"
            );
            want = y;
        } else {
            assert_eq!(y, want, "{} round {round}", T::DTYPE);
        }
    }
    assert_eq!(rt.stats().fallback_reasons, []);
    assert!(rt.stats().replays > 90, "{:?}", rt.stats());
    let node = rt.tree().recordings[0].id;
    let topology = rt.topology(node).unwrap().unwrap();
    let ours = topology.nodes.iter().filter(|node| node.name.contains("unfold")).count();
    let without = std::env::var_os("GRAPHABLE_TEST_WITHOUT_CUDNN").is_some();
    assert!(
        (ours > 0) == without,
        "install cuDNN 9, or set GRAPHABLE_TEST_WITHOUT_CUDNN=1 where there is none: {topology}"
    );
}

#[test]
fn convolutions_by_the_library_replay_as_they_run() {
    if skipped("convolutions_by_the_library_replay_as_they_run") {
        return;
    }
    replays_are_as_eager::<f32>();
    replays_are_as_eager::<f16>();
    replays_are_as_eager::<bf16>();
}

/// A convolution of windows of one element, whose input has its channels last in memory or in the second place.
#[graphable]
fn of_one<T: Float>(x: &Tensor<T>, w: &Param<T>, #[key] is_last: bool) -> Result<Tensor<T>> {
    let x = if is_last { ops::permute(x, &[0, 3, 1, 2])? } else { ops::reshape(x, &[2, 16, 6, 5])? };
    // A window of one element has no two that a dilation could part.
    ops::conv2d(&x, w, ops::ConvConfig::new().dilation(3))
}

/// Keeps the names of the operations of a recording.
#[derive(Clone, Debug, Default)]
struct Names(Arc<Mutex<Vec<&'static str>>>);

impl Pass for Names {
    fn name(&self) -> &'static str {
        "names"
    }

    fn run(&self, program: &Program<'_>) -> Result<(), PassFailure> {
        self.0.lock().unwrap().extend(program.launches().map(|launch| launch.operation()));
        Ok(())
    }
}

/// A convolution with a bias of an input that may begin anywhere.
#[graphable]
fn biased<T: Float>(x: &Tensor<T>, w: &Param<T>, bias: &Param<T>) -> Result<Tensor<T>> {
    ops::conv2d_bias(x, w, bias, ops::ConvConfig::new().padding(1))
}

/// The operations of recordings of [`biased`] for parts of a tensor with its channels in the second place, of which every second one
/// begins at an odd place. Values are those of the whole.
fn operations_of_parts<T: Float>() -> Vec<&'static str> {
    const IMAGE: usize = 3 * 5 * 5;
    let mut rt = runtime();
    let names = Names::default();
    let passes = Passes::default().with_at(0, names.clone());
    let graph = BiasedGraph::<T>::builder().passes(passes).build(&mut rt).unwrap();
    let (w, bias) = (
        Param::new(&rt, &[32, 3, 3, 3], &values::<T>(864)).unwrap(),
        Param::new(&rt, &[32], &values::<T>(32)).unwrap(),
    );
    for _ in 0..4 {
        let step = rt.step().unwrap();
        let x = step.tensor(&[4, 3, 5, 5], &values::<T>(4 * IMAGE)).unwrap();
        for image in 0..4 {
            let part = ops::narrow(&x, 0, image, 1).unwrap();
            let alone =
                step.tensor(&[1, 3, 5, 5], &values::<T>(4 * IMAGE)[image * IMAGE..][..IMAGE]).unwrap();
            let want = step.read(&biased(&alone, &w, &bias).unwrap()).unwrap();
            let got = step.read(&graph.call(&step, &part, &w, &bias).unwrap()).unwrap();
            assert_eq!(got, want, "{} image {image}", T::DTYPE);
        }
    }
    assert_eq!(rt.stats().fallback_reasons, []);
    assert!(rt.stats().replays >= 8, "{:?}", rt.stats());
    let names = names.0.lock().unwrap();
    assert!(!names.is_empty());
    names.clone()
}

/// What a body records does not depend on where its operands begin. In f32, channels in the second place are not copied.
#[test]
fn operands_that_begin_anywhere_are_one_recording() {
    if skipped("operands_that_begin_anywhere_are_one_recording") {
        return;
    }
    let has_library = std::env::var_os("GRAPHABLE_TEST_WITHOUT_CUDNN").is_none();
    let copies = |names: &[&str]| names.iter().filter(|name| **name == "copy").count();
    let (single, half) = (operations_of_parts::<f32>(), operations_of_parts::<f16>());
    if has_library {
        assert!(single.contains(&"convolution") && copies(&single) == 0, "{single:?}");
        assert!(half.contains(&"convolution") && copies(&half) > 0, "{half:?}");
    }
}

/// Returns whether the library computes [`of_one`], whose values are compared with their sums, which are exact.
fn is_by_library<T: Float>(is_last: bool) -> bool {
    let mut rt = runtime();
    let names = Names::default();
    let passes = Passes::default().with_at(0, names.clone());
    let graph = OfOneGraph::<T>::builder().passes(passes).build(&mut rt).unwrap();
    let w = Param::new(&rt, &[32, 16, 1, 1], &values::<T>(512)).unwrap();
    let (of_x, of_w) = (values::<T>(960), values::<T>(512));
    let want = (0..2 * 32 * 30).map(|at| {
        let (image, o, place) = (at / 960, at / 30 % 32, at % 30);
        let element = |c: usize| if is_last { place * 16 + c } else { c * 30 + place };
        let product = |c: usize| of_x[image * 480 + element(c)].to_f64() * of_w[o * 16 + c].to_f64();
        T::from_f64((0..16).map(product).sum())
    });
    let want: Vec<T> = want.collect();
    for _ in 0..3 {
        let step = rt.step().unwrap();
        let x = step.tensor(&[2, 6, 5, 16], &of_x).unwrap();
        let y = graph.call(&step, &x, &w, is_last).unwrap();
        assert_eq!(step.read(&y).unwrap(), want, "{}, channels last: {is_last}", T::DTYPE);
    }
    let names = names.0.lock().unwrap();
    assert!(!names.is_empty());
    names.contains(&"convolution")
}

#[test]
fn windows_of_one_element_are_products_in_f32_and_with_channels_first() {
    if skipped("windows_of_one_element_are_products_in_f32_and_with_channels_first") {
        return;
    }
    let has_library = std::env::var_os("GRAPHABLE_TEST_WITHOUT_CUDNN").is_none();
    for is_last in [true, false] {
        assert!(!is_by_library::<f32>(is_last));
        let of_16_bits = (is_by_library::<f16>(is_last), is_by_library::<bf16>(is_last));
        assert_eq!(of_16_bits, (has_library && is_last, has_library && is_last));
    }
}

/// The library has a handle for each stream, which other streams use after its end.
#[test]
fn handles_of_the_library_outlive_streams() {
    if skipped("handles_of_the_library_outlive_streams") {
        return;
    }
    let mut want = None;
    for round in 0..400 {
        let mut rt = runtime();
        let param = |shape: &[usize]| Param::new(&rt, shape, &values::<f32>(shape.iter().product())).unwrap();
        let (wide, bias, grouped) = (param(&[32, 16, 3, 3]), param(&[32]), param(&[32, 16, 3, 3]));
        let graph = BlockGraph::<f32>::builder().build(&mut rt).unwrap();
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let x = step.tensor(&[1, 16, 6, 5], &values::<f32>(480)).unwrap();
            let y = graph.call(&step, &x, &wide, &bias, &grouped).unwrap();
            let y = step.read(&y).unwrap();
            assert_eq!(want.get_or_insert_with(|| y.clone()), &y, "round {round}");
        }
    }
}

/// Views that begin anywhere are convolved as their copies are.
#[test]
fn operands_of_any_alignment_are_convolved() {
    if skipped("operands_of_any_alignment_are_convolved") {
        return;
    }
    let mut rt = runtime();
    let step = rt.step().unwrap();
    let x = step.tensor(&[3, 1, 5, 5], &values::<bf16>(75)).unwrap();
    let w = step.tensor(&[8, 1, 3, 3], &values::<bf16>(72)).unwrap();
    let whole = step.read(&ops::conv2d(&x, &w, ops::ConvConfig::new()).unwrap()).unwrap();
    let begins = ops::narrow(&x, 0, 1, 2).unwrap();
    let part = step.read(&ops::conv2d(&begins, &w, ops::ConvConfig::new()).unwrap()).unwrap();
    assert_eq!(part, whole[8 * 9..]);
    let line = step.tensor(&[1, 1, 65], &values::<bf16>(65)).unwrap();
    let taps = step.tensor(&[4, 1, 9], &values::<bf16>(36)).unwrap();
    let config = ops::ConvConfig::new();
    let all = step.read(&ops::conv1d(&line, &taps, config).unwrap()).unwrap();
    let rest = ops::narrow(&line, 2, 1, 64).unwrap();
    let rest = step.read(&ops::conv1d(&rest, &taps, config).unwrap()).unwrap();
    for channel in 0..4 {
        assert_eq!(rest[channel * 56..][..56], all[channel * 57 + 1..][..56], "channel {channel}");
    }
}
