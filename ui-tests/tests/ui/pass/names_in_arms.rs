//! Names in arms: variables of their own that have names of others, closures over what they assign, and variables that are
//! assigned anew afterwards.

#![deny(warnings)]

use graphable::prelude::*;

fn taken(x: Tensor<'_, f32>) -> Result<Tensor<'_, f32>> {
    ops::scale(&x, 0.5)
}

/// Variables of arms, which the variables around have nothing to do with.
#[graphable]
fn own(#[host] p: &Scalar<bool>, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Vec<Tensor<f32>>> {
    let d = vec![x.clone(), ops::neg(x)?];
    let mut y = x.clone();
    #[device]
    if p {
        y = ops::add(&d[0], d.len() as f32)?;
        let mut d = (2usize, 1.0f32);
        d.0 += 2;
        y = ops::add(&y, d.0 as f32 + d.1)?;
    }
    #[device]
    if p {
        y = ops::add(&y, d.first().map_or(0, |t| t.rank()) as f32)?;
        let mut d = vec![1.0f32, 2.0];
        d[0] = 3.0;
        y = ops::add(&y, d[0] + d[1])?;
    }
    #[device]
    if p {
        y = ops::add(&y, d.len() as f32)?;
        for d in [ops::neg(x)?].iter_mut() {
            *d = ops::add(&*d, 1.0)?;
            y = ops::add(&y, &*d)?;
        }
        let shifted = |d: (f32, f32)| {
            let mut d = d;
            d.0 += d.1;
            d.0
        };
        y = ops::add(&y, shifted((1.0, 2.0)))?;
    }
    Ok(vec![y, d[1].clone()])
}

/// A closure sees the value that its variable has where it is called.
#[graphable]
fn closures(#[host] p: &Scalar<bool>, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Vec<Tensor<f32>>> {
    let mut y = ops::neg(x)?;
    let mut z = x.clone();
    let shifted = |by: f32| ops::add(&y, by);
    let negated = || ops::neg(&z);
    #[device]
    if p {
        y = shifted(1.0)?;
        z = negated()?;
    } else {
        y = shifted(2.0)?;
    }
    let moved = y.clone();
    let w = x.clone();
    #[device]
    if p {
        let added = move || ops::add(&moved, &w);
        z = ops::add(&z, &added()?)?;
    }
    let plus = |v| ops::add(v, 1.0);
    macro_rules! incremented {
        ($of:expr) => {
            plus($of)?
        };
    }
    #[device]
    if p {
        z = plus(&z)?;
    }
    Ok(vec![y, incremented!(&z)])
}

/// What an arm assigns and moves does not leave it where later code only replaces it.
#[graphable]
fn replaced(#[host] p: &Scalar<bool>, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Vec<Tensor<f32>>> {
    let mut y = ops::scale(x, 3.0)?;
    let mut z;
    #[device]
    if p {
        y = ops::add(&y, 1.0)?;
        z = taken(y)?;
    } else {
        z = ops::neg(&y)?;
    }
    y = ops::scale(&z, 2.0)?;
    let mut turn;
    for i in 0..2 {
        turn = ops::add(&z, i as f32)?;
        #[device]
        if p {
            turn = ops::add(&turn, 1.0)?;
            z = taken(turn)?;
        } else {
            z = ops::neg(&turn)?;
        }
        turn = ops::add(&z, &y)?;
        y = turn;
    }
    Ok(vec![y, z])
}

/// The same on the host.
fn plain(p: bool, x: f32) -> Vec<f32> {
    let mut own = x;
    if p {
        // 2 + (4 + 1) + 1 + (3 + 2) + 2 + (1 - x) + (1 + 2)
        own = x + 18.0 + (1.0 - x);
    }
    let (y, mut z) = if p { (-x + 1.0, -x) } else { (-x + 2.0, x) };
    if p {
        z += y + x;
        z += 1.0;
    }
    let mut all = vec![own, -x, y, z + 1.0];
    let y = 3.0 * x;
    let mut z = if p { (y + 1.0) * 0.5 } else { -y };
    let mut y = z * 2.0;
    for i in 0..2 {
        let turn = z + i as f32;
        z = if p { (turn + 1.0) * 0.5 } else { -turn };
        y += z;
    }
    all.extend([y, z]);
    all
}

fn main() -> Result<()> {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(Device::cpu())?;
        let own = OwnGraph::builder().mode(mode).build(&mut rt)?;
        let closures = ClosuresGraph::builder().mode(mode).build(&mut rt)?;
        let replaced = ReplacedGraph::builder().mode(mode).build(&mut rt)?;
        for (p, x) in [(true, 1.0), (false, 1.0), (true, 2.0), (false, 3.0), (true, 1.0)] {
            let step = rt.step()?;
            let mut y = own.call(&step, p, &[x])?;
            y.extend(closures.call(&step, p, &[x])?);
            y.extend(replaced.call(&step, p, &[x])?);
            let y: Vec<f32> = y.iter().map(|t| Ok(step.read(t)?[0])).collect::<Result<_>>()?;
            assert_eq!(y, plain(p, x), "{mode} {p} {x}");
        }
    }
    Ok(())
}
