//! What `f64`, `i64` and `i8` have that no other type shows: values beyond 32 bits, through the host, operations and kernels.

use graphable::{
    Element, Error, Mode, Param, Result, Runtime, Scalar, State, Tensor, bf16, f16, graphable, kernel, ops,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::harness::{device, in_step};

/// Ends, and neighbours of what `f64` and `f32` hold.
const LONG: [i64; 12] = [
    i64::MIN,
    i64::MIN + 1,
    -(1 << 53) - 1,
    -(1 << 24) - 1,
    -1,
    0,
    1,
    (1 << 24) + 1,
    (1 << 53) + 1,
    (1 << 62) + 1,
    i64::MAX - 1,
    i64::MAX,
];

/// `LONG`, and numbers of all lengths.
fn longs() -> Vec<i64> {
    let mut rng = StdRng::seed_from_u64(5);
    LONG.into_iter().chain((0..500).map(|i| rng.random::<i64>() >> (i % 64))).collect()
}

/// Numbers of all sizes, and what is no number.
fn doubles() -> Vec<f64> {
    let mut rng = StdRng::seed_from_u64(6);
    let ends =
        [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE, 5e-324, 0.5];
    let near = |v: f64| [v.next_down(), v, v.next_up()];
    let edges = [
        65_504.0,
        65_520.0,
        2_147_483_647.5,
        4_294_967_295.5,
        9.223372036854775e18,
        1.00390625,
        127.5,
        -128.5,
    ];
    let any = (0..500).map(|_| f64::from_bits(rng.random()));
    ends.into_iter().chain(edges.into_iter().flat_map(near)).chain(any).collect()
}

/// Casts to every type are Rust's `as`.
#[test]
fn casts_are_those_of_rust() {
    in_step(|step| {
        let long = longs();
        let x = step.tensor(&[long.len()], &long).unwrap();
        macro_rules! as_rust {
            ($x:ident $values:ident: $($t:ident)*) => {$(
                let got = step.read(&ops::cast::<_, $t>(&$x).unwrap()).unwrap();
                let want: Vec<$t> = $values.iter().map(|v| *v as $t).collect();
                assert_eq!(bits(&got), bits(&want), stringify!($t));
            )*};
        }
        as_rust!(x long: f32 f64 i32 i8 u32 u8);
        let double = doubles();
        let x = step.tensor(&[double.len()], &double).unwrap();
        as_rust!(x double: f32 i32 i64 i8 u32 u8);
        let short: Vec<i8> = (-128..=127).collect();
        let x = step.tensor(&[256], &short).unwrap();
        as_rust!(x short: f32 f64 i32 i64 u32 u8);
        let unsigned: Vec<u32> = long.iter().map(|v| *v as u32).collect();
        let x = step.tensor(&[unsigned.len()], &unsigned).unwrap();
        as_rust!(x unsigned: f64 i64 i8);
        let single: Vec<f32> = double.iter().map(|v| *v as f32).collect();
        let x = step.tensor(&[single.len()], &single).unwrap();
        as_rust!(x single: f64 i64 i8);
    });
}

/// Elements as exact numbers, of which every NaN is one.
fn bits<T: Element>(values: &[T]) -> Vec<(u64, Option<i64>)> {
    let of = |v: f64| if v.is_nan() { u64::MAX } else { v.to_bits() };
    values.iter().map(|v| (of(v.to_f64()), v.to_i64())).collect()
}

/// Through an f32, a number of 64 bits would be rounded twice.
#[test]
fn halves_are_rounded_once() {
    fn check<T: Element>() {
        in_step(|step| {
            let double = doubles();
            let x = step.tensor(&[double.len()], &double).unwrap();
            let want: Vec<T> = double.iter().map(|v| T::from_f64(*v)).collect();
            assert_eq!(bits(&step.read(&ops::cast::<_, T>(&x).unwrap()).unwrap()), bits(&want));
            // Just beside the middle between two neighbours, which an f64 does not hold.
            let long: Vec<i64> = (24..62)
                .flat_map(|n| [9, 12].map(|digits| (1i64 << n) | (1i64 << n >> digits)))
                .flat_map(|middle| [middle - 1, middle, middle + 1, -middle - 1, -middle, 1 - middle])
                .collect();
            let x = step.tensor(&[long.len()], &long).unwrap();
            for (got, &value) in step.read(&ops::cast::<_, T>(&x).unwrap()).unwrap().iter().zip(&long) {
                let got = got.to_f64();
                if got.is_finite() {
                    let distance = |other: f64| (i128::from(value) - other as i128).abs();
                    let others = [-1.0, 1.0].map(|way| T::from_f64(got + way * got.abs() / 128.0).to_f64());
                    assert!(
                        others.iter().all(|other| distance(got) <= distance(*other)),
                        "{value} became {got}"
                    );
                }
            }
        });
    }
    check::<f16>();
    check::<bf16>();
}

#[test]
fn every_value_of_64_bits_goes_through() {
    let mut rt = Runtime::new(device()).unwrap();
    let param = Param::new(&rt, &[12], &LONG).unwrap();
    let state = State::new(&rt, &[12], &[0i64; 12]).unwrap();
    let step = rt.step().unwrap();
    let x = step.tensor(&[12], &LONG).unwrap();
    assert_eq!(step.read(&x).unwrap(), LONG);
    assert_eq!(step.read(&ops::add(&x, &param).unwrap()).unwrap(), LONG.map(|v| v.wrapping_add(v)));
    assert_eq!(step.read(&ops::mul(&x, 3).unwrap()).unwrap(), LONG.map(|v| v.wrapping_mul(3)));
    assert_eq!(step.read(&ops::sub(&x, i64::MAX).unwrap()).unwrap(), LONG.map(|v| v.wrapping_sub(i64::MAX)));
    assert_eq!(step.read(&ops::gt(&x, 1i64 << 53).unwrap()).unwrap(), LONG.map(|v| v > 1 << 53));
    let mask = ops::lt(&x, 0).unwrap();
    let want = LONG.map(|v| if v < 0 { i64::MAX - 1 } else { v });
    assert_eq!(step.read(&ops::masked_fill(&x, &mask, i64::MAX - 1).unwrap()).unwrap(), want);
    let full = ops::full(step.scope(), &[2], i64::MIN + 1).unwrap();
    assert_eq!(step.read(&full).unwrap(), [i64::MIN + 1; 2]);
    ops::store(&state, &ops::flip(&x, 0).unwrap()).unwrap();
    let (sorted, places) =
        ops::sort(&ops::add(&ops::zeros_like(&x).unwrap(), &state).unwrap(), 0, false).unwrap();
    assert_eq!(step.read(&sorted).unwrap(), LONG);
    assert_eq!(step.read(&places).unwrap(), [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    assert_eq!(step.read(&ops::argmax(&x, 0).unwrap()).unwrap(), [11]);
    assert_eq!(
        step.read(&ops::max(&ops::narrow(&x, 0, 0, 11).unwrap(), 0).unwrap()).unwrap(),
        [i64::MAX - 1]
    );
    assert_eq!(step.unique(&x).unwrap().read(&step).unwrap(), LONG);
    let rows = ops::embedding(&step.tensor(&[2], &[11u32, 0]).unwrap(), &ops::reshape(&x, &[12, 1]).unwrap());
    assert_eq!(step.read(&rows.unwrap()).unwrap(), [i64::MAX, i64::MIN]);
    let product = ops::matmul(&ops::reshape(&x, &[1, 12]).unwrap(), &ops::reshape(&x, &[12, 1]).unwrap());
    let want = LONG.iter().fold(0i64, |sum, v| sum.wrapping_add(v.wrapping_mul(*v)));
    assert_eq!(step.read(&product.unwrap()).unwrap(), [want]);
}

/// An `f64` is not computed in `f32`.
#[test]
fn doubles_are_computed_in_64_bits() {
    in_step(|step| {
        let values = [0.1, 1.0 / 3.0, -1e300, 1e-300];
        let x = step.tensor(&[4], &values).unwrap();
        assert_eq!(step.read(&ops::mul(&x, 1e-9).unwrap()).unwrap(), values.map(|v| v * 1e-9));
        assert_eq!(step.read(&ops::div(&x, 3.0).unwrap()).unwrap(), values.map(|v| v / 3.0));
        let factor = f64::from(0.1f32);
        assert_eq!(step.read(&ops::scale(&x, 0.1).unwrap()).unwrap(), values.map(|v| v * factor));
        // Nor are numbers beside it.
        let one = step.tensor(&[2], &[-1.0, 0.0]).unwrap();
        assert_eq!(step.read(&ops::leaky_relu(&one, 0.1).unwrap()).unwrap(), [-0.1, 0.0]);
        assert_eq!(step.read(&ops::elu(&one, 0.1).unwrap()).unwrap()[0], 0.1 * (-1.0f64).exp_m1());
        let weight = step.tensor(&[2], &[1.0, 1.0]).unwrap();
        let y = ops::rms_norm(&ops::unsqueeze(&one, 0).unwrap(), &weight, 0.1).unwrap();
        assert!((step.read(&y).unwrap()[0] + 1.0 / 0.6f64.sqrt()).abs() < 1e-15);
        let x = step.tensor(&[3], &[0.1, 0.2, 0.3]).unwrap();
        let sum: f64 = step.read(&ops::sum(&x, 0).unwrap()).unwrap()[0];
        assert!((sum - 0.6).abs() < 1e-15, "{sum}");
        let mean: f64 = step.read(&ops::mean(&x, 0).unwrap()).unwrap()[0];
        assert!((mean - 0.2).abs() < 1e-15, "{mean}");
        let nan = step.tensor(&[4], &[1.0, f64::NAN, -f64::NAN, f64::INFINITY]).unwrap();
        assert!(step.read(&ops::max(&nan, 0).unwrap()).unwrap()[0].is_nan());
        assert!(step.read(&ops::min(&nan, 0).unwrap()).unwrap()[0].is_nan());
        assert_eq!(step.read(&ops::argmax(&nan, 0).unwrap()).unwrap(), [1]);
        assert_eq!(step.read(&ops::argmin(&nan, 0).unwrap()).unwrap(), [1]);
        let (_, places) =
            ops::sort(&step.tensor(&[5], &[f64::NAN, 0.0, -1.0, -0.0, -f64::NAN]).unwrap(), 0, true).unwrap();
        assert_eq!(step.read(&places).unwrap(), [0, 4, 1, 3, 2]);
    });
}

#[kernel]
fn squared_sum(a: i64, b: i64, c: i8, d: f64) -> (i64, i8, f64) {
    let long = a * a + b - i64::from(c);
    (long, c / 2 - long as i8, d * 0.1 + long as f64)
}

/// The largest distance from the mean.
#[kernel(reduce)]
fn spread(x: Row<f64>, n: Row<i64>) -> (f64, i64) {
    let mean = x.sum() / x.len() as f64;
    (x.map(|v| (v - mean).abs()).max(), n.fold(0i64, |sum, v| sum + v, |a, b| a + b))
}

#[kernel(index)]
fn picked(ids: View<i64, 1>, table: View<f64, 2>, [i, j]: [i32; 2]) -> f64 {
    table.at([ids.at([i]), i64::from(j)])
}

#[test]
fn kernels_compute_in_64_bits() {
    in_step(|step| {
        let a = step.tensor(&[2], &[3_000_000_000i64, -7]).unwrap();
        let d = step.tensor(&[2], &[0.3, 1e-12]).unwrap();
        let c = step.tensor(&[2], &[-128i8, 127]).unwrap();
        let (long, short, double) = squared_sum(&a, 1 << 40, &c, &d).unwrap();
        let (l0, l1) = (9_000_000_000_000_000_000 + (1i64 << 40) + 128, 49 + (1i64 << 40) - 127);
        assert_eq!(step.read(&long).unwrap(), [l0, l1]);
        assert_eq!(step.read(&short).unwrap(), [(-64i8).wrapping_sub(l0 as i8), 63i8.wrapping_sub(l1 as i8)]);
        assert_eq!(step.read(&double).unwrap(), [0.3 * 0.1 + l0 as f64, 1e-12 * 0.1 + l1 as f64]);
        let n = step.tensor(&[3, 2000], &vec![1i64 << 40; 6000]).unwrap();
        let x: Vec<f64> = (0..6000).map(|i| 1.0 + f64::from(i % 2) * 1e-12).collect();
        let (spread, sum) = spread(&step.tensor(&[3, 2000], &x).unwrap(), &n, 1).unwrap();
        assert_eq!(step.read(&sum).unwrap(), [2000i64 << 40; 3]);
        assert!(step.read(&spread).unwrap().iter().all(|v| (v - 5e-13).abs() < 1e-15));
        let table = step.tensor(&[2, 2], &[0.1, 0.2, 0.3, 0.4]).unwrap();
        let ids = step.tensor(&[2], &[1i64, 0]).unwrap();
        assert_eq!(step.read(&picked(&ids, &table, [2, 2]).unwrap()).unwrap(), [0.3, 0.4, 0.1, 0.2]);
    });
}

/// What has two types has `f64` for both, or for none.
#[test]
fn statistics_of_doubles_are_doubles() {
    in_step(|step| {
        let x = ops::zeros::<f64>(step.scope(), &[2, 1]).unwrap();
        let (single, double) =
            (ops::zeros::<f32>(step.scope(), &[1]).unwrap(), ops::zeros::<f64>(step.scope(), &[1]).unwrap());
        assert!(ops::batch_norm(&x, &double, &double, &double, &double, 0.1).is_ok());
        let refused = ops::batch_norm(&x, &single, &single, &single, &single, 0.1);
        assert!(matches!(refused, Err(Error::DTypeMismatch { .. })), "{refused:?}");
        let short = ops::cast::<_, f32>(&x).unwrap();
        let refused = ops::batch_norm(&short, &double, &double, &double, &double, 0.1);
        assert!(matches!(refused, Err(Error::DTypeMismatch { .. })), "{refused:?}");
    });
}

/// An index of which only the lowest 32 bits are in range is out of range.
#[test]
fn long_indices_are_not_cut() {
    for id in [1i64 << 32, -1, i64::MIN, i64::MAX] {
        in_step(|step| {
            let table = step.tensor(&[2, 1], &[0.1, 0.2]).unwrap();
            let ids = step.tensor(&[1], &[id]).unwrap();
            let error = step.read(&picked(&ids, &table, [1, 1]).unwrap()).unwrap_err();
            assert!(matches!(error, Error::IndexOutOfRange { .. }), "{error}");
        });
    }
}

/// `by` changes from call to call.
#[graphable]
fn moved(
    #[host]
    #[dims(N)]
    x: &Tensor<i64>,
    #[host] by: &Scalar<i64>,
) -> Result<(Tensor<i64>, Tensor<f64>)> {
    let sum = ops::add(x, by)?;
    let double = ops::mul(&ops::cast::<_, f64>(&sum)?, 0.1)?;
    Ok((sum, double))
}

#[test]
fn graphs_replay_them() -> Result<()> {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(device())?;
        let graph = MovedGraph::builder().mode(mode).build(&mut rt)?;
        for by in [1i64 << 60, -(1 << 60), 3, 5] {
            let step = rt.step()?;
            let (sum, double) = graph.call(&step, &[7i64, -1], by)?;
            assert_eq!(step.read(&sum)?, [7 + by, by - 1], "{mode:?}");
            assert_eq!(step.read(&double)?, [(7 + by) as f64 * 0.1, (by - 1) as f64 * 0.1]);
        }
    }
    Ok(())
}

#[kernel(index)]
fn keep_longs(x: View<i64, 1>, to: &mut View<i64, 1>, [i]: [i32; 1]) {
    to.set([i], x.at([i]));
}

#[kernel(index)]
fn keep_doubles(x: View<f64, 1>, to: &mut View<f64, 1>, [i]: [i32; 1]) {
    to.set([i], x.at([i]));
}

#[test]
fn kernels_write_states_of_them() {
    let mut rt = Runtime::new(device()).unwrap();
    let (long, double) = (longs(), doubles());
    let kept = State::<i64>::zeros(&rt, &[long.len()]).unwrap();
    let others = State::<f64>::zeros(&rt, &[double.len()]).unwrap();
    let step = rt.step().unwrap();
    keep_longs(&step.tensor(&[long.len()], &long).unwrap(), &kept, [long.len()]).unwrap();
    keep_doubles(&step.tensor(&[double.len()], &double).unwrap(), &others, [double.len()]).unwrap();
    assert_eq!(step.read(&ops::load(step.scope(), &kept).unwrap()).unwrap(), long);
    let read = step.read(&ops::load(step.scope(), &others).unwrap()).unwrap();
    assert!(read.iter().zip(&double).all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()));
}

#[kernel]
fn doubled(a: f64, n: i64) -> (f64, i64) {
    (a * 2.0, n.wrapping_mul(2))
}

#[kernel]
fn same(n: i64) -> i64 {
    n
}

/// Of values whose types only rustc knows.
#[kernel]
fn signs(a: f64, n: i64, k: i32) -> (bool, bool, f64) {
    let (b, m) = doubled(a, n);
    let chosen = match k {
        0 => m,
        _ => same(n),
    };
    (b.is_finite(), chosen.is_negative(), b.sqrt())
}

#[test]
fn types_that_the_macro_does_not_know_are_those_of_rust() {
    in_step(|step| {
        let (long, double) = (longs(), doubles());
        let n = long.len().min(double.len());
        let choices: Vec<i32> = (0..n as i32).map(|i| i % 2).collect();
        let a = step.tensor(&[n], &double[..n]).unwrap();
        let (finite, negative, root) =
            signs(&a, &step.tensor(&[n], &long[..n]).unwrap(), &step.tensor(&[n], &choices).unwrap())
                .unwrap();
        let [finite, negative] = [finite, negative].map(|x| step.read(&x).unwrap());
        let root = step.read(&root).unwrap();
        for i in 0..n {
            let want = signs::scalar(double[i], long[i], choices[i]);
            assert_eq!((finite[i], negative[i]), (want.0, want.1), "{} {}", double[i], long[i]);
            assert!(root[i].to_bits() == want.2.to_bits() || root[i].is_nan() && want.2.is_nan());
        }
    });
}
