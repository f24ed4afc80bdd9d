//! Variables that arms assign and move, and of which later code needs no value: whatever way it goes, it assigns them first.
//! And others of which it needs one, since some way does not.

#![deny(warnings)]

use graphable::prelude::*;

fn taken(x: Tensor<'_, f32>) -> Result<Tensor<'_, f32>> {
    ops::scale(&x, 0.5)
}

/// Each statement replaces what the one before it has left.
#[graphable]
fn replaced(
    #[host] p: &Scalar<bool>,
    #[host] q: &Scalar<bool>,
    #[key] k: usize,
    #[host] #[dims(1)] x: &Tensor<f32>,
) -> Result<Vec<Tensor<f32>>> {
    let mut y = ops::neg(x)?;
    let mut z = x.clone();
    #[device]
    if p { z = taken(y)? } else { y = ops::add(&y, 1.0)?; z = ops::add(&y, &z)? }
    if k > 0 { y = ops::scale(x, 2.0)? } else { y = ops::scale(x, 3.0)? }
    let first = ops::add(&y, &z)?;
    #[device]
    if p { z = taken(y)? } else { y = ops::add(&y, 1.0)?; z = ops::add(&y, &z)? }
    match k {
        0 => y = ops::scale(x, 4.0)?,
        _ => { y = ops::scale(x, 5.0)?; }
    }
    let second = ops::add(&y, &z)?;
    #[device]
    if p { z = taken(y)? } else { y = ops::add(&y, 1.0)?; z = ops::add(&y, &z)? }
    (y, z) = (ops::scale(x, 6.0)?, ops::add(&z, 1.0)?);
    #[device]
    if q { z = taken(y)? } else { y = ops::add(&y, 1.0)?; z = ops::add(&y, &z)? }
    { let by = 7.0; y = ops::scale(x, by)?; }
    #[device]
    if p { z = taken(y)? } else { y = ops::add(&y, 1.0)?; z = ops::add(&y, &z)? }
    #[device]
    if q { y = ops::scale(x, 8.0)? } else { y = z.clone() }
    for i in 0..3 {
        if i % 2 == 0 { y = ops::add(&z, &y)? } else { y = ops::add(&z, 2.0)? }
        #[device]
        if p { z = ops::neg(&y)? } else { y = ops::add(&y, 1.0)?; z = ops::add(&y, &z)? }
    }
    for i in 0..3 {
        if i % 2 == 0 { y = ops::scale(&z, 2.0)? } else { y = ops::add(&z, 2.0)? }
        #[device]
        if p { z = taken(y)? } else { y = ops::add(&y, 1.0)?; z = ops::add(&y, &z)? }
    }
    Ok(vec![first, second, z])
}

fn replaced_on_the_host(p: bool, q: bool, k: usize, x: f32) -> Vec<f32> {
    let step = |p: bool, y: f32, z: f32| if p { y * 0.5 } else { y + 1.0 + z };
    let z = step(p, -x, x);
    let y = x * if k > 0 { 2.0 } else { 3.0 };
    let first = y + z;
    let z = step(p, y, z);
    let y = x * if k > 0 { 5.0 } else { 4.0 };
    let second = y + z;
    let z = step(p, y, z) + 1.0;
    let z = step(q, x * 6.0, z);
    let mut z = step(p, x * 7.0, z);
    let mut y = if q { x * 8.0 } else { z };
    for i in 0..3 {
        y = z + if i % 2 == 0 { y } else { 2.0 };
        if p { z = -y } else { y += 1.0; z += y }
    }
    for i in 0..3 {
        z = step(p, if i % 2 == 0 { z * 2.0 } else { z + 2.0 }, z);
    }
    vec![first, second, z]
}

/// Some way leaves the value of the arms as it is.
#[graphable]
fn kept(
    #[host] p: &Scalar<bool>,
    #[host] q: &Scalar<bool>,
    #[key] k: usize,
    #[host] #[dims(1)] x: &Tensor<f32>,
) -> Result<Vec<Tensor<f32>>> {
    let mut y = ops::neg(x)?;
    let mut z = x.clone();
    #[device]
    if p { z = taken(y.clone())? } else { y = ops::add(&y, 1.0)? }
    if k > 0 { y = ops::scale(x, 2.0)? }
    #[device]
    if p { y = ops::add(&y, &z)? } else { z = taken(y.clone())? }
    match k {
        0 => y = ops::scale(&y, 3.0)?,
        1 => y = ops::scale(x, 4.0)?,
        _ => {}
    }
    #[device]
    if q { y = ops::add(&y, &z)?; z = taken(y.clone())? }
    #[device]
    if p { y = ops::neg(&y)? }
    for i in 0..k { y = ops::add(&z, i as f32)? }
    Ok(vec![y, z])
}

fn kept_on_the_host(p: bool, q: bool, k: usize, x: f32) -> Vec<f32> {
    let (mut y, mut z) = (-x, x);
    if p { z = y * 0.5 } else { y += 1.0 }
    if k > 0 { y = x * 2.0 }
    if p { y += z } else { z = y * 0.5 }
    match k {
        0 => y *= 3.0,
        1 => y = x * 4.0,
        _ => {}
    }
    if q { y += z; z = y * 0.5 }
    if p { y = -y }
    for i in 0..k { y = z + i as f32 }
    vec![y, z]
}

/// Variables that are assigned in the block of the arm, before the code around it reads them; and one that a jump leaves as the
/// arms made it.
#[graphable]
fn in_blocks(
    #[host] p: &Scalar<bool>,
    #[host] q: &Scalar<bool>,
    #[key] k: usize,
    #[host] #[dims(1)] x: &Tensor<f32>,
) -> Result<Vec<Tensor<f32>>> {
    let mut y = ops::neg(x)?;
    let mut z = x.clone();
    {
        #[device]
        if q { y = ops::add(&y, 1.0)?; z = taken(y)? }
        y = ops::add(x, 0.5)?;
    }
    if k > 0 {
        #[device]
        if p { y = ops::add(&y, &z)?; z = taken(y)? }
        y = ops::add(x, 0.25)?;
    }
    #[device]
    if p {
        #[device]
        if q { y = ops::add(&y, 3.0)?; z = ops::add(&z, &taken(y)?)? }
        y = ops::add(x, 2.0)?;
    }
    for i in 0..3 {
        #[device]
        if q { y = ops::add(&y, &z)?; z = taken(y.clone())? }
        if i == k { break }
        y = ops::scale(x, i as f32)?;
    }
    for _ in 0..k {
        #[device]
        if p { y = ops::add(&y, 1.0)?; z = ops::add(&z, &taken(y)?)? }
        y = ops::scale(&z, 0.5)?;
    }
    // The statement of the arms may itself leave them to the code after the loop.
    for i in 0..3 {
        if small(&(#[device] if q { taken(y.clone())? } else { y = ops::add(&y, 1.0)?; z.clone() }), i, k) { break }
        y = ops::scale(x, 2.0)?;
    }
    Ok(vec![y, z])
}

fn small(_: &Tensor<'_, f32>, i: usize, k: usize) -> bool {
    i == k
}

fn in_blocks_on_the_host(p: bool, q: bool, k: usize, x: f32) -> Vec<f32> {
    let (mut y, mut z) = (-x, x);
    if q { z = (y + 1.0) * 0.5 }
    y = x + 0.5;
    if k > 0 {
        if p { z = (y + z) * 0.5 }
        y = x + 0.25;
    }
    if p {
        if q { z += (y + 3.0) * 0.5 }
        y = x + 2.0;
    }
    for i in 0..3 {
        if q { y += z; z = y * 0.5 }
        if i == k { break }
        y = x * i as f32;
    }
    for _ in 0..k {
        if p { z += (y + 1.0) * 0.5 }
        y = z * 0.5;
    }
    for i in 0..3 {
        if !q { y += 1.0 }
        if i == k { break }
        y = x * 2.0;
    }
    vec![y, z]
}

/// Variables of each round alone, declared around the loop with and without a value.
#[graphable]
fn rounds(
    #[host] n: &Scalar<i32>,
    #[host] q: &Scalar<bool>,
    #[host] #[dims(1)] x: &Tensor<f32>,
) -> Result<Vec<Tensor<f32>>> {
    let mut y = ops::neg(x)?;
    let mut round;
    let mut own;
    // As in Rust, nothing reads this value.
    #[allow(unused_assignments)]
    let mut half = x.clone();
    let mut last = x.clone();
    let mut i = ops::zeros(x.scope(), ())?;
    #[device(limit = 9)]
    while ops::lt(&i, n)? {
        i = ops::add(&i, 1)?;
        round = ops::scale(&y, 3.0)?;
        own = ops::add(&round, 1.0)?;
        #[device]
        if q { own = ops::neg(&own)?; last = own } else { last = ops::neg(&round)? }
        half = ops::scale(&round, 0.25)?;
        y = taken(round)?;
        y = ops::add(&y, &taken(half)?)?;
    }
    #[device(limit = 9)]
    while ops::gt(&i, 0)? {
        i = ops::sub(&i, 1)?;
        last = ops::add(&last, &y)?;
    }
    Ok(vec![y, last])
}

fn rounds_on_the_host(n: i32, q: bool, x: f32) -> Vec<f32> {
    let (mut y, mut last) = (-x, x);
    for _ in 0..n {
        let round = y * 3.0;
        last = if q { -(round + 1.0) } else { -round };
        y = round * 0.5 + round * 0.25 * 0.5;
    }
    for _ in 0..n { last += y }
    vec![y, last]
}

/// A `let` in a condition is in scope in the rest of it, whatever else has its name.
#[graphable]
fn chains(#[host] p: &Scalar<bool>, #[key] k: u32, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut y = x.clone();
    let mut many = if k > 0 { Some(k as f32) } else { None };
    let s = ops::neg(x)?;
    if let Some(s) = many && s > 1.0 {
        y = ops::add(&y, s)?;
    }
    let by = |n: f32| if let Some(s) = many && s > 1.0 { s } else { n };
    #[device]
    if p {
        if let Some(s) = many && s > 1.0 { y = ops::add(&y, s)? }
    } else {
        y = ops::scale(&s, by(-1.0))?;
    }
    while let Some(s) = many && s > 0.0 {
        y = ops::scale(&y, s)?;
        many = Some(s - 1.0);
    }
    ops::add(&y, &s)
}

fn chains_on_the_host(p: bool, k: u32, x: f32) -> f32 {
    let s = k as f32;
    let mut y = if k > 1 { x + s } else { x };
    y = if p { if k > 1 { y + s } else { y } } else if k > 1 { -x * s } else { x };
    for i in 1..=k { y *= i as f32 }
    y - x
}

fn refused(k: usize) -> Result<()> {
    if k == 1 { Err(graphable::Error::Argument { op: "refused", reason: "k is 1".into() }) } else { Ok(()) }
}

/// An error leaves the closure, and not the function: what the arms gave `held` is then used behind it.
#[graphable]
fn left_by_an_error(
    #[host] p: &Scalar<bool>,
    #[key] k: usize,
    #[host] #[dims(1)] x: &Tensor<f32>,
) -> Result<Vec<Tensor<f32>>> {
    let mut held = Some(x.clone());
    let mut z = x.clone();
    let mut round = |k: usize| -> Result<()> {
        #[device]
        if p {
            if let Some(ref t) = held { z = ops::add(&z, t)? }
            held = Some(ops::scale(&z, 2.0)?);
        } else {
            z = ops::add(&z, 1.0)?;
        }
        refused(k)?;
        held = Some(ops::neg(x)?);
        Ok(())
    };
    let failed = round(k).is_err();
    let round = 5.0;
    z = ops::add(&z, if failed { round } else { 0.0 })?;
    if let Some(t) = &held { z = ops::sub(&z, t)? }
    Ok(vec![z])
}

fn left_by_an_error_on_the_host(p: bool, k: usize, x: f32) -> Vec<f32> {
    let (mut held, mut z) = (x, x);
    if p { z += held; held = z * 2.0 } else { z += 1.0 }
    if k == 1 { z += 5.0 } else { held = -x }
    vec![z - held]
}

/// A way that leaves the function needs no value, unless it uses it.
#[graphable]
fn returned(
    #[host] p: &Scalar<bool>,
    #[host] q: &Scalar<bool>,
    #[key] k: usize,
    #[host] #[dims(1)] x: &Tensor<f32>,
) -> Result<Vec<Tensor<f32>>> {
    let mut y = ops::neg(x)?;
    let mut z = x.clone();
    #[device]
    if p { z = taken(y)? } else { y = ops::add(&y, 1.0)?; z = ops::add(&y, &z)? }
    match k {
        0 => y = ops::scale(x, 4.0)?,
        1 => return Ok(vec![z]),
        _ => { y = ops::scale(x, 5.0)?; }
    }
    #[device]
    if q { z = ops::add(&z, &taken(y)?)? } else { y = ops::add(&y, 1.0)?; z = ops::add(&y, &z)? }
    if k == 0 { y = ops::scale(&z, 2.0)? } else if k == 2 { return Ok(vec![z]) } else { y = ops::scale(&z, 3.0)? }
    for i in 0..3 {
        #[device]
        if q { z = ops::add(&z, &taken(y)?)? } else { y = ops::add(&y, 1.0)?; z = ops::add(&y, &z)? }
        match i {
            2 => return Ok(vec![z]),
            _ => y = ops::scale(&z, 3.0)?,
        }
    }
    Ok(vec![y, z])
}

fn returned_on_the_host(p: bool, q: bool, k: usize, x: f32) -> Vec<f32> {
    let step = |p: bool, y: f32, z: f32| if p { y * 0.5 } else { y + 1.0 + z };
    let z = step(p, -x, x);
    if k == 1 { return vec![z] }
    let y = x * if k == 0 { 4.0 } else { 5.0 };
    let mut z = if q { z + y * 0.5 } else { y + 1.0 + z };
    if k == 2 { return vec![z] }
    let mut y = z * if k == 0 { 2.0 } else { 3.0 };
    for i in 0..3 {
        z = if q { z + y * 0.5 } else { y + 1.0 + z };
        if i == 2 { return vec![z] }
        y = z * 3.0;
    }
    vec![]
}

/// So does one that leaves the function by control flow of its own.
#[graphable]
fn left_in_many_ways(
    #[host] p: &Scalar<bool>,
    #[host] q: &Scalar<bool>,
    #[key] k: usize,
    #[host] #[dims(1)] x: &Tensor<f32>,
) -> Result<Vec<Tensor<f32>>> {
    let mut y = ops::neg(x)?;
    let mut z = x.clone();
    #[device]
    if p { z = taken(y)? } else { y = ops::add(&y, 1.0)?; z = ops::add(&y, &z)? }
    match k {
        0 | 3 => y = ops::scale(x, 4.0)?,
        1 => {
            let mut n = 0;
            loop {
                n += 1;
                if n < 3 { continue }
                return Ok(vec![ops::scale(&z, n as f32)?]);
            }
        }
        _ => { y = ops::scale(x, 5.0)?; }
    }
    #[device]
    if q { z = ops::add(&z, &taken(y)?)? } else { y = ops::add(&y, 1.0)?; z = ops::add(&y, &z)? }
    if k == 0 {
        y = ops::scale(&z, 2.0)?;
    } else if k == 2 {
        if x.rank() == 1 { return Ok(vec![z]) } else { panic!("{k}") }
    } else {
        match k {
            3 => return Ok(vec![z.clone(), z]),
            _ => unreachable!(),
        }
    }
    Ok(vec![y, z])
}

fn left_in_many_ways_on_the_host(p: bool, q: bool, k: usize, x: f32) -> Vec<f32> {
    let z = if p { x * -0.5 } else { 1.0 - x + x };
    if k == 1 { return vec![z * 3.0] }
    let y = x * if k == 2 { 5.0 } else { 4.0 };
    let z = if q { z + y * 0.5 } else { y + 1.0 + z };
    match k {
        0 => vec![z * 2.0, z],
        2 => vec![z],
        _ => vec![z, z],
    }
}

/// A loop that ends before the function does, and a way that uses the variable, need what the arms gave it.
#[graphable]
fn left_or_not(#[host] p: &Scalar<bool>, #[key] k: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Vec<Tensor<f32>>> {
    let mut y = ops::neg(x)?;
    let mut z = x.clone();
    #[device]
    if p { z = taken(y.clone())? } else { y = ops::add(&y, 1.0)? }
    match k {
        0 => y = ops::scale(x, 4.0)?,
        1 => loop {
            if x.rank() == 1 { break }
            return Ok(vec![z]);
        },
        2 => { if x.rank() == 1 { return Ok(vec![y]) } else { return Ok(vec![z]) } }
        _ => 'a: loop {
            loop { break 'a }
        },
    }
    Ok(vec![y, z])
}

fn left_or_not_on_the_host(p: bool, k: usize, x: f32) -> Vec<f32> {
    let (y, z) = if p { (-x, x * -0.5) } else { (1.0 - x, x) };
    match k {
        0 => vec![x * 4.0, z],
        2 => vec![y],
        _ => vec![y, z],
    }
}

/// One that uses it gets what the arms gave it.
#[graphable]
fn returned_itself(
    #[host] p: &Scalar<bool>,
    #[key] k: usize,
    #[host] #[dims(1)] x: &Tensor<f32>,
) -> Result<Vec<Tensor<f32>>> {
    let mut y = ops::neg(x)?;
    let mut z = x.clone();
    #[device]
    if p { z = taken(y.clone())? } else { y = ops::add(&y, 1.0)? }
    match k {
        0 => y = ops::scale(x, 4.0)?,
        1 => return Ok(vec![y]),
        _ => { y = ops::scale(x, 5.0)?; }
    }
    let mut round = |k: usize| -> Result<usize> {
        #[device]
        if p { z = ops::add(&z, &y)?; } else { y = ops::add(&z, 1.0)?; }
        match k {
            0 => return Ok(7),
            _ => y = ops::scale(x, 2.0)?,
        }
        Ok(9)
    };
    let n = round(k)?;
    y = ops::add(&y, n as f32)?;
    Ok(vec![y, z])
}

fn returned_itself_on_the_host(p: bool, k: usize, x: f32) -> Vec<f32> {
    let (mut y, mut z) = (-x, x);
    if p { z = y * 0.5 } else { y += 1.0 }
    match k {
        0 => y = x * 4.0,
        1 => return vec![y],
        _ => y = x * 5.0,
    }
    if p { z += y } else { y = z + 1.0 }
    if k == 0 { vec![y + 7.0, z] } else { vec![x * 2.0 + 9.0, z] }
}

fn main() -> Result<()> {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(Device::cpu())?;
        let replaced = ReplacedGraph::builder().mode(mode).build(&mut rt)?;
        let kept = KeptGraph::builder().mode(mode).build(&mut rt)?;
        let in_blocks = InBlocksGraph::builder().mode(mode).build(&mut rt)?;
        let returned = ReturnedGraph::builder().mode(mode).build(&mut rt)?;
        let returned_itself = ReturnedItselfGraph::builder().mode(mode).build(&mut rt)?;
        let left_in_many_ways = LeftInManyWaysGraph::builder().mode(mode).build(&mut rt)?;
        let left_or_not = LeftOrNotGraph::builder().mode(mode).build(&mut rt)?;
        let left_by_an_error = LeftByAnErrorGraph::builder().mode(mode).build(&mut rt)?;
        let rounds = RoundsGraph::builder().mode(mode).build(&mut rt)?;
        let chains = ChainsGraph::builder().mode(mode).build(&mut rt)?;
        for at in 0..32 {
            let (p, q, k, x) = (at % 2 == 0, at / 2 % 2 == 0, at / 4 % 3, 1.0 + at as f32);
            let (n, by) = (i32::try_from(k).unwrap(), u32::try_from(k).unwrap());
            let step = rt.step()?;
            let values = |all: Vec<Tensor<'_, f32>>| -> Result<Vec<f32>> {
                all.iter().map(|t| Ok(step.read(t)?[0])).collect()
            };
            let got = values(replaced.call(&step, p, q, k, &[x])?)?;
            assert_eq!(got, replaced_on_the_host(p, q, k, x), "replaced {mode} {at}");
            let got = values(kept.call(&step, p, q, k, &[x])?)?;
            assert_eq!(got, kept_on_the_host(p, q, k, x), "kept {mode} {at}");
            let got = values(in_blocks.call(&step, p, q, k, &[x])?)?;
            assert_eq!(got, in_blocks_on_the_host(p, q, k, x), "in_blocks {mode} {at}");
            let got = values(returned.call(&step, p, q, k, &[x])?)?;
            assert_eq!(got, returned_on_the_host(p, q, k, x), "returned {mode} {at}");
            let got = values(returned_itself.call(&step, p, k, &[x])?)?;
            assert_eq!(got, returned_itself_on_the_host(p, k, x), "returned_itself {mode} {at}");
            let m = at / 4 % 4;
            let got = values(left_in_many_ways.call(&step, p, q, m, &[x])?)?;
            assert_eq!(got, left_in_many_ways_on_the_host(p, q, m, x), "left_in_many_ways {mode} {at}");
            let got = values(left_or_not.call(&step, p, m, &[x])?)?;
            assert_eq!(got, left_or_not_on_the_host(p, m, x), "left_or_not {mode} {at}");
            let got = values(left_by_an_error.call(&step, p, k, &[x])?)?;
            assert_eq!(got, left_by_an_error_on_the_host(p, k, x), "left_by_an_error {mode} {at}");
            let got = values(rounds.call(&step, n, q, &[x])?)?;
            assert_eq!(got, rounds_on_the_host(n, q, x), "rounds {mode} {at}");
            let got = step.read(&chains.call(&step, p, by, &[x])?)?[0];
            assert_eq!(got, chains_on_the_host(p, by, x), "chains {mode} {at}");
        }
    }
    Ok(())
}
