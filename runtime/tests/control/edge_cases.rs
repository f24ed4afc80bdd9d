//! Edge cases of `#[device]` in functions, against plain Rust: draws and writes in predicates, values that rounds exchange,
//! extreme counts, conditions of host and device combined, names that are shadowed or imported.

use graphable::prelude::*;

use crate::support::{build, setups};

/// A predicate that draws and writes: it runs once more than the body.
#[graphable]
fn drawn(
    #[host]
    #[dims(2)]
    x: &Tensor<f32>,
    rng: &Rng,
    log: &State<f32>,
) -> Result<(Tensor<f32>, Tensor<u32>)> {
    let mut i = ops::zeros(x.scope(), ())?;
    let mut y = x.clone();
    #[device(limit = 60)]
    while {
        let u = ops::uniform(rng, x.scope(), &[1], 0.0..1.0)?;
        ops::store(log, &u)?;
        ops::lt(&ops::reshape(&u, ())?, 0.8)?
    } {
        i = ops::add(&i, 1)?;
        y = ops::add(&y, &ops::load(x.scope(), log)?)?;
    }
    Ok((y, i))
}

#[test]
fn a_predicate_draws_and_writes_each_time() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let (rng, log) = (Rng::new(&rt, 5).unwrap(), State::zeros(&rt, &[1]).unwrap());
        let other = Rng::new(&rt, 5).unwrap();
        let graph = build!(DrawnGraph, setup, &mut rt);
        for call in 0..8 {
            let step = rt.step().unwrap();
            let x = [call as f32, -1.0];
            let (y, i) = graph.call(&step, &x, &rng, &log).unwrap();
            let (mut expected, mut rounds) = (x, 0);
            let last = loop {
                let u = ops::uniform(&other, step.scope(), &[1], 0.0..1.0).unwrap();
                let u: f32 = step.read(&u).unwrap()[0];
                if u >= 0.8 {
                    break u;
                }
                expected = expected.map(|v| v + u);
                rounds += 1;
            };
            assert_eq!(
                (step.read(&y).unwrap(), step.item(&i).unwrap()),
                (expected.to_vec(), rounds),
                "{setup:?}"
            );
            assert_eq!(step.read(&ops::load(step.scope(), &log).unwrap()).unwrap(), [last]);
        }
    }
}

/// Exchanges in rounds, some of which only an arm decides, and a limit for each of several loops of one place.
#[graphable]
#[allow(clippy::type_complexity, clippy::manual_swap, reason = "as users may write it")]
fn exchanged(
    #[host]
    #[dims(2)]
    x: &Tensor<f32>,
    #[host] n: &Scalar<u32>,
    #[key] loops: usize,
) -> Result<(Tensor<f32>, Tensor<f32>, Vec<Tensor<f32>>)> {
    let (mut a, mut b, mut c) = (x.clone(), ops::scale(x, 2.0)?, ops::neg(x)?);
    let mut all = vec![a.clone(), b.clone()];
    for round in 0..loops {
        let mut i = ops::zeros(x.scope(), ())?;
        #[device(limit = 5 + round as u32)]
        while ops::lt(&i, n)? {
            (a, b, c) = (b, c, a);
            #[device]
            if ops::eq(&ops::remainder(&i, 2)?, 0)? {
                (a, b) = (b, a);
            } else {
                let t = a;
                a = c;
                c = t;
            }
            all[round % 2] = ops::add(&all[(round + 1) % 2], &a)?;
            i = ops::add(&i, 1)?;
        }
    }
    Ok((a, ops::sub(&b, &c)?, all))
}

type Row = [f32; 2];

fn exchanged_by_hand(x: Row, n: u32, loops: usize) -> (Row, Row, Vec<Row>) {
    let (mut a, mut b, mut c) = (x, x.map(|v| 2.0 * v), x.map(|v| -v));
    let add = |a: Row, b: Row| [a[0] + b[0], a[1] + b[1]];
    let mut all = vec![a, b];
    for round in 0..loops {
        for i in 0..n {
            (a, b, c) = (b, c, a);
            if i % 2 == 0 {
                (a, b) = (b, a);
            } else {
                (a, c) = (c, a);
            }
            all[round % 2] = add(all[(round + 1) % 2], a);
        }
    }
    (a, add(b, c.map(|v| -v)), all)
}

#[test]
fn rounds_exchange_what_they_carry() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let graph = build!(ExchangedGraph, setup, &mut rt);
        for turn in 0..3 {
            for (n, loops) in [(3, 2), (0, 2), (1, 1), (5, 2), (2, 0), (6, 2), (6, 1), (4, 2)] {
                let x = [1.0 + turn as f32, -0.5];
                let step = rt.step().unwrap();
                let called = graph.call(&step, &x, n, loops);
                let read = called.and_then(|(a, b, all)| {
                    let all = all.iter().map(|t| step.read(t)).collect::<Result<Vec<_>>>()?;
                    Ok((step.read(&a)?, step.read(&b)?, all))
                });
                match read {
                    Ok((a, b, all)) => {
                        assert!(n < 6, "{setup:?}");
                        let expected = exchanged_by_hand(x, n, loops);
                        assert_eq!(
                            (a, b),
                            (expected.0.to_vec(), expected.1.to_vec()),
                            "{setup:?} {n} {loops}"
                        );
                        assert_eq!(all, expected.2, "{setup:?} {n} {loops}");
                    }
                    // The first of the loops has the smallest limit.
                    Err(Error::LoopLimit { limit: 5, .. }) => assert_eq!(n, 6, "{setup:?}"),
                    Err(other) => panic!("{setup:?} {n} {loops}: {other}"),
                }
                drop(step);
                // What is not read yet is reported by the next one that waits.
                let step = rt.step().unwrap();
                let _ = step.synchronize();
            }
        }
    }
}

#[graphable(helper)]
fn turned_by(t: &Tensor<f32>, p: &Scalar<bool>) -> Result<Tensor<f32>> {
    let mut z = ops::add(t, 1.0)?;
    #[device]
    if p {
        z = ops::neg(&z)?;
    }
    Ok(z)
}

/// Extreme cases of a `match`, a helper with a node of its own, and nodes as operands.
#[graphable]
fn extreme(
    #[host]
    #[dims(2)]
    x: &Tensor<f32>,
    #[host] k: &Scalar<i32>,
    #[host] p: &Scalar<bool>,
) -> Result<(Tensor<f32>, Tensor<f32>)> {
    let y = #[device]
    match k {
        -2147483648 => turned_by(x, p)?,
        i32::MAX | -1 => turned_by(&turned_by(x, p)?, p)?,
        0 => x.clone(),
        _ => ops::scale(x, 0.5)?,
    };
    let z = ops::sub(
        &(#[device]
        if p { y.clone() } else { turned_by(&y, p)? }),
        &(#[device]
        match k {
            1 | 0 => y.clone(),
            _ => ops::neg(&y)?,
        }),
    )?;
    Ok((
        y.clone(),
        #[device]
        if p { z } else { y },
    ))
}

fn extreme_by_hand(x: Row, k: i32, p: bool) -> (Row, Row) {
    let turned = |t: Row| t.map(|v| if p { -(v + 1.0) } else { v + 1.0 });
    let y = match k {
        i32::MIN => turned(x),
        i32::MAX | -1 => turned(turned(x)),
        0 => x,
        _ => x.map(|v| v * 0.5),
    };
    let left = if p { y } else { turned(y) };
    let right = if matches!(k, 0 | 1) { y } else { y.map(|v| -v) };
    (y, if p { [left[0] - right[0], left[1] - right[1]] } else { y })
}

/// All results are held, and read at the end.
#[test]
fn extreme_cases_and_results_that_are_held() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let graph = build!(ExtremeGraph, setup, &mut rt);
        for turn in 0..3 {
            let step = rt.step().unwrap();
            let mut held = Vec::new();
            for k in [i32::MIN, i32::MAX, -1, 0, 1, 2, i32::MIN + 1] {
                for p in [true, false] {
                    let x = [turn as f32 + 0.25, k as f32];
                    held.push(((x, k, p), graph.call(&step, &x, k, p).unwrap()));
                }
            }
            for ((x, k, p), (y, z)) in held {
                let expected = extreme_by_hand(x, k, p);
                assert_eq!(step.read(&y).unwrap(), expected.0, "{setup:?} {k} {p}");
                assert_eq!(step.read(&z).unwrap(), expected.1, "{setup:?} {k} {p}");
            }
        }
    }
}

/// Values that host code also decides about: an arm that the host takes inside one that the device takes, variables that only
/// some of them assign and move, a loop in a loop whose counter is that of the outer one.
#[graphable]
fn mixed(
    #[host]
    #[dims(2)]
    x: &Tensor<f32>,
    #[host] p: &Scalar<bool>,
    #[host] n: &Scalar<u32>,
    #[key] which: usize,
) -> Result<Tensor<f32>> {
    let mut y = x.clone();
    let mut h = ops::neg(x)?;
    let spare = ops::scale(x, 8.0)?;
    #[device]
    if p {
        if which == 0 {
            h = ops::scale(&h, 3.0)?;
            y = identity(h);
        } else {
            h = spare;
            let moved = h;
            y = ops::add(&y, &moved)?;
        }
    } else {
        h = ops::neg(&h)?;
        if which == 1 {
            y = ops::add(&identity(spare), &ops::scale(&h, 0.0)?)?;
        }
    }
    let mut i = ops::zeros(x.scope(), ())?;
    let mut total = ops::zeros::<u32>(x.scope(), ())?;
    #[device(limit = 9)]
    while ops::lt(&i, n)? {
        let mut j = i.clone();
        #[device(limit = 9)]
        while ops::lt(&j, n)? {
            j = ops::add(&j, 1)?;
            total = ops::add(&total, &j)?;
        }
        i = identity(ops::add(&i, 1)?);
    }
    ops::add(&y, &ops::cast(&total)?)
}

fn identity<T>(value: T) -> T {
    value
}

fn mixed_by_hand(x: Row, p: bool, n: u32, which: usize) -> Row {
    let y = match (p, which) {
        (true, 0) => x.map(|v| -3.0 * v),
        (true, _) => x.map(|v| v + 8.0 * v),
        (false, 1) => x.map(|v| 8.0 * v),
        (false, _) => x,
    };
    let total: u32 = (0..n).flat_map(|i| i..n).map(|j| j + 1).sum();
    y.map(|v| v + total as f32)
}

#[test]
fn hosts_and_devices_decide_together() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let graph = build!(MixedGraph, setup, &mut rt);
        for turn in 0..4 {
            for (p, n, which) in [(true, 3, 0), (false, 0, 1), (true, 1, 1), (false, 4, 0), (false, 2, 2)] {
                let x = [turn as f32, 0.5];
                let step = rt.step().unwrap();
                let y = graph.call(&step, &x, p, n, which).unwrap();
                assert_eq!(
                    step.read(&y).unwrap(),
                    mixed_by_hand(x, p, n, which),
                    "{setup:?} {p} {n} {which}"
                );
            }
        }
    }
}

const FACTOR: f32 = 2.0;

fn shifted<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::add(x, 1.0)
}

mod other {
    pub(super) const FACTOR: f32 = 9.0;
}

mod shift {
    use graphable::prelude::*;

    pub(super) fn by<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
        ops::add(x, 100.0)
    }
}

mod around {
    pub(super) mod shift {
        use graphable::prelude::*;

        pub(crate) fn by<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
            ops::add(x, 1000.0)
        }
    }
}

/// Items in arms that have the names of those that an outer closure means, and one that the closure and the arms share.
#[graphable]
fn renamed(
    #[host]
    #[dims(2)]
    x: &Tensor<f32>,
    #[host] k: &Scalar<i32>,
) -> Result<Tensor<f32>> {
    let scaled = |v| ops::scale(v, FACTOR);
    let moved = |v| shifted(v);
    let far = |v| shift::by(v);
    let named = |v| ops::scale(v, f32::from(SHARED));
    let z = #[device]
    match k {
        0 => {
            const FACTOR: f32 = 3.0;
            use around::shift;
            let own = ops::scale(&scaled(x)?, FACTOR)?;
            ops::sub(&shift::by(&own)?, &far(x)?)?
        }
        1 => {
            fn shifted<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
                ops::neg(x)
            }
            shifted(&moved(x)?)?
        }
        2 => {
            static FACTOR: f32 = 5.0;
            ops::scale(&scaled(x)?, FACTOR)?
        }
        _ => {
            let own = ops::neg(x)?;
            named(&own)?
        }
    };
    const SHARED: u8 = 7;
    Ok(z)
}

/// Names that a glob import brings into an arm.
#[graphable]
fn imported(
    #[host]
    #[dims(2)]
    x: &Tensor<f32>,
    #[host] k: &Scalar<i32>,
) -> Result<Tensor<f32>> {
    let scaled = |v| ops::scale(v, FACTOR);
    #[device]
    match k {
        0 => {
            use other::*;
            ops::add(&scaled(x)?, FACTOR)
        }
        _ => scaled(x),
    }
}

#[test]
fn items_of_arms_are_not_those_of_outer_closures() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let graph = build!(RenamedGraph, setup, &mut rt);
        let imports = build!(ImportedGraph, setup, &mut rt);
        for turn in 0..3 {
            for k in 0..4 {
                let step = rt.step().unwrap();
                let x = [turn as f32, 0.5];
                let expected = match k {
                    0 => x.map(|v| (v * 2.0 * 3.0 + 1000.0) - (v + 100.0)),
                    1 => x.map(|v| -(v + 1.0)),
                    2 => x.map(|v| v * 2.0 * 5.0),
                    _ => x.map(|v| -v * 7.0),
                };
                let z = graph.call(&step, &x, k).unwrap();
                assert_eq!(step.read(&z).unwrap(), expected, "{setup:?} {k}");
                let z = imports.call(&step, &x, k).unwrap();
                let expected = x.map(|v| v * 2.0 + if k == 0 { 9.0 } else { 0.0 });
                assert_eq!(step.read(&z).unwrap(), expected, "{setup:?} {k}");
            }
        }
    }
}
