//! What a closure took before its variable got another value, and what macros of the function mean, which names alone do not show.

#![deny(warnings)]

use graphable::prelude::*;

fn taken(x: Tensor<'_, f32>) -> Result<Tensor<'_, f32>> {
    ops::scale(&x, 0.5)
}

fn next(n: usize) -> usize {
    n * 3 % 5 + 1
}

fn change<'s>(place: &mut Tensor<'s, f32>, by: &Tensor<'s, f32>) -> Result<()> {
    *place = ops::sub(place, by)?;
    Ok(())
}

/// Neither enters a segment nor leaves one.
struct Stays {
    by: usize,
}

impl Stays {
    fn of(x: &Tensor<'_, f32>, n: usize) -> Self {
        Self { by: n * x.rank() }
    }

    fn scaled<'s>(&self, x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
        ops::scale(x, self.by as f32)
    }
}

/// The variable gets another value before the first boundary, behind it, and in a loop.
#[graphable]
fn kept(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut h = ops::neg(x)?;
    let f = || taken(h);
    h = ops::scale(x, 3.0)?;
    let mut all = #[eager(support = Always)]
    ops::scale(&h, 2.0)?;
    all = ops::add(&all, &f()?)?;
    let f = || taken(h);
    let y = #[eager(support = Always)]
    ops::neg(&all)?;
    h = ops::sub(&y, x)?;
    macro_rules! f {
        () => {
            f()?
        };
    }
    let z = #[eager(support = Always)]
    ops::sub(&f!(), &h)?;
    all = ops::add(&all, &z)?;
    for i in 0..n {
        let f = || taken(h);
        h = ops::add(&all, i as f32)?;
        let w = #[eager(support = Always)]
        ops::neg(&h)?;
        let g = || f();
        h = ops::add(&h, &w)?;
        all = ops::add(&g()?, &w)?;
    }
    ops::add(&all, &h)
}

fn kept_on_the_host(n: usize, x: f32) -> f32 {
    let mut h = 3.0 * x;
    let mut all = h * 2.0 - x * 0.5;
    let f = h * 0.5;
    h = -all - x;
    all += f - h;
    for i in 0..n {
        let f = h * 0.5;
        h = all + i as f32;
        let w = -h;
        h += w;
        all = f + w;
    }
    all + h
}

/// What arms and a loop assign would be refused in the closure (`fail/capture/taken_closure.rs`): it is taken before.
#[graphable]
fn taken_before(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut h = ops::neg(x)?;
    let fixed = h;
    let f = || taken(fixed);
    if n > 1 {
        h = ops::scale(x, 3.0)?;
    } else {
        h = ops::scale(x, 4.0)?;
    }
    let y = #[eager(support = Always)]
    ops::neg(&h)?;
    for i in 0..n {
        h = ops::add(&h, i as f32)?;
    }
    let z = ops::add(&y, &h)?;
    ops::add(&z, &f()?)
}

fn taken_before_on_the_host(n: usize, x: f32) -> f32 {
    let mut h = if n > 1 { 3.0 * x } else { 4.0 * x };
    let y = -h;
    for i in 0..n {
        h += i as f32;
    }
    y + h - x * 0.5
}

/// The same of parts.
#[graphable]
fn kept_parts(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut h = (ops::neg(x)?, ops::scale(x, 4.0)?);
    let f = || ops::sub(&taken(h.0)?, &h.1);
    h.0 = ops::scale(x, 3.0 + n as f32)?;
    let y = #[eager(support = Always)]
    ops::add(&h.0, &f()?)?;
    #[eager(support = Always)]
    ops::sub(&y, &h.0)
}

fn kept_parts_on_the_host(n: usize, x: f32) -> f32 {
    let h = x * (3.0 + n as f32);
    let y = h + (-x * 0.5 - 4.0 * x);
    y - h
}

/// A closure that only borrows, or changes, a variable which is assigned on a path that leaves.
#[graphable]
fn assigned_where_it_leaves(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let (mut k, mut h) = (n, ops::neg(x)?);
    let mut more = || k += 2;
    if n > 1 {
        k = 7;
        return ops::scale(x, k as f32);
    }
    more();
    let y = ops::scale(x, k as f32)?;
    let f = |t: &Tensor<f32>| ops::add(t, &h);
    if n > 2 {
        h = ops::scale(x, 3.0)?;
        return ops::neg(&h);
    }
    let y = f(&y)?;
    let z = #[eager(support = Always)]
    ops::neg(&y)?;
    ops::add(&f(&y)?, &ops::scale(&z, 3.0)?)
}

fn assigned_on_the_host(n: usize, x: f32) -> f32 {
    if n > 1 {
        return 7.0 * x;
    }
    let y = x * (n + 2) as f32 - x;
    y - x - 3.0 * y
}

/// A macro names a closure whose name another one had, which captured what is shadowed since.
#[graphable]
fn two_closures(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let more = ops::neg(x)?;
    let made = |v: &Tensor<f32>| ops::add(v, &more);
    let y = made(x)?;
    let more = #[eager(support = Always)]
    ops::scale(x, 2.0)?;
    let z = ops::add(&y, &more)?;
    let by = n + 2;
    let made = |k: usize| k + by;
    macro_rules! made {
        () => {
            made(3)
        };
    }
    let w = #[eager(support = Always)]
    ops::scale(&z, made!() as f32)?;
    ops::neg(&w)
}

/// What a macro binds under a condition, it may not bind.
#[graphable]
fn conditions(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut k = n + 1;
    let by = |v: usize| v + k;
    macro_rules! off {
        ($v:expr) => {{
            #[cfg(any())]
            let by = |v: usize| v;
            by($v)
        }};
    }
    macro_rules! given {
        ($v:literal $(#[$condition:meta])*) => {{
            $(#[$condition])*
            let by = |v: usize| v;
            by($v)
        }};
    }
    macro_rules! function {
        ($v:expr) => {{
            #[cfg(any())]
            fn by(v: usize) -> usize {
                v
            }
            by($v)
        }};
    }
    let y = #[eager(support = Always)]
    ops::scale(x, off!(2) as f32)?;
    let y = #[eager(support = Always)]
    ops::scale(&y, given!(3 #[cfg(any())]) as f32)?;
    let y = #[eager(support = Always)]
    ops::scale(&y, function!(4) as f32)?;
    let y = #[eager(support = Always)]
    ops::scale(&y, given!(5 #[cfg(all())]) as f32)?;
    macro_rules! k {
        () => {{
            #[cfg(any())]
            let mut k = 7;
            k
        }};
    }
    k = next(k);
    let y = ops::scale(&y, k as f32)?;
    k = next(k);
    #[eager(support = Always)]
    ops::scale(&y, k!() as f32)
}

fn conditions_on_the_host(n: usize, x: f32) -> f32 {
    let k = n + 1;
    let factors = [2 + k, 3 + k, 4 + k, 5, next(k), next(next(k))];
    factors.iter().fold(x, |x, by| x * *by as f32)
}

/// A macro calls the one that has the name where it is called itself.
#[graphable]
fn defined_again(#[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    macro_rules! inner {
        () => {
            1
        };
    }
    macro_rules! outer {
        () => {
            inner!() + 10
        };
    }
    let y = #[eager(support = Always)]
    ops::neg(x)?;
    let z = ops::scale(&y, outer!() as f32)?;
    macro_rules! inner {
        () => {
            2
        };
    }
    let w = ops::scale(&z, outer!() as f32)?;
    #[eager(support = Always)]
    ops::sub(&w, &z)
}

/// A value that stays beside what is written through a `&mut` of another field.
#[graphable]
fn written_beside(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut pair = (ops::neg(x)?, ops::scale(x, 4.0)?);
    let first = &mut pair.0;
    let y = #[eager(support = Always)]
    ops::scale(x, 2.0)?;
    let w = Stays::of(&y, n);
    change(first, &y)?;
    *first = ops::sub(first, x)?;
    let z = w.scaled(&pair.1)?;
    let z = #[eager(support = Always)]
    ops::neg(&z)?;
    ops::add(&z, &pair.0)
}

type Op = for<'s> fn(&Tensor<'s, f32>) -> Result<Tensor<'s, f32>>;

/// Pointers to functions that begin as closures: replaced before each use of a segment, chosen by host code, and bound anew.
#[graphable]
fn replaced(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut by: fn(f32) -> f32 = |k| k * 2.0;
    if n > 1 {
        by = |k| k * 3.0;
    }
    let f: Op = |t| ops::scale(t, 4.0);
    let y = f(&ops::scale(x, by(1.0))?)?;
    #[host]
    let f: Op = if n > 1 { |t| ops::scale(t, 0.5) } else { ops::neg };
    let mut g: Op = |t| ops::scale(t, 2.0);
    let y = g(&y)?;
    let y = #[eager(support = Always)]
    f(&y)?;
    if n > 0 {
        g = |t| ops::scale(t, 3.0);
    } else {
        g = ops::neg;
    }
    let y = g(&y)?;
    g = |t| ops::scale(t, 5.0);
    ops::sub(&f(&g(&y)?)?, x)
}

fn replaced_on_the_host(n: usize, x: f32) -> f32 {
    let by = if n > 1 { 3.0 } else { 2.0 };
    let f = if n > 1 { 0.5 } else { -1.0 };
    let g = if n > 0 { 3.0 } else { -1.0 };
    x * by * 4.0 * 2.0 * f * g * 5.0 * f - x
}

fn main() -> Result<()> {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(Device::cpu())?;
        let kept = KeptGraph::builder().mode(mode).build(&mut rt)?;
        let taken_before = TakenBeforeGraph::builder().mode(mode).build(&mut rt)?;
        let kept_parts = KeptPartsGraph::builder().mode(mode).build(&mut rt)?;
        let assigned = AssignedWhereItLeavesGraph::builder().mode(mode).build(&mut rt)?;
        let two_closures = TwoClosuresGraph::builder().mode(mode).build(&mut rt)?;
        let conditions = ConditionsGraph::builder().mode(mode).build(&mut rt)?;
        let defined_again = DefinedAgainGraph::builder().mode(mode).build(&mut rt)?;
        let written_beside = WrittenBesideGraph::builder().mode(mode).build(&mut rt)?;
        let replaced = ReplacedGraph::builder().mode(mode).build(&mut rt)?;
        for at in 0..12 {
            let (n, x) = (at % 3, 1.0 + at as f32);
            let step = rt.step()?;
            let got = step.read(&kept.call(&step, n, &[x])?)?[0];
            assert_eq!(got, kept_on_the_host(n, x), "kept {mode} {at}");
            let got = step.read(&taken_before.call(&step, n, &[x])?)?[0];
            assert_eq!(got, taken_before_on_the_host(n, x), "taken_before {mode} {at}");
            let got = step.read(&kept_parts.call(&step, n, &[x])?)?[0];
            assert_eq!(got, kept_parts_on_the_host(n, x), "kept_parts {mode} {at}");
            let got = step.read(&assigned.call(&step, n, &[x])?)?[0];
            assert_eq!(got, assigned_on_the_host(n, x), "assigned {mode} {at}");
            let got = step.read(&two_closures.call(&step, n, &[x])?)?[0];
            assert_eq!(got, -2.0 * x * (n + 5) as f32, "two_closures {mode} {at}");
            let got = step.read(&conditions.call(&step, n, &[x])?)?[0];
            assert_eq!(got, conditions_on_the_host(n, x), "conditions {mode} {at}");
            let got = step.read(&defined_again.call(&step, &[x])?)?[0];
            assert_eq!(got, -121.0 * x, "defined_again {mode} {at}");
            let got = step.read(&written_beside.call(&step, n, &[x])?)?[0];
            assert_eq!(got, -4.0 * x * (n as f32) - 4.0 * x, "written_beside {mode} {at}");
            let got = step.read(&replaced.call(&step, n, &[x])?)?[0];
            assert_eq!(got, replaced_on_the_host(n, x), "replaced {mode} {at}");
        }
    }
    Ok(())
}
