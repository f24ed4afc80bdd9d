//! Values that cannot leave a segment, beside code that names them only by chance: it does not end the segment.

#![deny(warnings)]

use graphable::prelude::*;

fn taken(x: Tensor<'_, f32>) -> Result<Tensor<'_, f32>> {
    ops::scale(&x, 0.5)
}

fn odd(n: usize) -> Option<usize> {
    (n % 2 == 1).then_some(n)
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

/// A macro of the function binds names of such a value, or has them as a label, a token that it matches, or its own name.
#[graphable]
fn macros(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let w = Stays::of(x, n);
    macro_rules! sum {
        ($all:expr) => {
            $all.iter().map(|w| w + 1).sum::<usize>()
        };
    }
    macro_rules! chosen {
        ($(w)? $all:expr) => {
            'w: {
                let mut sum = 1;
                for w in $all {
                    sum += w;
                }
                if let Some(w) = odd(n) {
                    break 'w sum + w;
                }
                match sum {
                    w if w > 4 => w * 2,
                    w => w,
                }
            }
        };
    }
    macro_rules! w {
        ($v:expr) => {{
            let w = $v + 1;
            w
        }};
    }
    let y = w.scaled(x)?;
    let z = #[eager(support = Always)]
    ops::scale(&y, sum!([n, 2]) as f32)?;
    let w = Stays::of(&z, 2);
    let y = w.scaled(&z)?;
    let z = #[eager(support = Always)]
    ops::scale(&y, chosen!([n, 2]) as f32)?;
    ops::scale(&z, w!(n) as f32)
}

fn macros_on_the_host(n: usize, x: f32) -> f32 {
    let sum = n + 3;
    let chosen = match n {
        1 | 3 => sum + n,
        _ if sum > 4 => sum * 2,
        _ => sum,
    };
    x * (n * (n + 4) * 2 * chosen * (n + 1)) as f32
}

/// What such a macro does name, and what it binds only later or elsewhere, is what it was where the macro is defined.
#[graphable]
fn named_by_macros(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let y = ops::neg(x)?;
    let mut w = n + 1;
    macro_rules! later {
        () => {{
            let before = w;
            let w = before + 1;
            { let w = w * 2; _ = w }
            w
        }};
    }
    macro_rules! elsewhere {
        ($f:expr) => {
            $f(|w: usize| w + 1) * w
        };
    }
    w = next(w);
    let z = ops::scale(&y, 2.0)?;
    let z = #[eager(support = Always)]
    ops::scale(&z, later!() as f32)?;
    w = next(w + 1);
    let y = ops::sub(&z, &y)?;
    #[allow(unused_variables)]
    let w = 50;
    #[eager(support = Always)]
    ops::scale(&y, elsewhere!(|f: fn(usize) -> usize| f(3)) as f32)
}

fn next(n: usize) -> usize {
    n * 3 % 5
}

fn named_by_macros_on_the_host(n: usize, x: f32) -> f32 {
    let w = next(n + 1);
    let z = x * -2.0 * (w + 1) as f32;
    (z + x) * (4 * next(w + 1)) as f32
}

/// A closure takes the name of a tensor of the segment, which it may capture.
#[graphable]
fn closures(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let w = ops::neg(x)?;
    let first = |v| ops::add(v, &w);
    let h = ops::scale(&w, 3.0)?;
    let s = Stays::of(&w, n);
    let w = |v| ops::sub(&first(v)?, v);
    let h = |v| ops::sub(v, &h);
    let a = w(x)?;
    let y = s.scaled(&h(&a)?)?;
    let b = ops::scale(&y, 0.5)?;
    let h = h(&b)?;
    let z = #[eager(support = Always)]
    first(&h)?;
    let z = ops::add(&w(&z)?, &z)?;
    let w = ops::add(&first(&z)?, &h)?;
    #[eager(support = Always)]
    ops::scale(&w, 2.0)
}

fn closures_on_the_host(n: usize, x: f32) -> f32 {
    let (w, h) = (-x, x * -3.0);
    let y = (w - h) * n as f32;
    let h = y * 0.5 - h;
    let z = w + (h + w);
    (z + w + h) * 2.0
}

/// Closures that are made behind a boundary again, after others took their names, and those of what they capture.
#[graphable]
fn made_again(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let w = ops::neg(x)?;
    let k = ops::scale(x, n as f32)?;
    let w = |v| ops::add(v, &w);
    let k = |v| ops::sub(&w(v)?, &k);
    let y = #[eager(support = Always)]
    ops::scale(&k(x)?, 2.0)?;
    let z = ops::add(&k(&y)?, &w(&y)?)?;
    let outer = |v| ops::scale(&k(v)?, 0.5);
    let z = ops::neg(&z)?;
    let z = |v| ops::sub(v, &z);
    let both = z(&y)?;
    let v = #[eager(support = Always)]
    ops::scale(&outer(&both)?, 3.0)?;
    ops::add(&outer(&v)?, &z(&v)?)
}

fn made_again_on_the_host(n: usize, x: f32) -> f32 {
    let first = |v: f32| v - x - x * n as f32;
    let y = first(x) * 2.0;
    let z = first(y) + (y - x);
    let v = first(y + z) * 0.5 * 3.0;
    first(v) * 0.5 + (v + z)
}

/// Fields are assigned beside those that a reference in the segment refers to.
#[graphable]
fn fields(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut all = (2.0, n + 3, (1.5, 4));
    let s = Stays::of(x, n);
    let by = &all.1;
    let y = ops::scale(&s.scaled(x)?, *by as f32)?;
    all.0 = 3.0;
    all.2.0 += all.0;
    let z = s.scaled(&y)?;
    let z = #[eager(support = Always)]
    ops::scale(&z, all.0 + all.2.0)?;
    // Others are not beside them.
    all.1 = 9;
    let whole = &all;
    let inner = &whole.2;
    let y = ops::scale(&z, inner.1 as f32)?;
    all.0 = 6.0;
    all.2.1 = 5;
    let z = #[eager(support = Always)]
    ops::scale(&y, all.0)?;
    let last = &all.2.1;
    let y = ops::scale(&z, *last as f32)?;
    all.2 = (0.5, 7);
    let z = #[eager(support = Always)]
    ops::scale(&y, all.2.1 as f32)?;
    ops::scale(&z, all.1 as f32)
}

fn fields_on_the_host(n: usize, x: f32) -> f32 {
    x * n as f32 * (n + 3) as f32 * n as f32 * 7.5 * 4.0 * 6.0 * 5.0 * 7.0 * 9.0
}

/// Closures take a part of what they capture, and another variable takes its name.
#[graphable]
fn taken_in_part(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let pair = (ops::neg(x)?, ops::scale(x, 3.0)?);
    let f = || taken(pair.0);
    let y = ops::scale(&pair.1, 2.0)?;
    let a = f()?;
    let y = #[eager(support = Always)]
    ops::add(&a, &y)?;
    let parts = (ops::neg(&y)?, (y.clone(), n + 1));
    let list = vec![n, 2];
    let g = |v| {
        let sum = list.iter().sum::<usize>() + parts.1.1;
        ops::add(&taken(parts.0)?, &ops::scale(v, sum as f32)?)
    };
    let b = ops::add(&g(x)?, &parts.1.0)?;
    let held = (ops::neg(&b)?, n, y);
    let h = |v| ops::add(&taken(held.0)?, &ops::scale(v, held.1 as f32)?);
    let c = #[eager(support = Always)]
    ops::add(&held.2, &b)?;
    let b = ops::add(&ops::sub(&h(x)?, &held.2)?, &c)?;
    let held = ops::scale(&b, 2.0)?;
    let pair = #[eager(support = Always)]
    ops::sub(&b, &held)?;
    let parts = ops::add(&pair, &b)?;
    #[eager(support = Always)]
    ops::add(&parts, &pair)
}

fn taken_in_part_on_the_host(n: usize, x: f32) -> f32 {
    let y = x * -0.5 + x * 6.0;
    let b = y * -0.5 + x * (2 * n + 3) as f32 + y;
    -(b * -0.5 + x * n as f32 - y + (y + b))
}

fn add_to<'s>(t: &mut Tensor<'s, f32>, by: &Tensor<'s, f32>) -> Result<()> {
    *t = ops::add(t, by)?;
    Ok(())
}

/// A macro that a segment defines passes a `&mut` of host code on: what is written there is not lost.
#[graphable]
fn passed_on(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut a = ops::neg(x)?;
    let r = &mut a;
    let y = #[eager(support = Always)]
    ops::scale(&*r, (n + 1) as f32)?;
    {
        macro_rules! inner {
            () => {
                add_to(r, &y)?
            };
        }
        inner!();
        inner!();
    }
    let z = #[eager(support = Always)]
    ops::scale(&a, 2.0)?;
    ops::add(&z, &y)
}

fn passed_on_on_the_host(n: usize, x: f32) -> f32 {
    let y = -x * (n + 1) as f32;
    2.0 * (-x + 2.0 * y) + y
}

macro_rules! apply {
    ($name:ident) => {
        $name!()
    };
}

/// Another macro calls one of the function, whose name it is given: the host value is not evaluated before what it names changes.
#[graphable]
fn called_by_another(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut k = n;
    macro_rules! read {
        () => {
            k
        };
    }
    let z = ops::neg(x)?;
    k = next(k + 1);
    #[key]
    let v = apply!(read);
    let y = #[eager(support = Always)]
    ops::scale(&z, v as f32)?;
    ops::scale(&y, 2.0)
}

fn called_by_another_on_the_host(n: usize, x: f32) -> f32 {
    -x * 2.0 * next(n + 1) as f32
}

fn main() -> Result<()> {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(Device::cpu())?;
        let macros = MacrosGraph::builder().mode(mode).build(&mut rt)?;
        let named_by_macros = NamedByMacrosGraph::builder().mode(mode).build(&mut rt)?;
        let closures = ClosuresGraph::builder().mode(mode).build(&mut rt)?;
        let made_again = MadeAgainGraph::builder().mode(mode).build(&mut rt)?;
        let fields = FieldsGraph::builder().mode(mode).build(&mut rt)?;
        let taken_in_part = TakenInPartGraph::builder().mode(mode).build(&mut rt)?;
        let passed_on = PassedOnGraph::builder().mode(mode).build(&mut rt)?;
        let called_by_another = CalledByAnotherGraph::builder().mode(mode).build(&mut rt)?;
        for at in 0..24 {
            let (n, x) = (at % 4, 1.0 + at as f32);
            let step = rt.step()?;
            let got = step.read(&macros.call(&step, n, &[x])?)?[0];
            assert_eq!(got, macros_on_the_host(n, x), "macros {mode} {at}");
            let got = step.read(&named_by_macros.call(&step, n, &[x])?)?[0];
            assert_eq!(got, named_by_macros_on_the_host(n, x), "named_by_macros {mode} {at}");
            let got = step.read(&closures.call(&step, n, &[x])?)?[0];
            assert_eq!(got, closures_on_the_host(n, x), "closures {mode} {at}");
            let got = step.read(&made_again.call(&step, n, &[x])?)?[0];
            assert_eq!(got, made_again_on_the_host(n, x), "made_again {mode} {at}");
            let got = step.read(&fields.call(&step, n, &[x])?)?[0];
            assert_eq!(got, fields_on_the_host(n, x), "fields {mode} {at}");
            let got = step.read(&taken_in_part.call(&step, n, &[x])?)?[0];
            assert_eq!(got, taken_in_part_on_the_host(n, x), "taken_in_part {mode} {at}");
            let got = step.read(&called_by_another.call(&step, n, &[x])?)?[0];
            assert_eq!(got, called_by_another_on_the_host(n, x), "called_by_another {mode} {at}");
            let got = step.read(&passed_on.call(&step, n, &[x])?)?[0];
            assert_eq!(got, passed_on_on_the_host(n, x), "passed_on {mode} {at}");
        }
    }
    Ok(())
}
