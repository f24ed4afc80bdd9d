//! Types that a key can hold: enums and newtypes of the user, maps and tuples of parameters, settings of operations.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    num::NonZero,
    rc::Rc,
    time::Duration,
};

use graphable::{graphable, prelude::*};

use super::{gives, mix};

#[derive(Clone, Copy, ConfigValue)]
enum Phase {
    Prefill,
    Decode { depth: NonZero<u32> },
}

#[derive(Clone, ConfigValue)]
struct Heads(usize);

/// A float in it: no key, and nothing is wrong with that.
#[derive(Clone, ConfigValue)]
struct Rates {
    decay: f32,
    by_name: BTreeMap<String, f32>,
}

#[graphable]
fn by_phase(x: &Tensor<f32>, #[key] phase: Phase, #[key] heads: Heads) -> Result<Tensor<f32>> {
    let h = ops::add(x, x)?;
    let h = #[eager]
    mix(&h)?;
    let h = match phase {
        Phase::Prefill => ops::neg(&h)?,
        Phase::Decode { depth } => ops::scale(&h, depth.get() as f32)?,
    };
    ops::scale(&h, heads.0 as f32)
}

#[test]
fn enums_and_newtypes_are_keys() {
    gives!(ByPhaseGraph, -8.0, |g, step, x, m| g.call(&step, &x, Phase::Prefill, Heads(2)));
    gives!(ByPhaseGraph, 60.0, |g, step, x, m| {
        g.call(&step, &x, Phase::Decode { depth: NonZero::new(5).unwrap() }, Heads(3))
    });
}

#[graphable]
fn by_window(
    x: &Tensor<f32>,
    #[key] window: std::ops::RangeInclusive<usize>,
    #[key] wait: Duration,
    #[key] name: Cow<'static, str>,
) -> Result<Tensor<f32>> {
    let h = ops::scale(x, window.clone().count() as f32)?;
    let h = #[eager]
    mix(&h)?;
    let h = ops::scale(&h, wait.as_secs() as f32)?;
    ops::scale(&h, name.len() as f32)
}

#[test]
fn ranges_durations_and_cows_are_keys() {
    gives!(ByWindowGraph, 48.0, |g, step, x, m| {
        g.call(&step, &x, 1..=4, Duration::from_secs(2), Cow::Borrowed("abc"))
    });
}

#[derive(Params)]
struct Adapters {
    pairs: Vec<(Param<f32>, Param<f32>)>,
    by_name: BTreeMap<String, Param<f32>>,
    shared: Rc<Param<f32>>,
    gates: HashMap<u32, Param<f32>>,
    #[config]
    rates: Rates,
    #[config]
    rope: ops::RopeConfig,
}

fn adapters(rt: &Runtime) -> Adapters {
    let scalar = |v: f32| Param::new(rt, &[1], &[v]).unwrap();
    Adapters {
        pairs: vec![(scalar(2.0), scalar(3.0)), (scalar(4.0), scalar(5.0))],
        by_name: [("a", 6.0), ("b", 7.0)].map(|(n, v)| (n.to_owned(), scalar(v))).into(),
        shared: Rc::new(scalar(8.0)),
        gates: [(1, scalar(0.5)), (2, scalar(0.25))].into(),
        rates: Rates { decay: 2.0, by_name: [("a".to_owned(), 10.0)].into() },
        rope: ops::RopeConfig::new(1e4, ops::RopeStyle::HalfSplit),
    }
}

#[graphable]
fn adapted(x: &Tensor<f32>, m: &Adapters, #[key] name: &str) -> Result<Tensor<f32>> {
    let mut h = ops::add(x, &*m.shared)?;
    for (i, (down, up)) in m.pairs.iter().enumerate() {
        h = ops::mul(&h, down)?;
        h = #[eager]
        mix(&h)?;
        h = ops::add(&h, up)?;
        h = ops::scale(&h, (i + 1) as f32)?;
    }
    let by = m.by_name.get(name).unwrap();
    let h = #[eager]
    mix(&h)?;
    let h = ops::mul(&ops::add(&h, by)?, &m.gates[&1])?;
    ops::scale(&h, m.rates.decay * m.rates.by_name["a"])
}

#[test]
fn maps_and_tuples_of_parameters() {
    // x + 8 = 9; (9 * 2 * 2 + 3) * 1 = 39; (39 * 4 * 2 + 5) * 2 = 634; (1268 + 7) * 0.5 * 20.
    crate::support::check!(
        AdaptedGraph,
        |rt| adapters(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let _ = n;
            g.call(&step, &x, &m, "b")
        },
        vec![12750.0]
    );
    let rt = crate::support::runtime();
    let paths: Vec<String> =
        graphable::ParamVisitor::list(&adapters(&rt)).into_iter().map(|p| p.path).collect();
    let expected = [
        "pairs.0.0",
        "pairs.0.1",
        "pairs.1.0",
        "pairs.1.1",
        "by_name.a",
        "by_name.b",
        "shared",
        "gates.1",
        "gates.2",
    ];
    assert_eq!(paths, expected);
}

/// A setting that changes is another recording, and back again a known one.
#[test]
fn a_map_that_changes_is_another_key() {
    let mut rt = crate::support::runtime();
    let mut m = adapters(&rt);
    let g = AdaptedGraph::builder().build(&mut rt).unwrap();
    for (rate, expected) in [(10.0, 12750.0), (20.0, 25500.0), (10.0, 12750.0), (20.0, 25500.0)] {
        m.rates.by_name.insert("a".into(), rate);
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let y = g.call(&step, &x, &m, "b").unwrap();
            assert_eq!(step.read(&y).unwrap(), [expected]);
        }
    }
}

#[graphable]
fn rotated(x: &Tensor<f32>, positions: &Tensor<u32>, #[key] causal: bool) -> Result<Tensor<f32>> {
    let rope = ops::RopeConfig::new(10.0, ops::RopeStyle::Interleaved);
    let half = ops::RopeConfig { theta: 20.0, style: ops::RopeStyle::HalfSplit, dim: None };
    let mask = if causal { ops::AttentionMask::Causal } else { ops::AttentionMask::None };
    let q = ops::rope(&ops::reshape(x, &[1, 1, 1, 2])?, positions, rope)?;
    let q = #[eager]
    mix(&q)?;
    let q = ops::rope(&q, positions, half)?;
    let a = ops::attention(&q, &q, &q, mask, 1.0)?;
    let a = #[eager]
    mix(&a)?;
    ops::reshape(&ops::attention(&a, &a, &a, mask, 1.0)?, &[2])
}

#[test]
fn settings_of_operations_are_locals() {
    crate::support::check!(
        RotatedGraph,
        |rt| (),
        |g, step, m, n| {
            let _ = (n, &m);
            let x = step.tensor(&[2], &[1.0, 2.0]).unwrap();
            let at = step.tensor(&[1, 1], &[0u32]).unwrap();
            g.call(&step, &x, &at, true)
        },
        vec![4.0, 8.0]
    );
}
