//! Lists: references to their elements, iterators over them, and lists that segments make.

use graphable::{graphable, prelude::*};

use super::{Model, gives, mix, same};

/// Skip connections: references to elements of a vector that a segment fills, used behind boundaries.
#[graphable]
fn skips(x: &Tensor<f32>, m: &Model) -> Result<Tensor<f32>> {
    let mut skips = Vec::new();
    let mut h = ops::scale(x, 1.0)?;
    for l in &m.layers {
        h = ops::mul(&h, &l.b)?;
        skips.push(h.clone());
    }
    let last = skips.last().unwrap();
    let Some(first) = skips.first() else {
        return Err(Error::Argument { op: "skips", reason: "no layers".into() });
    };
    let h = #[eager]
    mix(&h)?;
    let h = ops::add(&h, last)?;
    let h = #[eager]
    mix(&h)?;
    let h = ops::add(&h, first)?;
    ops::add(&h, last)
}

/// The same of a vector that a region makes, and of one that its `let` builds.
#[graphable]
fn elements(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let parts: Vec<Tensor<f32>> = #[eager]
    {
        vec![mix(x)?, same(x)?]
    };
    let last = parts.last().unwrap();
    let h = ops::add(last, x)?;
    let one = parts.get(parts.len() - 2).expect("two parts");
    let own = vec![ops::neg(&h)?, ops::scale(&h, 3.0)?];
    let of_own = own.last().unwrap();
    let h = #[eager]
    mix(&h)?;
    let h = ops::add(&ops::add(&h, one)?, of_own)?;
    let h = #[eager]
    mix(&h)?;
    let h = ops::add(&ops::add(&h, last)?, &own[0])?;
    ops::add(&h, one)
}

/// A list that grows between two references to its last element.
#[graphable]
fn changed_behind(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut parts = vec![ops::neg(x)?];
    let last = parts.last().unwrap();
    let h = ops::add(last, last)?;
    parts.push(h);
    let last = parts.last().unwrap();
    let h = #[eager]
    mix(last)?;
    let h = ops::add(&h, last)?;
    ops::add(&h, &parts[0])
}

/// A rank pattern, and the sizes that it binds.
#[graphable]
fn ranked(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let [d] = x.shape()[..] else {
        return Err(Error::Argument { op: "ranked", reason: "one dimension".into() });
    };
    let h = ops::add(x, x)?;
    let h = #[eager]
    mix(&h)?;
    let h = ops::reshape(&h, (d, 1, 1))?;
    ops::reshape(&h, (d,))
}

/// Iterators that loops share, and one whose first element host code takes.
#[graphable]
fn shared_iterators(x: &Tensor<f32>, m: &Model) -> Result<Tensor<f32>> {
    let mut it = m.layers.iter();
    let mut h = ops::scale(x, 1.0)?;
    for l in it.by_ref().take(1) {
        h = ops::mul(&h, &l.b)?;
        h = #[eager]
        same(&h)?;
    }
    for l in it {
        h = ops::mul(&h, &l.a)?;
        h = #[eager]
        same(&h)?;
    }
    let mut pairs = m.layers.chunks_exact(2);
    for pair in pairs.by_ref() {
        h = ops::add(&h, &pair[1].a)?;
        h = #[eager]
        same(&h)?;
    }
    for l in pairs.remainder() {
        h = ops::add(&h, &l.b)?;
        h = #[eager]
        same(&h)?;
    }
    let mut it = m.layers.iter().rev();
    #[host]
    let last = it.next().unwrap();
    h = ops::mul(&h, &last.a)?;
    for l in it {
        h = ops::add(&h, &l.a)?;
        h = #[eager]
        same(&h)?;
    }
    Ok(h)
}

/// Slice patterns of layers, one found by a search, and caches changed and used up beside them.
#[graphable]
fn beside(x: &Tensor<f32>, m: &Model) -> Result<Tensor<f32>> {
    let [a, _, c] = &m.layers[..] else {
        return Err(Error::Argument { op: "beside", reason: "three layers".into() });
    };
    let (first, third) = (&a.a, &c.a);
    let big = m.layers.iter().max_by(|l, r| l.eps.total_cmp(&r.eps)).unwrap();
    let mut kv = #[eager]
    {
        vec![mix(x)?, same(x)?, same(x)?]
    };
    let mut h = ops::mul(x, first)?;
    for (l, k) in m.layers.iter().zip(kv.iter_mut()) {
        *k = ops::add(k, &l.a)?;
        h = ops::add(&h, &*k)?;
    }
    h = #[eager]
    same(&h)?;
    for (l, k) in m.layers.iter().zip(kv) {
        h = ops::add(&h, &ops::mul(&k, &l.a)?)?;
        h = #[eager]
        same(&h)?;
    }
    ops::mul(&ops::mul(&h, third)?, &big.a)
}

#[test]
fn elements_of_lists_that_segments_fill() {
    // 10, 200, 6000: (12000 + 6000) * 2 + 10 + 6000.
    gives!(SkipsGraph, 42010.0, |g, step, x, m| g.call(&step, &x, &m));
}

#[test]
fn elements_of_lists_that_regions_and_lets_make() {
    // h 2, own -2 and 6; 4 + 2 + 6; 24 + 1 - 2 + 2.
    gives!(ElementsGraph, 25.0, |g, step, x, m| g.call(&step, &x));
    // parts -1, -2; h -4; -6 - 1.
    gives!(ChangedBehindGraph, -7.0, |g, step, x, m| g.call(&step, &x));
}

#[test]
fn patterns_of_shapes() {
    gives!(RankedGraph, 4.0, |g, step, x, m| g.call(&step, &x));
}

#[test]
fn iterators_that_loops_share() {
    // 10 * 2 * 3; + 2 + 30; * 3; + 2 + 1.
    gives!(SharedIteratorsGraph, 279.0, |g, step, x, m| g.call(&step, &x, &m));
}

#[test]
fn layers_beside_caches_that_change() {
    // kv 3, 3, 4: 1 + 10; + 3 + 6 + 12; * 9.
    gives!(BesideGraph, 288.0, |g, step, x, m| g.call(&step, &x, &m));
}
