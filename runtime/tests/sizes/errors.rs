//! Errors of padded dimensions: which one it is depends neither on the size nor on the mode, and sizes that it shows are
//! not those of the bucket alone.

use graphable::{Error, Mode, Param, Params, Result, Runtime, State, Tensor, graphable, ops};

use crate::{MODES, SIZES, runtime, schedule};

#[derive(Params)]
struct Memory {
    /// `[4, 2]`: as many rows as one of the buckets.
    rows: State<f32>,
    /// `[4]`
    weight: Param<f32>,
}

fn memory(rt: &Runtime) -> Memory {
    Memory { rows: State::zeros(rt, &[4, 2]).unwrap(), weight: Param::new(rt, &[4], &[1.0f32; 4]).unwrap() }
}

/// A graph of `x`, `[B, 2]`.
macro_rules! graphs {
    ($($name:ident |$x:ident, $m:ident| $body:expr;)*) => {$(
        #[graphable]
        fn $name(
            #[host]
            #[dims(B, 2)]
            $x: &Tensor<f32>,
            $m: &Memory,
        ) -> Result<Tensor<f32>> {
            // Some have no use for it.
            let _ = $m;
            $body
        }
    )*};
}

fn four<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::full(x.scope(), [4, 2], 1.0f32)
}

graphs! {
    last_of_linear |x, m| ops::linear(&ops::transpose(x, 0, 1)?, &ops::transpose(&four(x)?, 0, 1)?);
    bias_is_padded |x, m| {
        let bias = ops::full(x.scope(), [x.dim(0)], 1.0f32)?;
        ops::linear_bias(x, &four(x)?, &bias)
    };
    weight_is_padded |x, m| ops::linear_bias(&four(x)?, x, &m.weight);
    contracted |x, m| ops::matmul(&ops::transpose(&four(x)?, 0, 1)?, x);
    half_padded_product |x, m| ops::masked_matmul(&ops::transpose(x, 0, 1)?, &four(x)?);
    product_half_padded |x, m| ops::masked_matmul(&ops::transpose(&four(x)?, 0, 1)?, x);
    contracted_nt |x, m| ops::matmul_nt(&ops::transpose(x, 0, 1)?, &ops::transpose(&four(x)?, 0, 1)?);
    batch_of_keys |x, m| {
        let q = ops::reshape(x, (x.dim(0), 1, 1, 2))?;
        let k = ops::reshape(&four(x)?, [4, 1, 1, 2])?;
        ops::attention(&q, &k, &k, ops::AttentionMask::None, 1.0)
    };
    rows_of_values |x, m| {
        let (k, v) = (ops::unsqueeze(x, 1)?, ops::unsqueeze(&four(x)?, 1)?);
        let length = ops::full(x.scope(), [1], 2u32)?;
        ops::attention(&v, &k, &v, ops::AttentionMask::Lengths(&length), 1.0)
    };
    heads_are_padded |x, m| {
        let q = ops::unsqueeze(&ops::transpose(x, 0, 1)?, 2)?;
        let k = ops::reshape(&four(x)?, [2, 4, 1])?;
        ops::attention(&q, &k, &k, ops::AttentionMask::None, 1.0)
    };
    length_is_padded |x, m| {
        let q = ops::unsqueeze(&four(x)?, 1)?;
        let lengths = ops::full(x.scope(), [x.dim(0)], 2u32)?;
        ops::attention(&q, &q, &q, ops::AttentionMask::Lengths(&lengths), 1.0)
    };
    lengths_of_a_batch |x, m| {
        let q = ops::reshape(&four(x)?, [4, 1, 1, 2])?;
        let lengths = ops::full(x.scope(), [x.dim(0)], 2u32)?;
        ops::attention(&q, &q, &q, ops::AttentionMask::Lengths(&lengths), 1.0)
    };
    positions_are_padded |x, m| {
        let q = ops::unsqueeze(&four(x)?, 1)?;
        let positions = ops::arange::<u32>(x.scope(), x.dim(0))?;
        ops::attention(&q, &q, &q, ops::AttentionMask::Positions(&positions), 1.0)
    };
    windowed_queries |x, m| {
        let (q, k) = (ops::unsqueeze(x, 1)?, ops::unsqueeze(&four(x)?, 1)?);
        let config = ops::AttentionConfig::new(ops::AttentionMask::None).window(1, 1);
        ops::attention(&q, &k, &k, config, 1.0)
    };
    padded_bias |x, m| {
        let k = ops::unsqueeze(&four(x)?, 1)?;
        let bias = ops::full(x.scope(), (4, x.dim(0)), 0.0f32)?;
        let config = ops::AttentionConfig::new(ops::AttentionMask::None).bias(&bias);
        ops::attention(&k, &k, &k, config, 1.0)
    };
    bias_of_a_fixed_size |x, m| {
        let q = ops::unsqueeze(x, 1)?;
        let bias = ops::full(x.scope(), (4, 1), 0.0f32)?;
        let config = ops::AttentionConfig::new(ops::AttentionMask::Causal).bias(&bias);
        ops::attention(&q, &q, &q, config, 1.0)
    };
    places_of_rope |x, m| {
        let places = ops::arange::<u32>(x.scope(), 4)?;
        let config = ops::RopeConfig::new(10.0, ops::RopeStyle::HalfSplit);
        ops::rope(&ops::unsqueeze(x, 1)?, &places, config)
    };
    padded_places_of_rope |x, m| {
        let places = ops::arange::<u32>(x.scope(), x.dim(0))?;
        let config = ops::RopeConfig::new(10.0, ops::RopeStyle::HalfSplit);
        ops::rope(&ops::unsqueeze(&four(x)?, 1)?, &places, config)
    };
    put_together |x, m| ops::concat(&[x, &four(x)?], 1);
    put_below |x, m| ops::concat(&[&four(x)?, x], 0);
    padded_weight |x, m| {
        let weight = ops::full(x.scope(), [x.dim(0)], 1.0f32)?;
        ops::rms_norm(&ops::transpose(&four(x)?, 0, 1)?, &weight, 1e-3)
    };
    padded_last |x, m| ops::rms_norm(&ops::transpose(x, 0, 1)?, &m.weight, 1e-3);
    added |x, m| {
        let weight = ops::full(x.scope(), [2], 1.0f32)?;
        Ok(ops::add_rms_norm(x, &four(x)?, &weight, 1e-3)?.0)
    };
    stored |x, m| {
        ops::store(&m.rows, x)?;
        Ok(x.clone())
    };
    scattered |x, m| {
        ops::scatter_rows(&m.rows, &ops::arange::<u32>(x.scope(), 4)?, x)?;
        Ok(x.clone())
    };
    scattered_places |x, m| {
        ops::scatter_rows(&m.rows, &ops::arange::<u32>(x.scope(), x.dim(0))?, &four(x)?)?;
        Ok(x.clone())
    };
    beside |x, m| ops::add(x, &four(x)?);
    chosen |x, m| ops::where_(&ops::gt(&four(x)?, &four(x)?)?, x, &four(x)?);
    masked |x, m| ops::masked_mean(x, &ops::full(x.scope(), [4, 1], true)?, 0);
}

/// The error of a call, in each mode and for each size.
macro_rules! errors {
    ($graph:ident, |$mode:ident, $n:ident, $error:ident| $check:expr) => {{
        let mut rt = runtime();
        let memory = memory(&rt);
        for $mode in MODES {
            let graph = $graph::builder().bucket("B", schedule()).mode($mode).build(&mut rt).unwrap();
            for _ in 0..2 {
                for $n in SIZES {
                    let x = crate::rows($n);
                    let step = rt.step().unwrap();
                    let $error = graph.call(&step, &x, &memory).unwrap_err();
                    $check
                }
            }
        }
    }};
}

macro_rules! always_mixed {
    ($($graph:ident)*) => {$(
        errors!($graph, |mode, n, error| assert!(
            matches!(error, Error::PaddedMix { .. }),
            "{}, {mode}, {n} rows: {error}",
            stringify!($graph)
        ));
    )*};
}

/// Where padding meets something else, that is what is said, whether the sizes are equal, as they are for one bucket, or not.
#[test]
fn what_is_refused_does_not_depend_on_the_size() {
    always_mixed! {
        LastOfLinearGraph BiasIsPaddedGraph WeightIsPaddedGraph ContractedGraph ContractedNtGraph
        HalfPaddedProductGraph ProductHalfPaddedGraph BatchOfKeysGraph RowsOfValuesGraph HeadsArePaddedGraph LengthIsPaddedGraph LengthsOfABatchGraph
        PositionsArePaddedGraph WindowedQueriesGraph PaddedBiasGraph BiasOfAFixedSizeGraph PlacesOfRopeGraph PaddedPlacesOfRopeGraph PutTogetherGraph PutBelowGraph
        PaddedWeightGraph PaddedLastGraph AddedGraph StoredGraph ScatteredGraph ScatteredPlacesGraph
        BesideGraph ChosenGraph MaskedGraph
    }
}

graphs! {
    wide |x, m| ops::matmul(x, &ops::full(x.scope(), [3, 5], 1.0f32)?);
    projected |x, m| ops::linear(x, &ops::full(x.scope(), [5, 3], 1.0f32)?);
    spread |x, m| ops::add(x, &ops::full(x.scope(), [3], 1.0f32)?);
    enlarged |x, m| ops::broadcast_to(x, (x.dim(0), 3));
    cut |x, m| ops::narrow(&ops::neg(x)?, 1, 1, 2);
    cut_by_padding |x, m| ops::narrow(&four(x)?, 0, 4, x.dim(0));
    state_cut_by_padding |x, m| {
        let _ = ops::cache_view(&m.rows).narrow(0, 4, x.dim(0))?;
        Ok(x.clone())
    };
    squeezed |x, m| ops::squeeze(x, 1);
    divided |x, m| Ok(ops::split(x, 1, 3)?.swap_remove(0));
    parted |x, m| Ok(ops::split_at(x, 1, &[1, 2])?.swap_remove(0));
    masked_by_more |x, m| {
        let column = ops::narrow(x, 1, 0, 1)?;
        ops::masked_mean(&column, &ops::full(x.scope(), (x.dim(0), 3), true)?, 0)
    };
    reshaped |x, m| ops::reshape(x, (x.dim(0), 3));
    normed |x, m| ops::rms_norm(x, &m.weight, 1e-3);
    of_ids |x, m| ops::embedding(&ops::arange::<u32>(x.scope(), x.dim(0))?, &m.weight);
    of_pairs |x, m| {
        let pairs = ops::full(x.scope(), (x.dim(0), 2), 0u32)?;
        ops::gather(x, 0, &pairs)
    };
    turned |x, m| {
        let places = ops::full(x.scope(), (x.dim(0), 1), 0u32)?;
        ops::rope(&ops::unsqueeze(x, 1)?, &places, ops::RopeConfig::new(10.0, ops::RopeStyle::HalfSplit))
    };
    written |x, m| {
        ops::scatter_rows(&m.rows, &ops::arange::<u32>(x.scope(), x.dim(0))?, &ops::full(x.scope(), (x.dim(0), 3), 0.0f32)?)?;
        Ok(x.clone())
    };
    attended |x, m| {
        let q = ops::reshape(x, (x.dim(0), 2, 1))?;
        let k = ops::full(x.scope(), (x.dim(0), 3, 1), 0.0f32)?;
        ops::attention(&q, &k, &k, ops::AttentionMask::Causal, 1.0)
    };
}

macro_rules! told {
    ($($graph:ident)*) => {$(
        errors!($graph, |mode, n, error| {
            let (text, name) = (error.to_string(), stringify!($graph));
            assert!(matches!(error, Error::Shape { .. }), "{name}: {text}");
            let bucket = schedule().round_up(n).filter(|bucket| mode != Mode::None && *bucket != n);
            let note = bucket.map(|bucket| format!("; the size along B is {n}, padded to a bucket of {bucket}"));
            assert_eq!(text.matches("along B").count(), usize::from(note.is_some()), "{name}, {mode}, {n}: {text}");
            assert!(note.is_none_or(|note| text.contains(&note)), "{name}, {mode}, {n}: {text}");
        });
    )*};
}

/// Shapes that do not fit for another reason list the bucket's size, and say what it really is.
#[test]
fn the_real_size_is_told() {
    told! {
        WideGraph ProjectedGraph SpreadGraph EnlargedGraph CutGraph CutByPaddingGraph StateCutByPaddingGraph SqueezedGraph DividedGraph PartedGraph
        MaskedByMoreGraph ReshapedGraph NormedGraph OfIdsGraph OfPairsGraph TurnedGraph WrittenGraph AttendedGraph
    }
}
