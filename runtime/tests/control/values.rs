//! Values, in every mode, over warm-up, recording and replays.

use graphable::prelude::*;

use crate::support::{build, setups};

/// A result of each kind: made by the body, passed through, a view, a parameter, and the same one twice.
#[graphable]
fn chosen(
    #[host]
    #[dims(B, 3)]
    x: &Tensor<f32>,
    #[host] p: &Scalar<bool>,
    w: &Param<f32>,
) -> Result<[Tensor<f32>; 5]> {
    let outer = ops::scale(x, 2.0)?;
    control::cond(
        p,
        || {
            let made = ops::neg(&outer)?;
            let twice = ops::add(&made, 1.0)?;
            Ok([made, outer.clone(), ops::transpose(x, 0, 1)?, twice.clone(), twice])
        },
        || {
            let made = ops::relu(x)?;
            let view = ops::transpose(&made, 0, 1)?;
            Ok([outer.clone(), ops::scale(&ops::neg(x)?, 3.0)?, view, x.scope().view(w)?, made])
        },
    )
}

#[test]
fn one_of_two_bodies_runs() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let w = Param::new(&rt, &[1, 3], &[7.0, 8.0, 9.0]).unwrap();
        let graph = build!(ChosenGraph, setup, &mut rt);
        for call in 0..8 {
            let p = call % 3 != 1;
            let x = [1.0, -2.0, call as f32];
            let step = rt.step().unwrap();
            let got = graph.call(&step, &x, p, &w).unwrap();
            let got: Vec<Vec<f32>> = got.iter().map(|t| step.read(t).unwrap()).collect();
            let expected: [[f32; 3]; 5] = if p {
                let neg = x.map(|x| -2.0 * x);
                let twice = neg.map(|x| x + 1.0);
                [neg, x.map(|x| 2.0 * x), x, twice, twice]
            } else {
                let relu = x.map(|x: f32| x.max(0.0));
                [x.map(|x| 2.0 * x), x.map(|x| -3.0 * x), relu, [7.0, 8.0, 9.0], relu]
            };
            assert_eq!(got, expected, "{setup:?}, call {call}, {p}");
            step.check_memory().unwrap();
        }
        let recordings = rt.stats().recordings;
        assert!(recordings <= 2, "{setup:?}: one graph for both: {recordings}");
    }
}

#[graphable]
fn switched(
    #[host]
    #[dims(B)]
    x: &Tensor<f32>,
    #[host] i: &Scalar<i32>,
) -> Result<Tensor<f32>> {
    let y = control::switch(i, &[&[0], &[-5, 7, 0], &[], &[i32::MAX]], |body| match body {
        0 => ops::neg(x),
        1 => ops::scale(x, 2.0),
        2 => ops::scale(x, 1000.0),
        3 => Ok(x.clone()),
        _ => ops::add(x, 0.5),
    })?;
    ops::add(&y, 1.0)
}

#[test]
fn one_of_many_bodies_runs() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let graph = build!(SwitchedGraph, setup, &mut rt);
        for i in [0, -5, 7, 0, i32::MAX, 1, -1, 7, 0, i32::MIN, -5] {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[3.0, -1.0], i).unwrap();
            let of = |x: f32| match i {
                0 => -x,
                -5 | 7 => 2.0 * x,
                i32::MAX => x,
                _ => x + 0.5,
            };
            assert_eq!(step.read(&y).unwrap(), [of(3.0) + 1.0, of(-1.0) + 1.0], "{setup:?}, {i}");
            step.check_memory().unwrap();
        }
        assert!(rt.stats().recordings <= 2);
    }
}

/// More cases than one kernel looks at.
#[graphable]
fn wide(#[host] i: &Scalar<u32>) -> Result<Tensor<u32>> {
    let values: Vec<u32> = (0..100).map(|k| 3 * k).collect();
    let cases: Vec<&[u32]> = values.chunks(10).collect();
    control::switch(i, &cases, |body| ops::full(i.scope(), (), body as u32))
}

#[test]
fn a_case_may_have_many_values() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let graph = build!(WideGraph, setup, &mut rt);
        for i in [0, 3, 30, 297, 298, 300, 27, 29] {
            let step = rt.step().unwrap();
            let y = graph.call(&step, i).unwrap();
            let expected = if i % 3 == 0 && i < 300 { i / 30 } else { 10 };
            assert_eq!(step.item(&y).unwrap(), expected, "{setup:?}, {i}");
        }
    }
}

/// A swap, a rotation through views, a value that stays, and one that becomes a parameter.
#[graphable]
fn carried(
    #[host]
    #[dims(B)]
    x: &Tensor<f32>,
    #[host] n: &Scalar<u32>,
    w: &Param<f32>,
) -> Result<[Tensor<f32>; 4]> {
    let zero = ops::full(x.scope(), (), 0u32)?;
    let start = (zero, x.clone(), ops::neg(x)?, ops::scale(x, 5.0)?, ops::zeros(x.scope(), [2])?);
    let (_, a, b, c, d) = control::while_loop(
        20,
        start,
        |(i, ..)| ops::lt(i, n),
        |(i, a, b, c, _)| {
            let i = ops::add(&i, 1)?;
            let turned = ops::concat(&[&ops::narrow(&c, 0, 1, 1)?, &ops::narrow(&c, 0, 0, 1)?], 0)?;
            let kept = x.scope().view(w)?;
            Ok((i, b, ops::add(&a, 1.0)?, turned, kept))
        },
    )?;
    Ok([a, b, c, d])
}

#[test]
fn a_loop_carries_values() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let w = Param::new(&rt, &[2], &[0.25, 0.5]).unwrap();
        let graph = build!(CarriedGraph, setup, &mut rt);
        for n in [3u32, 0, 1, 7, 20, 0, 2, 5] {
            let x = [1.0 + n as f32, -2.0];
            let step = rt.step().unwrap();
            let got = graph.call(&step, &x, n, &w).unwrap();
            let got = got.map(|t| step.read(&t).unwrap());
            let (mut a, mut b, mut c) = (x, x.map(|x| -x), x.map(|x| 5.0 * x));
            for _ in 0..n {
                (a, b, c) = (b, a.map(|a| a + 1.0), [c[1], c[0]]);
            }
            let d = if n > 0 { [0.25, 0.5] } else { [0.0; 2] };
            assert_eq!(got, [a, b, c, d], "{setup:?}, {n} rounds");
            step.check_memory().unwrap();
        }
        assert!(rt.stats().recordings <= 2);
    }
}

/// Loops in branches in loops.
#[graphable]
fn nested(
    #[host]
    #[dims(B)]
    x: &Tensor<f32>,
    #[host] n: &Scalar<u32>,
) -> Result<Tensor<f32>> {
    let zero = || ops::full(x.scope(), (), 0u32);
    let (_, y) = control::while_loop(
        10,
        (zero()?, x.clone()),
        |(i, _)| ops::lt(i, n),
        |(i, y)| {
            let is_odd = ops::eq(&ops::remainder(&i, 2u32)?, 1u32)?;
            let y = control::cond(
                &is_odd,
                || {
                    let (_, y) = control::while_loop(
                        10,
                        (zero()?, y.clone()),
                        |(j, _)| ops::lt(j, &i),
                        |(j, y)| Ok::<_, Error>((ops::add(&j, 1)?, ops::add(&y, 10.0)?)),
                    )?;
                    Ok(y)
                },
                || {
                    control::switch(&i, &[&[0], &[2]], |body| match body {
                        0 => ops::scale(&y, 2.0),
                        1 => ops::neg(&y),
                        _ => Ok::<_, Error>(y.clone()),
                    })
                },
            )?;
            Ok((ops::add(&i, 1)?, y))
        },
    )?;
    ops::scale(&y, 1.0)
}

#[test]
fn control_flow_nests() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let graph = build!(NestedGraph, setup, &mut rt);
        for n in [4u32, 0, 1, 6, 2, 10, 3] {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[1.5, -1.0], n).unwrap();
            let of = |x: f32| {
                (0..n).fold(x, |y, i| match i {
                    i if i % 2 == 1 => y + 10.0 * i as f32,
                    0 => 2.0 * y,
                    2 => -y,
                    _ => y,
                })
            };
            assert_eq!(step.read(&y).unwrap(), [of(1.5), of(-1.0)], "{setup:?}, {n}");
            step.check_memory().unwrap();
        }
        assert!(rt.stats().recordings <= 2);
    }
}

/// Padded sizes keep their meaning in bodies and through them.
#[graphable]
fn padded(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
    #[host] p: &Scalar<bool>,
) -> Result<(Tensor<f32>, Tensor<u32>)> {
    let rows = ops::size(x, 0)?;
    let (y, count) = control::cond(
        p,
        || Ok::<_, Error>((ops::scale(x, 2.0)?, rows.clone())),
        || Ok((x.clone(), ops::add(&ops::size(x, 0)?, 100)?)),
    )?;
    let (y, _) = control::while_loop(
        9,
        (y, ops::full(x.scope(), (), 0u32)?),
        |(_, i)| ops::lt(i, &rows),
        |(y, i)| Ok::<_, Error>((ops::add(&y, 1.0)?, ops::add(&i, 1)?)),
    )?;
    Ok((y, count))
}

#[test]
fn padding_passes_through() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let graph = PaddedGraph::builder()
            .mode(setup.mode)
            .audit_every(setup.audit_every)
            .bucket("B", Schedule::new([4, 8]))
            .deny_fallback(true)
            .build(&mut rt)
            .unwrap();
        for (call, rows) in [3usize, 4, 1, 7, 2, 8, 3, 5].into_iter().enumerate() {
            let p = call % 2 == 0;
            let x: Vec<f32> = (0..2 * rows).map(|i| i as f32).collect();
            let step = rt.step().unwrap();
            let (y, count) = graph.call(&step, &x, p).unwrap();
            let factor = if p { 2.0 } else { 1.0 };
            let expected: Vec<f32> = x.iter().map(|x| factor * x + rows as f32).collect();
            assert_eq!(step.read(&y).unwrap(), expected, "{setup:?}, call {call}");
            let count = step.item(&count).unwrap() as usize;
            assert_eq!(count, if p { rows } else { rows + 100 });
        }
    }
}

#[test]
fn between_calls_and_in_regions() {
    let mut rt = crate::support::runtime();
    let step = rt.step().unwrap();
    let x = step.tensor([2], &[1.0f32, -1.0]).unwrap();
    for p in [true, false] {
        let pred = step.tensor((), &[p]).unwrap();
        let y = control::cond(&pred, || ops::scale(&x, 2.0), || Ok::<_, Error>(x.clone())).unwrap();
        assert_eq!(step.read(&y).unwrap(), if p { [2.0, -2.0] } else { [1.0, -1.0] });
    }
    let (n, i) = (step.tensor((), &[5u32]).unwrap(), step.tensor((), &[0u32]).unwrap());
    let (_, y) = control::while_loop(
        9,
        (i, x.clone()),
        |(i, _)| ops::lt(i, &n),
        |(i, y)| Ok::<_, Error>((ops::add(&i, 1)?, ops::scale(&y, 2.0)?)),
    )
    .unwrap();
    assert_eq!(step.read(&y).unwrap(), [32.0, -32.0]);
    step.check_memory().unwrap();
}

/// A region makes something, and branches of it.
#[graphable]
fn regional(
    #[host]
    #[dims(B)]
    x: &Tensor<f32>,
    #[host] p: &Scalar<bool>,
) -> Result<Tensor<f32>> {
    let h = ops::scale(x, 3.0)?;
    let y = #[eager]
    control::cond(p, || ops::neg(&h), || ops::add(&h, 1.0))?;
    ops::scale(&y, 2.0)
}

#[test]
fn regions_have_control_flow() {
    for setup in setups().into_iter().filter(|s| s.mode != Mode::Full) {
        let mut rt = setup.runtime();
        let graph = build!(RegionalGraph, setup, &mut rt);
        for call in 0..8 {
            let p = call % 3 == 0;
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[1.0, call as f32], p).unwrap();
            let of = |x: f32| 2.0 * if p { -3.0 * x } else { 3.0 * x + 1.0 };
            assert_eq!(step.read(&y).unwrap(), [of(1.0), of(call as f32)], "{setup:?}, call {call}");
            step.check_memory().unwrap();
        }
    }
}
