//! Closures whose parameters have no types, which arms call with variables of their own: each such arm makes its own, also where
//! a name that they use, or their own, means something else nearby.

use graphable::prelude::*;

use crate::support::{build, setups};

fn scaled<'s>(x: &Tensor<'s, f32>, by: f32) -> Result<Tensor<'s, f32>> {
    ops::scale(x, by)
}

/// Their names are taken in the arms, in blocks around them and in other branches, by closures, tensors and constants.
#[graphable]
fn taken_names(
    #[host]
    #[dims(2)]
    x: &Tensor<f32>,
    #[host] q: &Scalar<i32>,
    #[key] n: usize,
) -> Result<Tensor<f32>> {
    let f = |v| scaled(v, 2.0);
    let g = |v| f(v);
    let mut h = ops::neg(x)?;
    let u = g(x)?;
    if n > 1 {
        let f = ops::add(&u, 1.0)?;
        #[device]
        if ops::gt(q, 1)? {
            h = ops::add(&f, &u)?;
        }
    } else {
        const N: f32 = 5.0;
        let v = f(&u)?;
        #[device]
        if ops::gt(q, 1)? {
            let w = f(&v)?;
            let f = |v| scaled(v, 3.0);
            let w = f(&w)?;
            h = f(&w)?;
        } else if ops::gt(q, 0)? {
            let w = ops::neg(&v)?;
            let w = f(&w)?;
            h = {
                let f = scaled(&w, N)?;
                ops::add(&f, &h)?
            };
        }
    }
    #[eager(support = Always)]
    ops::add(&h, &u)
}

fn taken_names_by_hand(x: f32, q: i32, n: usize) -> f32 {
    let u = 2.0 * x;
    let h = match (n > 1, q) {
        (true, 2..) => 2.0 * u + 1.0,
        (false, 2..) => u * 2.0 * 2.0 * 3.0 * 3.0,
        (false, 1) => -(u * 2.0) * 2.0 * 5.0 - x,
        _ => -x,
    };
    h + u
}

/// Loops, patterns and functions take the names, around arms and in them.
#[graphable]
fn on_the_way(
    #[host]
    #[dims(2)]
    x: &Tensor<f32>,
    #[host] q: &Scalar<i32>,
    #[key] n: usize,
) -> Result<Tensor<f32>> {
    let y = ops::add(x, 1.0)?;
    let f = |v| ops::add(v, &y);
    let mut h = ops::neg(x)?;
    for y in 0..n {
        if let Some(f) = (y == 1).then(|| h.clone()) {
            #[device]
            if ops::gt(q, 0)? {
                h = ops::add(&f, &f)?;
            }
        }
        h = #[eager(support = Always)]
        ops::scale(&h, 0.5)?;
    }
    {
        fn scaled<'s>(x: &Tensor<'s, f32>, by: f32) -> Result<Tensor<'s, f32>> {
            ops::scale(x, -by)
        }
        #[device]
        match q {
            0 => {
                let w = f(&h)?;
                let w = f(&w)?;
                h = scaled(&w, 2.0)?;
            }
            1 => {
                let y = scaled(&h, 1.0)?;
                h = f(&y)?;
            }
            _ => h = f(&h)?,
        }
    }
    Ok(h)
}

fn on_the_way_by_hand(x: f32, q: i32, n: usize) -> f32 {
    let (y, mut h) = (x + 1.0, -x);
    for i in 0..n {
        if i == 1 && q > 0 {
            h += h;
        }
        h *= 0.5;
    }
    match q {
        0 => -2.0 * (h + y + y),
        1 => -h + y,
        _ => h + y,
    }
}

/// What closures capture is shadowed before the arms that call them: a tensor, a number, another closure, and in an arm.
#[graphable]
fn shadowed(
    #[host]
    #[dims(2)]
    x: &Tensor<f32>,
    #[host] q: &Scalar<i32>,
    #[key] n: usize,
) -> Result<Tensor<f32>> {
    let y = ops::add(x, 1.0)?;
    let by = n as f32;
    let f = |v| ops::add(v, &y);
    let g = |v| scaled(&f(v)?, by);
    let mut h = f(x)?;
    let y = ops::neg(&h)?;
    let by = ops::add(&y, by)?;
    let f = |v| ops::sub(v, &y);
    #[device]
    if ops::gt(q, 0)? {
        let w = ops::add(&by, &h)?;
        let y = g(&w)?;
        h = f(&y)?;
    }
    #[eager(support = Always)]
    ops::add(&h, &y)
}

/// The same in one segment.
#[graphable]
fn shadowed_in_one(
    #[host]
    #[dims(2)]
    x: &Tensor<f32>,
    #[host] q: &Scalar<i32>,
    #[key] n: usize,
) -> Result<Tensor<f32>> {
    let y = ops::add(x, 1.0)?;
    let by = n as f32;
    let f = |v| ops::add(v, &y);
    let g = |v| scaled(&f(v)?, by);
    let mut h = f(x)?;
    let y = ops::neg(&h)?;
    let by = ops::add(&y, by)?;
    let f = |v| ops::sub(v, &y);
    #[device]
    match q {
        0 => {}
        _ => {
            let w = ops::add(&by, &h)?;
            let y = g(&w)?;
            h = f(&y)?;
        }
    }
    ops::add(&h, &y)
}

fn shadowed_by_hand(x: f32, q: i32, n: usize) -> f32 {
    let (before, by) = (x + 1.0, n as f32);
    let h = x + before;
    let y = -h;
    let h = if q > 0 { (y + by + h + before) * by - y } else { h };
    h + y
}

#[test]
fn arms_make_closures_whose_captures_are_shadowed() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let shadowed = build!(ShadowedGraph, setup, &mut rt);
        let in_one = build!(ShadowedInOneGraph, setup, &mut rt);
        for turn in 0..4 {
            for (q, n) in [(0, 1), (1, 1), (0, 2), (1, 2)] {
                let step = rt.step().unwrap();
                let x = [turn as f32, 0.5];
                let expected = x.map(|x| shadowed_by_hand(x, q, n));
                let y = shadowed.call(&step, &x, q, n).unwrap();
                assert_eq!(step.read(&y).unwrap(), expected, "{setup:?} {q} {n}");
                let y = in_one.call(&step, &x, q, n).unwrap();
                assert_eq!(step.read(&y).unwrap(), expected, "{setup:?} {q} {n}");
            }
        }
    }
}

#[test]
fn each_arm_makes_the_closures_that_it_calls() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let taken = build!(TakenNamesGraph, setup, &mut rt);
        let on_the_way = build!(OnTheWayGraph, setup, &mut rt);
        for turn in 0..4 {
            for (q, n) in [(0, 1), (1, 1), (2, 1), (0, 2), (1, 2), (2, 2)] {
                let step = rt.step().unwrap();
                let x = [turn as f32, 0.5];
                let y = taken.call(&step, &x, q, n).unwrap();
                assert_eq!(
                    step.read(&y).unwrap(),
                    x.map(|x| taken_names_by_hand(x, q, n)),
                    "{setup:?} {q} {n}"
                );
                let y = on_the_way.call(&step, &x, q, n).unwrap();
                assert_eq!(
                    step.read(&y).unwrap(),
                    x.map(|x| on_the_way_by_hand(x, q, n)),
                    "{setup:?} {q} {n}"
                );
            }
        }
    }
}
