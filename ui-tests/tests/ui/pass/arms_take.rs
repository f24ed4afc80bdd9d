//! Variables without a value that arms of the device assign and move: they do not leave the arms.

#![deny(warnings)]

use graphable::prelude::*;

fn keep(x: Tensor<'_, f32>) -> Tensor<'_, f32> {
    x
}

fn take<'s>(list: &mut Vec<Tensor<'s, f32>>, x: Tensor<'s, f32>) {
    list.push(x);
}

/// Declared with and without a type, with `mut`, in tuples, and moved by all arms or by one.
#[graphable]
fn moved(x: &Tensor<f32>, #[host] q: &Scalar<i32>) -> Result<Tensor<f32>> {
    let h;
    let mut y = #[eager(support = Always)]
    ops::scale(x, 1.0)?;
    #[device]
    if ops::gt(q, 0)? {
        h = ops::scale(&y, 2.0)?;
        y = keep(h);
    } else {
        h = ops::scale(&y, 3.0)?;
        y = keep(h);
    }
    let (a, mut b): (Tensor<f32>, _);
    #[device]
    match q {
        0 => {
            (a, b) = (ops::neg(&y)?, ops::neg(&y)?);
            y = ops::sub(&a, &keep(b))?;
        }
        1 => {
            (a, b) = (ops::scale(&y, 5.0)?, ops::neg(&y)?);
            b = ops::scale(&b, 2.0)?;
            y = ops::add(&keep(a), &b)?;
        }
        _ => {
            a = ops::scale(&y, 7.0)?;
            b = keep(a);
            let mut list = Vec::new();
            take(&mut list, b);
            y = ops::neg(&list[0])?;
        }
    }
    let turned = #[eager(support = Always)]
    ops::neg(&y)?;
    for _ in 0..2 {
        let inner;
        #[device]
        if ops::gt(q, 1)? {
            inner = ops::scale(&turned, 2.0)?;
            let deeper;
            #[device]
            if ops::gt(q, 2)? {
                deeper = keep(inner);
                y = keep(deeper);
            } else {
                deeper = ops::neg(&inner)?;
                y = keep(deeper);
            }
        } else {
            inner = ops::scale(&turned, 3.0)?;
            y = keep(inner);
        }
    }
    Ok(y)
}

/// A helper, in which a segment is all there is.
#[graphable]
fn helper(x: &Tensor<f32>, q: &Scalar<i32>) -> Result<Tensor<f32>> {
    let h;
    #[device]
    if ops::gt(q, 0)? {
        h = ops::scale(x, 2.0)?;
        Ok(keep(h))
    } else {
        h = ops::scale(x, 3.0)?;
        Ok(keep(h))
    }
}

#[graphable]
fn whole(#[host] #[dims(1)] x: &Tensor<f32>, #[host] q: &Scalar<i32>) -> Result<Tensor<f32>> {
    helper(x, q)
}

fn main() -> Result<()> {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(Device::cpu())?;
        let graph = MovedGraph::builder().mode(mode).build(&mut rt)?;
        let whole = WholeGraph::builder().mode(mode).build(&mut rt)?;
        for _ in 0..4 {
            for (q, expected) in [(0, 0.0), (1, -18.0), (2, -28.0), (3, 28.0)] {
                let step = rt.step()?;
                let x = step.tensor(&[1], &[1.0f32])?;
                assert_eq!(step.read(&graph.call(&step, &x, q)?)?, [expected], "{mode} {q}");
                let y = whole.call(&step, &[1.0], q)?;
                assert_eq!(step.read(&y)?, [if q > 0 { 2.0 } else { 3.0 }]);
            }
        }
    }
    Ok(())
}
