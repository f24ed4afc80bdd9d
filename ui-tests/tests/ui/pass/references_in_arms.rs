//! Arms that assign parts of what a variable refers to, where nothing in the code says that it is a reference.

#![deny(warnings)]

use graphable::prelude::*;

#[derive(Clone)]
struct Pair<'s> {
    l: Tensor<'s, f32>,
    r: Tensor<'s, f32>,
    boxed: Box<Tensor<'s, f32>>,
    spare: Spare<'s>,
}

/// Methods with names like those of `Option`, which only read.
#[derive(Clone)]
struct Spare<'s>(Option<Tensor<'s, f32>>);

impl<'s> Spare<'s> {
    fn expect_some(&self) -> &Tensor<'s, f32> {
        self.0.as_ref().expect("some")
    }

    fn unwrap_twice(&self) -> (&Tensor<'s, f32>, &Tensor<'s, f32>) {
        (self.expect_some(), self.expect_some())
    }
}

fn pairs<'s>(x: &Tensor<'s, f32>) -> Result<Vec<Pair<'s>>> {
    let pair = |by: f32| {
        let l = ops::scale(x, by)?;
        Ok(Pair { r: ops::neg(&l)?, boxed: Box::new(l.clone()), spare: Spare(Some(l.clone())), l })
    };
    [1.0, 2.0, 3.0].into_iter().map(pair).collect()
}

fn all<'s>(pairs: &[Pair<'s>], lists: &[Vec<Tensor<'s, f32>>]) -> Vec<Tensor<'s, f32>> {
    let of_pair = |p: &Pair<'s>| [p.l.clone(), p.r.clone(), (*p.boxed).clone()];
    pairs.iter().flat_map(of_pair).chain(lists.iter().flatten().cloned()).collect()
}

/// Items of iterators, and what methods return.
#[graphable]
fn items(#[host] p: &Scalar<bool>, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Vec<Tensor<f32>>> {
    let mut pairs = pairs(x)?;
    let mut lists = vec![vec![x.clone()], vec![ops::neg(x)?]];
    for (n, pair) in pairs.iter_mut().enumerate() {
        #[device]
        if p {
            pair.l = ops::add(&pair.l, n as f32)?;
            let (a, b) = pair.spare.unwrap_twice();
            pair.r = ops::add(&ops::add(&pair.r, a)?, b)?;
            *pair.boxed = ops::add(&*pair.boxed, pair.spare.expect_some())?;
        }
    }
    for (pair, list) in pairs.iter_mut().zip(lists.iter_mut()) {
        #[device]
        if p {
            list[0] = ops::add(&list[0], &pair.l)?;
            pair.l = list[0].clone();
        } else {
            list[0] = ops::scale(&list[0], 2.0)?;
        }
    }
    let mut rest = pairs.iter_mut();
    while let Some(pair) = rest.next() {
        #[device]
        if p {
            pair.l = ops::add(&pair.l, 10.0)?;
        }
    }
    let last = pairs.last_mut().unwrap();
    let first = lists.first_mut().unwrap();
    #[device(limit = 4)]
    while ops::lt(&ops::max(&last.l, 0)?, 40.0)? {
        last.l = ops::add(&last.l, 15.0)?;
        first[0] = ops::add(&first[0], 1.0)?;
    }
    // Items that are no references.
    let mut owned = pairs.clone().into_iter();
    for mut pair in &mut owned {
        #[device]
        if p {
            pair.l = ops::neg(&pair.l)?;
        }
        lists.push(vec![pair.l]);
    }
    Ok(all(&pairs, &lists))
}

/// The same on the host.
fn plain(p: bool, x: f32) -> Vec<f32> {
    let mut pairs: Vec<[f32; 4]> = [x, 2.0 * x, 3.0 * x].into_iter().map(|l| [l, -l, l, l]).collect();
    let mut lists = vec![x, -x];
    for (n, pair) in pairs.iter_mut().enumerate() {
        if p {
            pair[0] += n as f32;
            pair[1] += 2.0 * pair[3];
            pair[2] += pair[3];
        }
    }
    for (pair, list) in pairs.iter_mut().zip(lists.iter_mut()) {
        if p {
            *list += pair[0];
            pair[0] = *list;
        } else {
            *list *= 2.0;
        }
    }
    if p {
        pairs.iter_mut().for_each(|pair| pair[0] += 10.0);
    }
    while pairs[2][0] < 40.0 {
        pairs[2][0] += 15.0;
        lists[0] += 1.0;
    }
    lists.extend(pairs.iter().map(|pair| if p { -pair[0] } else { pair[0] }));
    pairs.iter().flat_map(|pair| [pair[0], pair[1], pair[2]]).chain(lists.iter().copied()).collect()
}

fn taken(x: Tensor<'_, f32>) -> Result<Tensor<'_, f32>> {
    ops::scale(&x, 0.5)
}

/// An arm that passes on a `&mut` borrows from it, as other code does.
#[graphable]
fn passed_on(#[host] p: &Scalar<bool>, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Vec<Tensor<f32>>> {
    let mut all = vec![x.clone(), ops::neg(x)?];
    let mut acc = x.clone();
    for t in &mut all {
        #[device]
        if p { acc = ops::add(&acc, &ops::neg(t)?)? }
        *t = ops::add(t, &acc)?;
    }
    for (n, t) in all.iter_mut().enumerate() {
        #[device]
        if p { acc = ops::add(&ops::scale(t, 0.5)?, n as f32)? }
        *t = ops::add(t, 1.0)?;
    }
    let mut pair = pairs(x)?.remove(1);
    let u = &mut pair.r;
    *u = ops::add(u, 1.0)?;
    #[device]
    if p { acc = ops::sub(&acc, u)? }
    let Pair { l, r, .. } = &mut pair;
    #[device]
    if p { *l = ops::scale(r, 2.0)? } else { *l = ops::add(l, r)? }
    if let Some(t) = all.first_mut() {
        #[device]
        if p { *r = ops::add(t, l)? }
        *t = ops::neg(t)?;
    }
    // Items that are no references are moved.
    let mut owned = all.clone().into_iter();
    for t in &mut owned {
        #[device]
        if p { acc = ops::add(&acc, &taken(t)?)? }
    }
    all.push(acc);
    all.push(pair.l);
    all.push(pair.r);
    Ok(all)
}

/// The same on the host.
fn plainly_passed_on(p: bool, x: f32) -> Vec<f32> {
    let (mut all, mut acc) = (vec![x, -x], x);
    for t in &mut all {
        if p { acc -= *t }
        *t += acc;
    }
    for (n, t) in all.iter_mut().enumerate() {
        if p { acc = *t * 0.5 + n as f32 }
        *t += 1.0;
    }
    let (mut l, mut r) = (x * 2.0, x * -2.0 + 1.0);
    if p { acc -= r }
    if p { l = r * 2.0 } else { l += r }
    if p { r = all[0] + l }
    all[0] = -all[0];
    if p { acc += all.iter().map(|t| t * 0.5).sum::<f32>() }
    all.extend([acc, l, r]);
    all
}

/// The one for whom the type is written.
fn first<'s>(v: Option<Tensor<'s, f32>>, w: &Option<Tensor<'s, f32>>) -> Option<Tensor<'s, f32>> {
    v.or_else(|| w.clone())
}

/// A variable whose type only the code behind the arms decides: it could still be a `&mut`.
#[graphable]
fn typed_later(#[host] p: &Scalar<bool>, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Vec<Tensor<f32>>> {
    let v = Default::default();
    let mut w = Default::default();
    let mut y = x.clone();
    #[device]
    if p {
        if let Some(_) = v && let Some(_kept) = w {
            y = ops::neg(&y)?;
        } else if let None = v && let None = w {
            y = ops::add(&y, 1.0)?;
        }
    } else {
        match v {
            Some(_given) => y = ops::scale(&y, 7.0)?,
            None => y = ops::scale(&y, 3.0)?,
        }
    }
    if first(v, &w).is_none() { w = Some(ops::neg(&y)?) }
    Ok(w.into_iter().chain([y]).collect())
}

fn main() -> Result<()> {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(Device::cpu())?;
        let items = ItemsGraph::builder().mode(mode).build(&mut rt)?;
        let passed_on = PassedOnGraph::builder().mode(mode).build(&mut rt)?;
        let typed_later = TypedLaterGraph::builder().mode(mode).build(&mut rt)?;
        for (p, x) in [(true, 1.0), (false, 1.0), (true, 2.0), (false, 3.0), (true, 1.0)] {
            let step = rt.step()?;
            let y = items.call(&step, p, &[x])?;
            let y: Vec<f32> = y.iter().map(|t| Ok(step.read(t)?[0])).collect::<Result<_>>()?;
            assert_eq!(y, plain(p, x), "{mode} {p} {x}");
            let y = passed_on.call(&step, p, &[x])?;
            let y: Vec<f32> = y.iter().map(|t| Ok(step.read(t)?[0])).collect::<Result<_>>()?;
            assert_eq!(y, plainly_passed_on(p, x), "{mode} {p} {x}");
            let y = typed_later.call(&step, p, &[x])?;
            let y: Vec<f32> = y.iter().map(|t| Ok(step.read(t)?[0])).collect::<Result<_>>()?;
            let z = if p { x + 1.0 } else { x * 3.0 };
            assert_eq!(y, [-z, z], "{mode} {p} {x}");
        }
    }
    Ok(())
}
