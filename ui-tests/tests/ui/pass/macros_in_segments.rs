//! Segments call macros of the function that name variables, closures and each other.

#![deny(warnings)]

use graphable::prelude::*;

/// The variables change between the calls, on the host and in the macros.
#[graphable]
fn changed(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut k = n + 1;
    let mut h = ops::neg(x)?;
    macro_rules! scaled {
        ($t:expr) => {
            ops::scale($t, k as f32)
        };
    }
    macro_rules! add {
        ($t:expr) => {
            h = ops::add(&h, $t)?;
            k += 1;
        };
    }
    macro_rules! add_twice {
        ($t:expr) => {
            add!($t);
            add!($t);
        };
    }
    let y = #[eager(support = Always)]
    ops::scale(&h, 2.0)?;
    let z = scaled!(&y)?;
    add!(&z);
    let kept = k;
    add_twice!(x);
    k += 2;
    let v = #[eager(support = Always)]
    ops::scale(&scaled!(&h)?, kept as f32)?;
    let z = scaled!(&v)?;
    {
        add!(&z);
        let f = |t| scaled!(t);
        let w = f(&h)?;
        let u = #[eager(support = Always)]
        ops::scale(&w, 0.5)?;
        h = f(&u)?;
        if n > 1 {
            add!(&u);
            k *= 2;
        }
    }
    for i in 0..n {
        add!(x);
        if i == 1 {
            let q = #[eager(support = Always)]
            ops::scale(&h, 0.5)?;
            h = scaled!(&q)?;
        }
        k = i + k;
    }
    scaled!(&h)
}

fn changed_on_the_host(n: usize, x: f32) -> f32 {
    let mut k = n + 1;
    let mut h = -x;
    h += h * 2.0 * k as f32;
    k += 1;
    let kept = k;
    h += x + x;
    k += 4;
    let v = h * k as f32 * kept as f32;
    h += v * k as f32;
    k += 1;
    let u = h * k as f32 * 0.5;
    h = u * k as f32;
    if n > 1 {
        h += u;
        k = (k + 1) * 2;
    }
    for i in 0..n {
        h += x;
        k += 1;
        if i == 1 { h = h * 0.5 * k as f32 }
        k += i;
    }
    h * k as f32
}

/// Host code changes a variable before and behind the segments that read it by a macro.
#[graphable]
fn read_in_order(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut k = n;
    macro_rules! scaled {
        ($t:expr) => {
            ops::scale($t, k as f32)
        };
    }
    let z = scaled!(x)?;
    k += 1;
    let y = scaled!(&z)?;
    let before = k;
    k = 2;
    let v = #[eager(support = Always)]
    ops::scale(&y, (k + before) as f32)?;
    (k, _) = (k + 3, 1);
    let u = vec![scaled!(&v)?];
    k *= 2;
    scaled!(&u[0])
}

fn read_in_order_on_the_host(n: usize, x: f32) -> f32 {
    x * (n * (n + 1) * (n + 3) * 5 * 10) as f32
}

/// What the names of closures mean outside the function below.
fn by(n: usize) -> usize {
    n + 1
}

/// A name means what it meant where the macro is: a function here, a closure there, with what that has captured.
#[graphable]
fn meant(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let k = n + 1;
    let rank = |t: &Tensor<'_, f32>| t.rank() + k;
    macro_rules! by_rank {
        ($t:expr) => {
            ops::scale($t, rank($t) as f32)
        };
    }
    macro_rules! scaled {
        ($t:expr) => {
            ops::scale(&by_rank!($t)?, by(n) as f32)
        };
    }
    let y = #[eager(support = Always)]
    ops::scale(x, 2.0)?;
    let k = ops::neg(&y)?;
    let by = |n: usize| n + 100;
    let z = scaled!(&k)?;
    let v = #[eager(support = Always)]
    ops::scale(&z, by(1) as f32)?;
    let all = vec![by_rank!(&v)?, ops::scale(&k, by(2) as f32)?];
    macro_rules! scaled {
        ($t:expr) => {
            ops::scale($t, by(3) as f32)
        };
    }
    let (a, b) = (scaled!(&all[0])?, by_rank!(&scaled!(&all[1])?)?);
    #[eager(support = Always)]
    ops::add(&a, &scaled!(&b)?)
}

fn meant_on_the_host(n: usize, x: f32) -> f32 {
    let (rank, k) = ((n + 2) as f32, x * -2.0);
    let v = k * rank * (n + 1) as f32 * 101.0;
    v * rank * 103.0 + k * 102.0 * 103.0 * rank * 103.0
}

fn add_to<'s>(t: &mut Tensor<'s, f32>, by: &Tensor<'s, f32>) -> Result<()> {
    *t = ops::add(t, by)?;
    Ok(())
}

macro_rules! put {
    ($place:expr, $value:expr) => {
        $place = $value
    };
}

/// Macros write through a `&mut` of host code, pass it on, and have others change variables; one is defined by the segment itself.
#[graphable]
fn written_through(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let (mut a, mut b, mut k) = (ops::neg(x)?, ops::scale(x, 2.0)?, n);
    let r = &mut a;
    macro_rules! passed {
        ($by:expr) => {
            add_to(r, $by)?
        };
    }
    macro_rules! written {
        ($by:expr) => {{
            let sum = ops::add(r, $by)?;
            *r = sum;
        }};
    }
    macro_rules! both {
        () => {
            put!(b, ops::scale(&b, (k + 1) as f32)?);
            (k, _) = (k + 2, 0);
        };
    }
    let y = #[eager(support = Always)]
    ops::scale(&*r, 2.0)?;
    passed!(&y);
    both!();
    let before = k;
    let u = #[eager(support = Always)]
    ops::scale(&*r, k as f32)?;
    written!(&u);
    both!();
    passed!(&b);
    {
        macro_rules! inner {
            () => {
                add_to(r, &u)?
            };
        }
        inner!();
        inner!();
    }
    let z = #[eager(support = Always)]
    ops::scale(&a, (k + before) as f32)?;
    ops::add(&z, &b)
}

fn written_through_on_the_host(n: usize, x: f32) -> f32 {
    let (mut a, mut b, mut k) = (-x, 2.0 * x, n);
    a += 2.0 * a;
    b *= (k + 1) as f32;
    k += 2;
    let before = k;
    let u = a * k as f32;
    a += u;
    b *= (k + 1) as f32;
    k += 2;
    a += b + u + u;
    a * (k + before) as f32 + b
}

#[derive(Params)]
struct Scale {
    w: Param<f32>,
    #[config]
    by: f32,
}

#[graphable]
impl Scale {
    /// A macro names `self`.
    fn run(&self, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
        macro_rules! scaled {
            ($t:expr) => {
                ops::scale(&ops::mul($t, &self.w)?, self.by)
            };
        }
        let y = scaled!(x)?;
        let z = #[eager(support = Always)]
        ops::neg(&y)?;
        scaled!(&z)
    }
}

fn main() -> Result<()> {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(Device::cpu())?;
        let scale = Scale { w: Param::new(&rt, &[1], &[0.5])?, by: 3.0 };
        let changed = ChangedGraph::builder().mode(mode).build(&mut rt)?;
        let read_in_order = ReadInOrderGraph::builder().mode(mode).build(&mut rt)?;
        let meant = MeantGraph::builder().mode(mode).build(&mut rt)?;
        let written_through = WrittenThroughGraph::builder().mode(mode).build(&mut rt)?;
        let run = ScaleRunGraph::builder().mode(mode).build(&mut rt)?;
        for at in 0..24 {
            let (n, x) = (at % 4, 1.0 + at as f32);
            let step = rt.step()?;
            let got = step.read(&changed.call(&step, n, &[x])?)?[0];
            assert_eq!(got, changed_on_the_host(n, x), "changed {mode} {at}");
            let got = step.read(&read_in_order.call(&step, n, &[x])?)?[0];
            assert_eq!(got, read_in_order_on_the_host(n, x), "read_in_order {mode} {at}");
            let got = step.read(&meant.call(&step, n, &[x])?)?[0];
            assert_eq!(got, meant_on_the_host(n, x), "meant {mode} {at}");
            let got = step.read(&written_through.call(&step, n, &[x])?)?[0];
            assert_eq!(got, written_through_on_the_host(n, x), "written_through {mode} {at}");
            let got = step.read(&run.call(&step, &scale, &[x])?)?[0];
            assert_eq!(got, x * -2.25, "run {mode} {at}");
        }
    }
    Ok(())
}
