//! Adapters in slots, against the weights that one gets by adding `scale · B A`.

use graphable::{
    BlockFormat, DType, Error, Float, Mode, Param, Params, Result, Runtime, Schedule, Tensor, Weight, bf16,
    f16, graphable,
    load::{HostTensor, TensorMap, TensorSource},
    lora::{self, Lora, NO_ADAPTER, Peft, Room},
    ops,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    harness::{device, for_types},
    quantized::blocks,
};

const OUT: usize = 5;
const IN: usize = 32;
const ROOM: Room = Room { slots: 3, rank: 4 };

#[derive(Params)]
struct Layer<T: Float> {
    weight: Weight<T>,
    lora: Lora<T>,
}

#[graphable]
fn adapted<T: Float>(x: &Tensor<T>, slots: &Tensor<u32>, layer: &Layer<T>) -> Result<Tensor<T>> {
    let routes = lora::route(slots, layer.lora.room())?;
    let y = ops::linear(x, &layer.weight)?;
    // Routes cross a boundary.
    let y = #[eager(support = Always)]
    layer.lora.add(&y, x, &routes)?;
    ops::scale(&y, 1.0)
}

#[graphable]
fn padded<T: Float>(
    #[host]
    #[dims(T, 32)]
    x: &Tensor<f32>,
    #[host]
    #[dims(T)]
    slots: &Tensor<u32>,
    layer: &Layer<T>,
) -> Result<Tensor<T>> {
    let x = ops::cast::<_, T>(x)?;
    let routes = lora::route(slots, layer.lora.room())?;
    let y = ops::linear(&x, &layer.weight)?;
    let y = #[eager(support = Always)]
    layer.lora.add(&y, &x, &routes)?;
    ops::scale(&y, 1.0)
}

/// An adapter on the host; without one, both matrices are empty.
#[derive(Clone, Default)]
struct Adapter {
    rank: usize,
    a: Vec<f64>,
    b: Vec<f64>,
    scale: f64,
}

impl Adapter {
    fn random(rng: &mut StdRng) -> Self {
        let rank = rng.random_range(1..=ROOM.rank);
        let mut numbers = |n: usize| (0..n).map(|_| rng.random_range(-1.0..1.0)).collect::<Vec<f64>>();
        let (a, b) = (numbers(rank * IN), numbers(OUT * rank));
        Self { rank, a, b, scale: [0.5, 1.0, 3.0][rng.random_range(0..3)] }
    }

    /// What it adds in column `out` for a row, and the sum of the absolute values.
    fn added<T: Float>(&self, x: &[f64], out: usize) -> (f64, f64) {
        let round = |v: f64| T::from_f64(v).to_f64();
        let (mut sum, mut absolute) = (0.0, 0.0);
        for r in 0..self.rank {
            let b = round(self.b[out * self.rank + r] * self.scale);
            for (x, a) in x.iter().zip(&self.a[r * IN..]) {
                sum += b * round(*a) * x;
                absolute += (b * round(*a) * x).abs();
            }
        }
        (sum, absolute)
    }
}

fn weight<T: Float>(rt: &Runtime, rng: &mut StdRng, format: Option<BlockFormat>) -> Weight<T> {
    if let Some(format) = format {
        return Weight::blocks(rt, &[OUT, IN], format, blocks(rng, format, OUT, IN)).unwrap();
    }
    let values: Vec<T> = (0..OUT * IN).map(|_| T::from_f64(rng.random_range(-1.0..1.0))).collect();
    Param::new(rt, &[OUT, IN], &values).unwrap().into()
}

/// Rows of a call, and what they must give: `plain` is the layer without adapters.
fn check<T: Float>(x: &[f64], slots: &[u32], plain: &[T], got: &[T], adapters: &[Adapter], what: &str) {
    let (none, unit) = (Adapter::default(), 2.0f64.powi(-(T::DTYPE.mantissa_bits() as i32)));
    for (row, (x, &slot)) in x.chunks(IN).zip(slots).enumerate() {
        let adapter = adapters.get(slot as usize).unwrap_or(&none);
        for out in 0..OUT {
            let (plain, got) = (plain[row * OUT + out].to_f64(), got[row * OUT + out].to_f64());
            let (added, absolute) = adapter.added::<T>(x, out);
            if adapter.rank == 0 {
                assert_eq!(got, plain, "{what}, row {row}: nothing is added");
                continue;
            }
            // Each of the two products and the sum are rounded, the first before it is multiplied again.
            let bound = unit * (3.0 * absolute + plain.abs() + 1e-3) + 1e-5 * absolute;
            let error = (got - plain - added).abs();
            assert!(
                error <= bound,
                "{what}, row {row}, slot {slot}: {got} is not {plain} + {added}, by {error}"
            );
        }
    }
}

trait MantissaBits {
    fn mantissa_bits(self) -> u32;
}

impl MantissaBits for DType {
    fn mantissa_bits(self) -> u32 {
        match self {
            Self::F16 => 11,
            Self::Bf16 => 8,
            _ => 24,
        }
    }
}

/// In every mode and bucket, adapters come and go between calls, and each row has its own.
fn adapters_come_and_go<T: Float>() {
    let formats = [None, Some(BlockFormat::Q8_0), Some(BlockFormat::Q4_0)].into_iter();
    for (format, mode) in formats.flat_map(|f| [Mode::None, Mode::Piecewise, Mode::Full].map(|m| (f, m))) {
        let what = format!("{}, {format:?}, {mode}", T::DTYPE);
        let mut rt = Runtime::new(device()).unwrap();
        let rng = &mut StdRng::seed_from_u64(3);
        let weight = weight::<T>(&rt, rng, format);
        let layer = Layer { weight, lora: Lora::new(&rt, ROOM, [OUT, IN]).unwrap() };
        assert_eq!((layer.lora.room(), layer.lora.shape()), (ROOM, [OUT, IN]));
        let graph =
            PaddedGraph::<T>::builder().bucket("T", Schedule::new([4, 8])).mode(mode).build(&mut rt).unwrap();
        let plain = AdaptedGraph::<T>::builder().mode(Mode::None).build(&mut rt).unwrap();
        let mut adapters = vec![Adapter::default(); ROOM.slots];
        let mut recordings = 0;
        for round in 0..24 {
            let step = rt.step().unwrap();
            let slot = rng.random_range(0..ROOM.slots);
            if rng.random_bool(0.7) {
                adapters[slot] = Adapter::random(rng);
                let Adapter { rank, a, b, scale } = &adapters[slot];
                layer.lora.put(&step, slot, *rank, [a, b], *scale).unwrap();
            } else {
                adapters[slot] = Adapter::default();
                layer.lora.clear(&step, slot).unwrap();
            }
            let rows = [3, 8, 4, 1][round % 4];
            let x: Vec<f32> = (0..rows * IN).map(|_| rng.random_range(-8..8) as f32 / 8.0).collect();
            let slots: Vec<u32> =
                (0..rows)
                    .map(|_| {
                        if rng.random_bool(0.3) { NO_ADAPTER } else { rng.random_range(0..ROOM.slots as u32) }
                    })
                    .collect();
            let y = graph.call(&step, &x, &slots, &layer).unwrap();
            let wide: Vec<f64> = x.iter().map(|&v| v.into()).collect();
            let narrow: Vec<T> = wide.iter().map(|&v| T::from_f64(v)).collect();
            let (x, nobody) = (step.tensor(&[rows, IN], &narrow).unwrap(), vec![NO_ADAPTER; rows]);
            let none = plain.call(&step, &x, &step.tensor(&[rows], &nobody).unwrap(), &layer).unwrap();
            let (got, plain) = (step.read(&y).unwrap(), step.read(&none).unwrap());
            check(&wide, &slots, &plain, &got, &adapters, &format!("{what}, round {round}"));
            drop((y, x, none, step));
            if round == 11 {
                recordings = rt.stats().recordings;
            }
        }
        assert_eq!(rt.stats().recordings, recordings, "{what}: recorded for an adapter");
        assert!(mode == Mode::None || rt.stats().replays >= 12);
    }
}

#[test]
fn each_row_has_its_adapter() {
    for_types!(adapters_come_and_go: f32, f16, bf16);
}

#[test]
fn slots_that_do_not_exist_are_told() {
    let mut rt = Runtime::new(device()).unwrap();
    let rng = &mut StdRng::seed_from_u64(3);
    let layer =
        Layer { weight: weight::<f32>(&rt, rng, None), lora: Lora::new(&rt, ROOM, [OUT, IN]).unwrap() };
    let graph = AdaptedGraph::<f32>::builder().build(&mut rt).unwrap();
    for _ in 0..4 {
        let step = rt.step().unwrap();
        let x = step.tensor(&[2, IN], &[1.0; 2 * IN]).unwrap();
        let y = graph.call(&step, &x, &step.tensor(&[2], &[3, 0]).unwrap(), &layer).unwrap();
        let error = step.read(&y).unwrap_err();
        assert!(matches!(error, Error::IndexOutOfRange { index: 3, bound: 3, .. }), "{error}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut rt = Runtime::new(device()).unwrap();
    for room in [Room { slots: 0, rank: 1 }, Room { slots: 1, rank: 0 }] {
        assert!(matches!(Lora::<f32>::new(&rt, room, [2, 3]), Err(Error::Argument { op: "Lora::new", .. })));
    }
    let lora = Lora::<f32>::new(&rt, ROOM, [2, 3]).unwrap();
    let mut other = Runtime::new(device()).unwrap();
    let step = rt.step().unwrap();
    let refused = |result: Result<()>, wanted: &str| {
        let text = result.unwrap_err().to_string();
        assert!(text.contains(wanted), "{text}");
    };
    let (a, b) = ([0.0; 6], [0.0; 4]);
    refused(lora.put(&step, 3, 2, [&a, &b], 1.0), "slot 3 of 3");
    refused(lora.clear(&step, 3), "slot 3 of 3");
    refused(lora.put(&step, 0, 5, [&[0.0; 15], &[0.0; 10]], 1.0), "rank 5, where the largest is 4");
    refused(lora.put(&step, 0, 2, [&a[1..], &b], 1.0), "A has 5 elements");
    refused(lora.put(&step, 0, 2, [&a, &b], f64::NAN), "the scale is NaN");
    refused(lora.put(&other.step().unwrap(), 0, 2, [&a, &b], 1.0), "different runtimes");
    let routes = lora::route(&step.tensor(&[2], &[0, 1]).unwrap(), ROOM).unwrap();
    let x = step.tensor(&[2, 3], &[0.0f32; 6]).unwrap();
    let shape = |result: Result<Tensor<'_, f32>>| {
        assert!(matches!(result, Err(Error::Shape { op: "Lora::add", .. })), "{result:?}");
    };
    shape(lora.add(&x, &x, &routes));
    shape(lora.add(&x, &step.tensor(&[1, 3], &[0.0; 3]).unwrap(), &routes));
    let fewer = lora::route(&step.tensor(&[2], &[0, 1]).unwrap(), Room { slots: 2, rank: 1 }).unwrap();
    shape(lora.add(&step.tensor(&[2, 2], &[0.0; 4]).unwrap(), &x, &fewer));
    let scalar = lora::route(&step.tensor(&[1, 1], &[0]).unwrap(), ROOM);
    assert!(matches!(scalar, Err(Error::Shape { op: "lora::route", .. })), "{scalar:?}");
}

/// `v`, `2 v`, … as a matrix.
fn matrix(rows: usize, columns: usize, v: f32) -> Vec<f32> {
    (1..=rows * columns).map(|i| v * i as f32).collect()
}

fn insert(map: &mut TensorMap, name: &str, rows: usize, columns: usize, v: f32) {
    map.insert(name, &[rows, columns], &matrix(rows, columns, v)).unwrap();
}

#[test]
fn files_of_peft_are_loaded() {
    let mut rt = Runtime::new(device()).unwrap();
    let graph = AdaptedGraph::<f32>::builder().build(&mut rt).unwrap();
    let layer = || Lora::<f32>::new(&rt, ROOM, [OUT, IN]).unwrap();
    let (q, k) = (layer(), layer());
    let weight = Weight::from(Param::<f32>::zeros(&rt, &[OUT, IN]).unwrap());
    let layers = [q.clone(), k.clone()].map(|lora| Layer { weight: weight.clone(), lora });
    let mut file = TensorMap::new();
    insert(&mut file, "base_model.model.m.0.q.lora_A.weight", 2, IN, 0.5);
    insert(&mut file, "base_model.model.m.0.q.lora_B.weight", OUT, 2, 0.25);
    let half: Vec<f16> = matrix(1, IN, 1.0).into_iter().map(f16::from_f32).collect();
    file.insert("base_model.model.m.0.k.lora_A.weight", &[1, IN], &half).unwrap();
    file.insert("base_model.model.m.0.k.lora_B.weight", &[OUT, 1], &[bf16::from_f32(2.0); OUT]).unwrap();
    let names = || [("m.0.q", &q), ("m.0.k", &k)];
    let plain = Peft::new(&file, 8.0);
    assert_eq!(plain.modules().unwrap(), ["m.0.k", "m.0.q"]);
    let rooted = Peft::new(&file, 8.0).by_root_of_rank(true).alpha_of("0.k", 3.0).alpha_of("k", 100.0);
    for (slot, peft, scales) in [(0, &plain, [4.0, 8.0]), (2, &rooted, [8.0 / 2.0f64.sqrt(), 3.0])] {
        let step = rt.step().unwrap();
        peft.load(&step, slot, names()).unwrap();
        let adapter = |rank: usize, a: Vec<f32>, b: Vec<f32>, scale| {
            let wide = |v: Vec<f32>| v.into_iter().map(f64::from).collect::<Vec<_>>();
            Adapter { rank, a: wide(a), b: wide(b), scale }
        };
        let adapters = [
            adapter(2, matrix(2, IN, 0.5), matrix(OUT, 2, 0.25), scales[0]),
            adapter(1, matrix(1, IN, 1.0), vec![2.0; OUT], scales[1]),
        ];
        let x: Vec<f64> = (0..IN).map(|i| (i % 3) as f64 - 1.0).collect();
        let narrow: Vec<f32> = x.iter().map(|&v| v as f32).collect();
        for (layer, adapter) in layers.iter().zip(adapters) {
            let (x_of, slots) =
                (step.tensor(&[1, IN], &narrow).unwrap(), step.tensor(&[1], &[slot as u32]).unwrap());
            let y = graph.call(&step, &x_of, &slots, layer).unwrap();
            let mut all = vec![Adapter::default(); ROOM.slots];
            all[slot] = adapter;
            check(&x, &[slot as u32], &[0.0; OUT], &step.read(&y).unwrap(), &all, &format!("slot {slot}"));
        }
    }
    // A layer that the next adapter leaves alone has none of it.
    let mut only_q = TensorMap::new();
    insert(&mut only_q, "m.0.q.lora_A.weight", 1, IN, 1.0);
    insert(&mut only_q, "m.0.q.lora_B.weight", OUT, 1, 1.0);
    let step = rt.step().unwrap();
    Peft::new(&only_q, 1.0).load(&step, 0, names()).unwrap();
    let x = step.tensor(&[1, IN], &[1.0; IN]).unwrap();
    let y = graph.call(&step, &x, &step.tensor(&[1], &[0]).unwrap(), &layers[1]).unwrap();
    assert_eq!(step.read(&y).unwrap(), [0.0; OUT]);
}

#[test]
fn files_that_do_not_fit_change_nothing() {
    let mut rt = Runtime::new(device()).unwrap();
    let lora = Lora::<f32>::new(&rt, ROOM, [OUT, IN]).unwrap();
    let layer =
        Layer { weight: Weight::from(Param::<f32>::zeros(&rt, &[OUT, IN]).unwrap()), lora: lora.clone() };
    let graph = AdaptedGraph::<f32>::builder().build(&mut rt).unwrap();
    let step = rt.step().unwrap();
    lora.put(&step, 0, 1, [&[1.0; IN], &[1.0; OUT]], 1.0).unwrap();
    let problems_of = |peft: &Peft<'_>| match peft.load(&step, 0, [("q", &lora), ("v", &lora)]) {
        Err(Error::Load { problems, .. }) => problems.join("\n"),
        other => panic!("{other:?}"),
    };
    let mut all = TensorMap::new();
    insert(&mut all, "q.lora_A.weight", 2, IN - 1, 1.0);
    insert(&mut all, "q.lora_B.weight", OUT, 3, 1.0);
    insert(&mut all, "v.lora_A.weight", 2, IN, 1.0);
    insert(&mut all, "o.lora_A.weight", 2, IN, 1.0);
    insert(&mut all, "q.lora_magnitude_vector", 1, OUT, 1.0);
    let problems = problems_of(&Peft::new(&all, 1.0));
    for wanted in [
        "`q`: lora_A is [2, 31] and lora_B [5, 3]; of a layer of [5, 32], they are [rank, 32] and [5, rank]",
        "`v`: there is no `lora_B.weight`",
        "it adapts `o`, for which the model has no slots",
        "`q.lora_magnitude_vector` is neither",
    ] {
        assert!(problems.contains(wanted), "{wanted} is not in\n{problems}");
    }
    assert!(matches!(Peft::new(&all, 1.0).modules(), Err(Error::Load { .. })));
    let mut large = TensorMap::new();
    insert(&mut large, "q.lora_A.weight", 5, IN, 1.0);
    insert(&mut large, "q.lora_B.weight", OUT, 5, 1.0);
    assert!(problems_of(&Peft::new(&large, 1.0)).contains("rank 5, where the largest is 4"));
    let mut fits = TensorMap::new();
    insert(&mut fits, "q.lora_A.weight", 1, IN, 1.0);
    insert(&mut fits, "q.lora_B.weight", OUT, 1, 1.0);
    assert!(problems_of(&Peft::new(&fits, f64::INFINITY)).contains("the scale is inf"));
    let mut integers = TensorMap::new();
    integers.insert("q.lora_A.weight", &[1, IN], &[1i32; IN]).unwrap();
    insert(&mut integers, "q.lora_B.weight", OUT, 1, 1.0);
    assert!(problems_of(&Peft::new(&integers, 1.0)).contains("lora_A is i32; floats are needed"));
    assert!(
        problems_of(&Peft::new(&Damaged, 1.0))
            .contains("lora_A has 3 elements, which is not what [1, 32] takes")
    );
    let x = step.tensor(&[1, IN], &[1.0; IN]).unwrap();
    let y = graph.call(&step, &x, &step.tensor(&[1], &[0]).unwrap(), &layer).unwrap();
    assert_eq!(step.read(&y).unwrap(), [IN as f32; OUT], "what was there");
}

/// A source whose tensors have too few bytes.
struct Damaged;

impl TensorSource for Damaged {
    fn name(&self) -> String {
        "damaged".into()
    }

    fn names(&self) -> Vec<String> {
        vec!["q.lora_A.weight".into(), "q.lora_B.weight".into()]
    }

    fn tensor(&self, _: &str) -> Result<Option<HostTensor<'_>>> {
        Ok(Some(HostTensor { dtype: DType::F32, shape: vec![1, IN], bytes: vec![0; 12].into(), file: None }))
    }
}
