//! Names that change their meaning, and variables that change, beside boundaries.

#![deny(warnings)]

use graphable::prelude::*;

fn taken(x: Tensor<'_, f32>) -> Result<Tensor<'_, f32>> {
    ops::scale(&x, 0.5)
}

/// What the names of closures mean outside the functions below.
#[allow(dead_code)]
fn more(n: usize) -> usize {
    n + 1000
}

#[allow(dead_code)]
fn scaled<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::scale(x, 1000.0)
}

fn odd(n: usize) -> Option<usize> {
    (n % 2 == 1).then_some(n)
}

fn sum(a: usize, b: usize) -> usize {
    a + b
}

/// Variables that are assigned after the last use of a reference to them, without device work.
#[graphable]
fn assigned(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let (mut a, b) = (ops::neg(x)?, ops::scale(x, 2.0)?);
    let mut pair = (a.clone(), 3usize);
    let r = &a;
    let d = #[eager(support = Always)]
    ops::scale(r, 3.0)?;
    let mut c = ops::add(r, &d)?;
    a = b;
    let e = #[eager(support = Always)]
    ops::scale(&c, 0.5)?;
    let of_pair = &pair.0;
    if n > 1 {
        c = ops::sub(of_pair, &e)?;
        pair.0 = a.clone();
        let f = #[eager(support = Always)]
        ops::scale(&c, 5.0)?;
        return ops::add(&f, &pair.0);
    }
    let all = [ops::add(&c, &e)?];
    let first = &all[0];
    let g = #[eager(support = Always)]
    ops::neg(first)?;
    c = ops::add(first, &g)?;
    (a, pair.1) = (pair.0, 4);
    let h = #[eager(support = Always)]
    ops::scale(&a, pair.1 as f32)?;
    ops::add(&h, &c)
}

fn assigned_on_the_host(n: usize, x: f32) -> f32 {
    let (r, a) = (-x, x * 2.0);
    let c = r + r * 3.0;
    let e = c * 0.5;
    if n > 1 { (-x - e) * 5.0 + a } else { -x * 4.0 }
}

/// Loop variables, patterns and later variables with the names of closures.
#[graphable]
fn closures(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut s = ops::neg(x)?;
    for i in 0..2 {
        let w = ops::scale(x, i as f32)?;
        let more = |by: f32| ops::scale(&w, by);
        s = ops::add(&s, &more(2.0)?)?;
        let d = #[eager(support = Always)]
        ops::scale(&s, 3.0)?;
        if let Some(more) = odd(n) {
            s = #[eager(support = Always)]
            ops::scale(&d, more as f32)?;
        }
        for more in 0..n {
            s = #[eager(support = Always)]
            ops::add(&s, more as f32)?;
        }
        match n {
            0 => {}
            more => {
                s = #[eager(support = Always)]
                ops::add(&s, more as f32)?;
            }
        }
    }
    ops::neg(&s)
}

fn closures_on_the_host(n: usize, x: f32) -> f32 {
    let mut s = -x;
    for i in 0..2 {
        s += x * i as f32 * 2.0;
        if n % 2 == 1 { s = s * 3.0 * n as f32 }
        for more in 0..n { s += more as f32 }
        s += n as f32;
    }
    -s
}

/// A closure takes the name of what the same device work has given it before.
#[graphable]
#[allow(unused_variables)]
fn again(#[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let more = ops::neg(x)?;
    let more = |n: usize| n + 1;
    let scaled = ops::neg(x)?;
    let scaled = |t| halved(t);
    let y = #[eager(support = Always)]
    ops::scale(x, 3.0)?;
    let n = #[eager(support = Always)]
    sum(more(3), 2);
    let z = scaled(&y)?;
    let z = #[eager(support = Always)]
    ops::scale(&z, n as f32)?;
    scaled(&z)
}

fn halved<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::scale(x, 0.5)
}

/// Closures take what they capture, and other variables take its name.
#[graphable]
fn consumed(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let w = ops::neg(x)?;
    let g = || taken(w);
    let a = g()?;
    let d = #[eager(support = Always)]
    ops::scale(&a, 3.0)?;
    let w = ops::scale(&d, 2.0)?;
    let list = vec![n, 2];
    let k = n.min(2);
    let h = |by: f32| {
        let r = &w;
        let sum: usize = list.into_iter().sum();
        let b = ops::scale(r, by + (sum + k.max(k)) as f32)?;
        ops::add(&taken(w)?, &b)
    };
    let e = #[eager(support = Always)]
    ops::scale(x, 5.0)?;
    let b = h(k as f32)?;
    let (list, k) = (ops::add(&b, &e)?, ops::neg(x)?);
    let w = #[eager(support = Always)]
    ops::scale(&list, 7.0)?;
    ops::add(&w, &k)
}

fn consumed_on_the_host(n: usize, x: f32) -> f32 {
    let w = -x * 0.5 * 3.0 * 2.0;
    let k = n.min(2);
    let b = w * 0.5 + w * (k + n + 2 + k) as f32;
    (b + x * 5.0) * 7.0 - x
}

/// A condition that makes calls chooses a `&mut`, which may have the name of what it refers to, and a boundary gives that a value.
#[graphable]
fn chosen(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let (mut h, mut o) = (ops::neg(x)?, ops::scale(x, 3.0)?);
    {
        h = ops::scale(&h, 2.0)?;
        let h = if x.rank() == 1 && n > 1 { &mut h } else { &mut o };
        *h = #[eager(support = Always)]
        ops::scale(h, 5.0)?;
        *h = ops::add(&*h, x)?;
    }
    {
        let d = ops::neg(&h)?;
        let chosen = if odd(n).is_some() && d.rank() == 1 { &mut h } else { &mut o };
        *chosen = #[eager(support = Always)]
        ops::add(chosen, &d)?;
        *chosen = ops::scale(chosen, 7.0)?;
    }
    // A value of a boundary decides on the host.
    let k = #[eager(support = Always)]
    more(n);
    let chosen = if sum(k, 1) > 1002 { &mut h } else { &mut o };
    *chosen = ops::add(chosen, x)?;
    *chosen = #[eager(support = Always)]
    ops::scale(chosen, 3.0)?;
    ops::add(&h, &o)
}

fn chosen_on_the_host(n: usize, x: f32) -> f32 {
    let (mut h, mut o) = (-2.0 * x, 3.0 * x);
    if n > 1 { h = h * 5.0 + x } else { o = o * 5.0 + x }
    let d = -h;
    if n % 2 == 1 { h = (h + d) * 7.0 } else { o = (o + d) * 7.0 }
    if n > 1 { h = (h + x) * 3.0 } else { o = (o + x) * 3.0 }
    h + o
}

/// Variables are read in device work that has written to them through a `&mut`, at the end of the function too.
#[graphable]
fn read_after(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let (mut a, mut b) = (ops::neg(x)?, ops::scale(x, 3.0)?);
    let mut c = x.clone();
    let added = |t| ops::add(t, x);
    let by = #[eager(support = Always)]
    ops::scale(x, 2.0)?;
    let chosen = if n > 0 { &mut a } else { &mut b };
    *chosen = #[eager(support = Always)]
    ops::scale(chosen, 5.0)?;
    *chosen = ops::scale(chosen, n as f32)?;
    c = ops::sub(&c, &a)?;
    let written = &mut c;
    let d = #[eager(support = Always)]
    ops::add(&*written, &by)?;
    *written = ops::add(written, &d)?;
    let written = written;
    *written = #[eager(support = Always)]
    ops::scale(written, 2.0)?;
    *written = ops::add(written, &d)?;
    let e = added(&c)?;
    let first = &mut c;
    let second = &mut a;
    let f = #[eager(support = Always)]
    ops::scale(&*first, 2.0)?;
    *first = ops::add(first, &f)?;
    *second = ops::add(&*second, &*first)?;
    match n {
        0 => Ok(ops::add(&ops::add(&c, &e)?, &a)?),
        1 => Ok(a),
        _ => {
            let all = ops::add(&a, &b)?;
            Ok(ops::sub(&c, &all)?)
        }
    }
}

fn read_after_on_the_host(n: usize, x: f32) -> f32 {
    let (mut a, mut b) = (-x, 3.0 * x);
    if n > 0 { a *= 5.0 * n as f32 } else { b *= 0.0 }
    let mut c = x - a;
    let d = c + 2.0 * x;
    c = (c + d) * 2.0 + d;
    let e = c + x;
    c *= 3.0;
    a += c;
    match n {
        0 => c + e + a,
        1 => a,
        _ => c - (a + b),
    }
}

fn main() -> Result<()> {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(Device::cpu())?;
        let assigned = AssignedGraph::builder().mode(mode).build(&mut rt)?;
        let closures = ClosuresGraph::builder().mode(mode).build(&mut rt)?;
        let again = AgainGraph::builder().mode(mode).build(&mut rt)?;
        let consumed = ConsumedGraph::builder().mode(mode).build(&mut rt)?;
        let chosen = ChosenGraph::builder().mode(mode).build(&mut rt)?;
        let read_after = ReadAfterGraph::builder().mode(mode).build(&mut rt)?;
        for at in 0..16 {
            let (n, x) = (at % 4, 1.0 + at as f32);
            let step = rt.step()?;
            let got = step.read(&assigned.call(&step, n, &[x])?)?[0];
            assert_eq!(got, assigned_on_the_host(n, x), "assigned {mode} {at}");
            let got = step.read(&closures.call(&step, n, &[x])?)?[0];
            assert_eq!(got, closures_on_the_host(n, x), "closures {mode} {at}");
            let got = step.read(&again.call(&step, &[x])?)?[0];
            assert_eq!(got, x * 4.5, "again {mode} {at}");
            let got = step.read(&consumed.call(&step, n, &[x])?)?[0];
            assert_eq!(got, consumed_on_the_host(n, x), "consumed {mode} {at}");
            let got = step.read(&chosen.call(&step, n, &[x])?)?[0];
            assert_eq!(got, chosen_on_the_host(n, x), "chosen {mode} {at}");
            let got = step.read(&read_after.call(&step, n, &[x])?)?[0];
            assert_eq!(got, read_after_on_the_host(n, x), "read_after {mode} {at}");
        }
    }
    Ok(())
}
