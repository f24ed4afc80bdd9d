//! Macros that a function defines, and which name what is around them.

#![deny(warnings)]

use graphable::prelude::*;

/// A function made by a macro has two variables of one name: the macro's own, and the caller's.
macro_rules! two_variables {
    ($name:ident, $a:ident) => {
        #[graphable]
        fn $name(#[host] p: &Scalar<bool>, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Vec<Tensor<f32>>> {
            let $a = ops::scale(x, 2.0)?;
            let mut a = #[eager(support = Always)]
            ops::scale(&$a, 3.0)?;
            let all = {
                macro_rules! difference {
                    () => {{
                        let a: Tensor<f32> = ops::sub(&a, &$a)?;
                        a
                    }};
                    ($v:expr, $w:expr) => {
                        ops::add($v, $w)?
                    };
                }
                macro_rules! doubled {
                    () => {
                        a = ops::scale(&a, 2.0)?;
                    };
                }
                doubled!();
                let mut b = x.clone();
                #[device]
                if p { b = difference!() }
                vec![difference!(), difference!(&b, &$a), b]
            };
            a = ops::neg(&a)?;
            Ok(all.into_iter().chain([a]).collect())
        }
    };
}

two_variables!(hygienic, a);

fn hygienic_on_the_host(p: bool, x: f32) -> Vec<f32> {
    let (given, own) = (x * 2.0, x * 12.0);
    let b = if p { own - given } else { x };
    vec![own - given, b + given, b, -own]
}

/// What `by` would mean outside the function below.
#[allow(dead_code)]
fn by(n: usize) -> usize {
    n + 1000
}

/// A macro that host code calls names a closure.
#[graphable]
fn closures(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let more = n + 1;
    let by = |n: usize| n + more;
    macro_rules! twice {
        ($n:expr) => {
            by(by($n))
        };
    }
    let y = #[eager(support = Always)]
    ops::scale(x, 0.5)?;
    {
        macro_rules! thrice {
            ($n:expr) => {
                by(twice!($n))
            };
        }
        let z = #[eager(support = Always)]
        ops::scale(&y, thrice!(3) as f32)?;
        ops::add(&z, &y)
    }
}

/// Calls of a macro do not show what it names.
#[graphable]
fn changed(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut h = ops::neg(x)?;
    let c = #[eager(support = Always)]
    ops::scale(&h, 2.0)?;
    macro_rules! h {
        () => {
            h
        };
    }
    h = ops::sub(&h, &c)?;
    let d = #[eager(support = Always)]
    ops::scale(&h!(), 3.0)?;
    h = ops::add(&d, &c)?;
    let mut e = #[eager(support = Always)]
    ops::scale(&h!(), 5.0)?;
    for i in 0..n {
        h = ops::add(&e, i as f32)?;
        e = #[eager(support = Always)]
        ops::neg(&h!())?;
        h = ops::sub(&e, x)?;
    }
    let f = #[eager(support = Always)]
    ops::scale(&h!(), 7.0)?;
    // One that a segment defines may change what is around it.
    {
        macro_rules! more {
            ($by:expr) => {
                h = ops::add(&h, $by)?
            };
        }
        more!(&f);
        more!(x);
    }
    #[eager(support = Always)]
    ops::add(&h, &f)
}

fn changed_on_the_host(n: usize, x: f32) -> f32 {
    let c = -2.0 * x;
    let mut h = (-x - c) * 3.0 + c;
    let mut e = h * 5.0;
    for i in 0..n {
        e = -(e + i as f32);
        h = e - x;
    }
    h + h * 7.0 + x + h * 7.0
}

fn next(n: usize) -> usize {
    n * 3 % 5
}

/// Nor does a host value that is made of one.
#[graphable]
fn counted(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut k = 1;
    macro_rules! k {
        () => {
            k
        };
    }
    let d = #[eager(support = Always)]
    ops::scale(x, 2.0)?;
    let e = ops::neg(&d)?;
    k = next(k + n);
    let y = ops::scale(&e, 3.0)?;
    #[key]
    let j = k!() + 1;
    #[eager(support = Always)]
    ops::scale(&y, (j * 10 + k) as f32)
}

struct Pair {
    first: usize,
}

/// A macro's struct has a closure's value, and a changed variable's.
#[graphable]
fn fields(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let more = n + 1;
    let by = |n: usize| n + more;
    let mut k = n;
    macro_rules! made {
        () => {
            Pair { first: by(3) }
        };
    }
    macro_rules! changed {
        () => {
            Pair { first: k }
        };
    }
    let y = #[eager(support = Always)]
    ops::scale(x, 0.5)?;
    k = next(k + 2);
    let y = ops::neg(&y)?;
    k = next(k + 2);
    let z = #[eager(support = Always)]
    ops::scale(&y, made!().first as f32)?;
    let z = #[eager(support = Always)]
    ops::scale(&z, made!().first as f32)?;
    #[eager(support = Always)]
    ops::scale(&z, changed!().first as f32)
}

/// The call of a macro of the function is among the tokens of another call.
#[graphable]
fn hidden(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut k = 1;
    macro_rules! k {
        () => {
            k
        };
    }
    let d = #[eager(support = Always)]
    ops::scale(x, 2.0)?;
    let e = ops::neg(&d)?;
    k = next(k + n);
    let y = ops::scale(&e, 3.0)?;
    #[key]
    let j = vec![k!() + 1][0];
    #[eager(support = Always)]
    ops::scale(&y, (j * 10 + k) as f32)
}

/// Names that are bound among the tokens of a call, or of a macro's rules, of a function that has two variables of that name.
macro_rules! bound_in_tokens {
    ($name:ident, $a:ident) => {
        #[graphable]
        fn $name(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
            let $a = n + 10;
            let a = n + 2;
            macro_rules! doubled {
                ($v:expr) => {
                    match $v {
                        0 => 1,
                        a if a > 2 => a * 2,
                        a => a,
                    }
                };
            }
            macro_rules! joined {
                ($v:expr, $w:expr) => {
                    (|b: usize, a: usize| a * 10 + b)($v, $w)
                };
            }
            let y = #[eager(support = Always)]
            ops::scale(x, 2.0)?;
            let in_calls = vec![
                match n + 2 {
                    0 => 1,
                    a => a * 2,
                },
                (|a: usize| a * 3 + 1)(n),
                {
                    let a = n + 1;
                    a
                },
                usize::from(a != $a),
            ];
            let all: usize = in_calls.iter().fold(0, |all, v| all * 40 + v);
            ops::scale(&y, (all * 100_000 + doubled!(a) * 1000 + joined!(n, $a)) as f32)
        }
    };
}

bound_in_tokens!(bound, a);

fn bound_on_the_host(n: usize, x: f32) -> f32 {
    let in_calls = [(n + 2) * 2, n * 3 + 1, n + 1, 1];
    let all: usize = in_calls.iter().fold(0, |all, v| all * 40 + v);
    let doubled = if n + 2 > 2 { (n + 2) * 2 } else { n + 2 };
    2.0 * x * (all * 100_000 + doubled * 1000 + (n + 10) * 10 + n) as f32
}

/// Labels, fields and functions among tokens, of a function that has two variables, and two labels, of one name.
macro_rules! tokens_of_all_kinds {
    ($name:ident, $first:ident, $l:lifetime) => {
        #[graphable]
        fn $name(#[key] n: usize, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
            let $first = n + 10;
            let first = n + 2;
            macro_rules! short {
                ($v:expr) => {{
                    let made = if $v > 0 { Pair { first } } else { Pair { first: $v } };
                    let Pair { mut first } = made;
                    first += 1;
                    if let Some(Pair { first }) = Some(Pair { first }) { first * 10 + $v } else { first }
                }};
            }
            macro_rules! function {
                ($v:expr) => {{
                    fn doubled(first: usize, by: usize) -> Pair {
                        Pair { first: first * 2 + by }
                    }
                    fn of<T: Into<usize>>(first: T) -> usize {
                        first.into()
                    }
                    doubled($v, first).first + of(first)
                }};
            }
            let y = #[eager(support = Always)]
            ops::scale(x, 2.0)?;
            let mut c = 0;
            $l: loop {
                'l: loop {
                    c += 1;
                    if c > 2 {
                        let _ = vec![if c > 3 { break 'l } else { 1 }, if c > 2 { continue $l } else { 2 }];
                    }
                    c += vec!['inner: { if c > 1 { break 'inner 1 } 0 }, 0][0];
                }
                c += 10;
                break;
            }
            #[key]
            let all = #[eager(support = Always)]
            sum(sum(short!($first) * 100, function!($first)), c * 10_000);
            ops::scale(&y, all as f32)
        }
    };
}

fn sum(a: usize, b: usize) -> usize {
    a + b
}

tokens_of_all_kinds!(of_all_kinds, first, 'l);

fn of_all_kinds_on_the_host(n: usize, x: f32) -> f32 {
    let (given, own) = (n + 10, n + 2);
    let all = ((own + 1) * 10 + given) * 100 + given * 2 + own + own + 14 * 10_000;
    2.0 * x * all as f32
}

fn main() -> Result<()> {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(Device::cpu())?;
        let hygienic = HygienicGraph::builder().mode(mode).build(&mut rt)?;
        let closures = ClosuresGraph::builder().mode(mode).build(&mut rt)?;
        let changed = ChangedGraph::builder().mode(mode).build(&mut rt)?;
        let counted = CountedGraph::builder().mode(mode).build(&mut rt)?;
        let fields = FieldsGraph::builder().mode(mode).build(&mut rt)?;
        let hidden = HiddenGraph::builder().mode(mode).build(&mut rt)?;
        let of_all_kinds = OfAllKindsGraph::builder().mode(mode).build(&mut rt)?;
        let bound = BoundGraph::builder().mode(mode).build(&mut rt)?;
        for at in 0..12 {
            let (p, n, x) = (at % 2 == 0, at / 2 % 3, 1.0 + at as f32);
            let step = rt.step()?;
            let got = hygienic.call(&step, p, &[x])?;
            let got: Vec<f32> = got.iter().map(|t| Ok(step.read(t)?[0])).collect::<Result<_>>()?;
            assert_eq!(got, hygienic_on_the_host(p, x), "{mode} {at}");
            let got = step.read(&closures.call(&step, n, &[x])?)?[0];
            assert_eq!(got, x * 0.5 * (3 * (n + 1) + 4) as f32, "{mode} {at}");
            let got = step.read(&changed.call(&step, n, &[x])?)?[0];
            assert_eq!(got, changed_on_the_host(n, x), "{mode} {at}");
            let got = step.read(&counted.call(&step, n, &[x])?)?[0];
            assert_eq!(got, -6.0 * x * (11 * next(1 + n) + 10) as f32, "{mode} {at}");
            let got = step.read(&fields.call(&step, n, &[x])?)?[0];
            let made = (n + 4) as f32;
            assert_eq!(got, -0.5 * x * made * made * next(next(n + 2) + 2) as f32, "{mode} {at}");
            let got = step.read(&hidden.call(&step, n, &[x])?)?[0];
            assert_eq!(got, -6.0 * x * (11 * next(1 + n) + 10) as f32, "{mode} {at}");
            let got = step.read(&of_all_kinds.call(&step, n, &[x])?)?[0];
            assert_eq!(got, of_all_kinds_on_the_host(n, x), "{mode} {at}");
            let got = step.read(&bound.call(&step, n, &[x])?)?[0];
            assert_eq!(got, bound_on_the_host(n, x), "{mode} {at}");
        }
    }
    Ok(())
}
