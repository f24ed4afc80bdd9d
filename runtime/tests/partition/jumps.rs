//! Jumps out of segments, and user error types.

use graphable::{graphable, prelude::*};

use crate::support::{Model, attention, check, model, runtime};

#[graphable]
fn skips(x: &Tensor<f32>, model: &Model, #[key] skip: usize) -> Result<Tensor<f32>> {
    let mut h = x.clone();
    'outer: for l in &model.layers {
        let a = #[eager]
        attention(&h)?;
        if skip == 1 {
            h = ops::mul(&h, &l.b)?;
            continue 'outer;
        }
        let Some(first) = model.layers.first() else { return Ok(h) };
        h = ops::mul(&a, &first.a)?;
        if skip == 2 {
            return ops::scale(&h, 100.0);
        }
        if skip == 3 {
            break;
        }
    }
    Ok(h)
}

#[test]
fn continue_break_return() {
    for (skip, expected) in [(0, 4.0), (1, 15.0), (2, 200.0), (3, 2.0)] {
        check!(
            SkipsGraph,
            |rt| model(&rt),
            |g, step, m, n| {
                let x = step.tensor(&[1], &[1.0]).unwrap();
                g.call(&step, &x, &m, skip)
            },
            vec![expected]
        );
    }
}

/// A value read in an eager region steers the host code.
#[graphable]
fn until(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut h = ops::scale(x, 1.0)?;
    let mut turns = 0;
    loop {
        h = ops::scale(&h, 3.0)?;
        let big = #[eager(cx)]
        {
            turns += 1;
            if turns > 50 {
                return Err(Error::Argument { op: "until", reason: "does not grow".into() });
            }
            cx.item(&h)? > 100.0
        };
        if big {
            break;
        }
    }
    ops::neg(&h)
}

#[test]
fn data_steers_the_driver() {
    check!(
        UntilGraph,
        |rt| (),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            g.call(&step, &x)
        },
        vec![-243.0]
    );
    let mut rt = runtime();
    let g = UntilGraph::builder().build(&mut rt).unwrap();
    for turn in 0..4 {
        for (v, expected) in [(1.0, -243.0), (30.0, -270.0), (2.0, -162.0)] {
            let step = rt.step().unwrap();
            let x = step.tensor(&[1], &[v]).unwrap();
            assert_eq!(step.read(&g.call(&step, &x).unwrap()).unwrap(), [expected], "turn {turn}");
        }
    }
    let step = rt.step().unwrap();
    let x = step.tensor(&[1], &[0.0]).unwrap();
    assert!(matches!(g.call(&step, &x), Err(Error::Argument { op: "until", .. })));
    drop(x);
    // An error out of a region leaves everything usable.
    let step = rt.step().unwrap();
    let x = step.tensor(&[1], &[1.0]).unwrap();
    assert_eq!(step.read(&g.call(&step, &x).unwrap()).unwrap(), [-243.0]);
}

#[derive(Debug)]
enum MyError {
    Graph(Error),
    Config(std::num::ParseIntError),
}

impl From<Error> for MyError {
    fn from(e: Error) -> Self {
        Self::Graph(e)
    }
}

impl From<std::num::ParseIntError> for MyError {
    fn from(e: std::num::ParseIntError) -> Self {
        Self::Config(e)
    }
}

#[graphable]
fn own_error(x: &Tensor<f32>, #[key] n: String) -> Result<Tensor<f32>, MyError> {
    let y = #[eager]
    attention(x)?;
    let n: usize = n.parse()?;
    if n > 5 {
        return Err(MyError::Graph(Error::Argument { op: "own_error", reason: "too many".into() }));
    }
    let y = ops::scale(&y, n as f32)?;
    Ok(y)
}

#[test]
fn errors_of_the_users_own_type() {
    check!(
        OwnErrorGraph,
        |rt| (),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            g.call(&step, &x, "4".to_owned())
        },
        vec![4.0]
    );
    let mut rt = runtime();
    let g = OwnErrorGraph::builder().build(&mut rt).unwrap();
    for _ in 0..4 {
        for (text, good) in [("x", false), ("4", true), ("9", false)] {
            let step = rt.step().unwrap();
            let x = step.tensor(&[1], &[1.0]).unwrap();
            match (g.call(&step, &x, text.to_owned()), text) {
                (Ok(y), "4") => assert_eq!(step.read(&y).unwrap(), [4.0]),
                (Err(MyError::Config(e)), "x") => assert_eq!(e.kind(), &std::num::IntErrorKind::InvalidDigit),
                (Err(MyError::Graph(Error::Argument { .. })), "9") => {}
                (other, _) => panic!("{text} (good: {good}): {other:?}"),
            }
        }
    }
}
