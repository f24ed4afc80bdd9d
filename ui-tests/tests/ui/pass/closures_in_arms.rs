//! Closures that arms call name what they named where they were made, whatever the same names mean by then.

#![deny(warnings)]

use graphable::prelude::*;

/// A closure that has the name of another one, or of a variable, which it uses.
#[graphable]
fn wrapped(#[host] p: &Scalar<bool>, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Vec<Tensor<f32>>> {
    let f = |v: f32| ops::add(x, v);
    let f = |v: f32| f(v + 1.0);
    let mut y = f(1.0)?;
    #[device]
    if p {
        y = f(2.0)?;
    }
    let f = |v: f32| f(v * 2.0);
    let mut z = x.clone();
    #[device]
    if p {
        z = f(2.0)?;
        #[device]
        if ops::logical_not(p)? {
            z = ops::neg(&z)?;
        } else {
            z = ops::add(&f(3.0)?, &z)?;
        }
    }
    let z = ops::add(&z, &f(5.0)?)?;
    let t = 2.0f32;
    let t = |v: f32| ops::add(x, v + t);
    let mut w = t(1.0)?;
    #[device]
    if p {
        w = t(2.0)?;
    }
    let t = ops::scale(x, 2.0)?;
    let t = |v: f32| ops::add(&t, v);
    #[device]
    if p {
        w = ops::add(&w, &t(2.0)?)?;
    } else {
        w = ops::sub(&w, &t(1.0)?)?;
    }
    let half = |v: f32| half(x, v);
    #[device]
    if p {
        w = ops::add(&w, &half(2.0)?)?;
    }
    Ok(vec![y, z, w, half(4.0)?])
}

fn half<'s>(x: &Tensor<'s, f32>, v: f32) -> Result<Tensor<'s, f32>> {
    ops::add(x, v * 0.5)
}

/// A closure calls another one, whose names mean something else by then.
#[graphable]
fn called(#[host] p: &Scalar<bool>, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Vec<Tensor<f32>>> {
    let (mut y, mut z) = (x.clone(), ops::neg(x)?);
    let t = 10.0f32;
    // In the macro, `t` cannot be given another name.
    let g = |u: f32| ops::add(x, [t, u].len() as f32 + vec![t, u][0]);
    let t = 1.5f32;
    #[device]
    if p {
        let h = |v: f32| g(v + 0.5);
        let g = |u: f32| ops::scale(x, u);
        #[device]
        if p {
            y = h(t)?;
        }
        z = g(3.0)?;
    }
    let s = 100.0f32;
    let one = |v: f32| ops::add(x, v + s);
    let s = 1.0f32;
    let two = |v: f32| one(v + s);
    let one = |v: f32| ops::scale(x, v);
    #[device]
    if p {
        y = ops::add(&y, &two(2.0)?)?;
        z = ops::add(&z, &one(2.0)?)?;
    }
    Ok(vec![y, z])
}

/// Names of loops, patterns, functions and structs in a closure are its own.
#[allow(non_snake_case)]
#[graphable]
fn own(#[host] p: &Scalar<bool>, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Vec<Tensor<f32>>> {
    let s = 100.0f32;
    let f = |v: f32| {
        fn shifted(s: f32) -> f32 {
            s + 1.0
        }
        let (mut t, mut left) = (shifted(s), vec![v, 1.0]);
        while let Some(s) = left.pop() {
            t += s;
        }
        while let Some(s) = left.first()
            && *s > 0.0
        {
            t += *s;
        }
        ops::add(x, t)
    };
    let T = 5.0f32;
    let g = |v: f32| {
        let one = match v {
            T => T + 1.0,
        };
        ops::add(x, one + T)
    };
    let s = 7.0f32;
    let T = 6000.0f32;
    let (mut y, mut z) = (ops::neg(x)?, ops::neg(x)?);
    #[device]
    if p {
        y = f(s)?;
        z = ops::add(&g(3.0)?, T)?;
    }
    Ok(vec![y, z])
}

trait First {
    fn rate(&self) -> f32;
}
impl First for Tensor<'_, f32> {
    fn rate(&self) -> f32 {
        1.0
    }
}
mod other {
    use super::*;
    pub trait Second {
        fn rate(self) -> f32;
    }
    impl Second for &&Tensor<'_, f32> {
        fn rate(self) -> f32 {
            70.0
        }
    }
}

/// Macros and methods are those of the closure's place.
#[graphable]
fn items(#[host] p: &Scalar<bool>, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Vec<Tensor<f32>>> {
    macro_rules! by {
        () => {
            1.0f32
        };
    }
    let f = |v: f32| ops::add(x, v * by!());
    macro_rules! by {
        () => {
            50.0f32
        };
    }
    let mut y = ops::neg(x)?;
    #[device]
    if p {
        y = ops::add(&f(3.0)?, by!())?;
    }
    let g = |v: f32| {
        let w = &x;
        ops::add(w, v * w.rate())
    };
    let mut z = ops::neg(x)?;
    #[device]
    if p {
        use other::Second;
        z = ops::add(&g(2.0)?, Second::rate(&x))?;
    }
    {
        #[allow(unused_imports)]
        use other::Second;
        #[device]
        if p {
            z = ops::add(&g(2.0)?, &z)?;
        }
    }
    #[device]
    if p {
        trait Third {
            fn rate(self) -> f32;
        }
        impl Third for &&&Tensor<'_, f32> {
            fn rate(self) -> f32 {
                900.0
            }
        }
        z = ops::add(&g(2.0)?, &ops::add(&z, Third::rate(&&x))?)?;
    }
    {
        use other::Second;
        y = ops::add(&y, Second::rate(&x))?;
        let h = |v: f32| g(v + 1.0);
        let g = |v: f32| ops::scale(x, v);
        #[device]
        if p {
            y = ops::add(&h(2.0)?, &ops::add(&y, &g(2.0)?)?)?;
        }
    }
    Ok(vec![y, z])
}

/// The same on the host.
fn plain(p: bool, x: f32) -> Vec<f32> {
    let f = |v: f32| x + v + 1.0;
    let y = if p { f(2.0) } else { f(1.0) };
    let f = |v: f32| f(v * 2.0);
    let z = if p { f(2.0) + f(3.0) } else { x } + f(5.0);
    let w = if p { x + 4.0 + 2.0 * x + 2.0 + x + 1.0 } else { x + 3.0 - (2.0 * x + 1.0) };
    let mut all = vec![y, z, w, x + 2.0];
    all.extend(if p { [x + 12.0 + x + 103.0, 3.0 * x + 2.0 * x] } else { [x, -x] });
    all.extend(if p { [x + 109.0, x + 9.0 + 6000.0] } else { [-x, -x] });
    all.extend(if p { [x + 53.0 + 70.0 + x + 3.0 + 2.0 * x, x + 2.0 + x + 2.0 + x + 72.0 + 900.0] } else { [-x + 70.0, -x] });
    all
}

fn main() -> Result<()> {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(Device::cpu())?;
        let wrapped = WrappedGraph::builder().mode(mode).build(&mut rt)?;
        let called = CalledGraph::builder().mode(mode).build(&mut rt)?;
        let own = OwnGraph::builder().mode(mode).build(&mut rt)?;
        let items = ItemsGraph::builder().mode(mode).build(&mut rt)?;
        for (p, x) in [(true, 1.0), (false, 1.0), (true, 2.0), (false, 3.0), (true, 1.0)] {
            let step = rt.step()?;
            let mut y = wrapped.call(&step, p, &[x])?;
            y.extend(called.call(&step, p, &[x])?);
            y.extend(own.call(&step, p, &[x])?);
            y.extend(items.call(&step, p, &[x])?);
            let y: Vec<f32> = y.iter().map(|t| Ok(step.read(t)?[0])).collect::<Result<_>>()?;
            assert_eq!(y, plain(p, x), "{mode} {p} {x}");
        }
    }
    Ok(())
}
