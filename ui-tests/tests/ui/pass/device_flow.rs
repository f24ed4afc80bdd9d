//! Control flow of the device: values, carried variables, moves and errors, in every mode, with recordings that serve all
//! paths.

#![deny(warnings)]

use graphable::prelude::*;

#[derive(Params)]
struct Model {
    w: Param<f32>,
    log: State<f32>,
    #[config]
    steps: usize,
}

#[derive(Clone, GraphOutput)]
struct Pair<'s> {
    l: Tensor<'s, f32>,
    r: Tensor<'s, f32>,
}

const HALVED: i32 = 7;

/// A helper: a value in tail position, results in arms, a nested decision, early errors.
#[graphable]
fn chosen(p: &Scalar<bool>, q: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    if x.rank() != 1 {
        return Err(Error::Argument { op: "chosen", reason: "one row".to_owned() });
    }
    #[device]
    if p {
        ops::neg(x)
    } else if q {
        let y = ops::scale(x, 3.0)?;
        #[device]
        if ops::gt(&ops::sum(&y, 0)?, 0.0)? { ops::add(&y, 1.0) } else { Ok(y) }
    } else {
        Ok(x.clone())
    }
}

/// A trait with generics.
#[graphable]
trait Choose {
    fn choose(&self, n: &Scalar<i32>, x: &Tensor<f32>) -> Result<Tensor<f32>>;
    fn twice(&self, n: &Scalar<i32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let mut y = self.choose(n, x)?;
        #[device]
        if ops::ge(n, 2)? {
            y = self.choose(n, &y)?;
        }
        Ok(y)
    }
}

#[graphable]
impl Choose for Model {
    fn choose(&self, n: &Scalar<i32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let y;
        #[device]
        match n {
            0 => y = ops::mul(x, &self.w)?,
            -1 | HALVED => y = ops::scale(x, 0.5)?,
            _ => y = ops::neg(x)?,
        }
        Ok(y)
    }
}

#[graphable(helper)]
fn counted<T: Number>(to: &Scalar<i32>, x: &Tensor<T>, out: &mut Tensor<T>) -> Result<Tensor<i32>> {
    let mut i = ops::zeros(x.scope(), ())?;
    #[device(limit = 20)]
    while ops::lt(&i, to)? {
        i = ops::add(&i, 1)?;
        *out = ops::add(&*out, x)?;
    }
    Ok(i)
}

/// What is moved in several arms, in part and as a whole; a swap; fields; shadowing; a boundary before, after and between.
#[graphable]
fn decode(
    #[host] n: &Scalar<i32>,
    #[host] p: &Scalar<bool>,
    #[host] #[dims(2)] x: &Tensor<f32>,
    model: &Model,
) -> Result<(Tensor<f32>, Tensor<i32>)> {
    let not_p = Scalar::from_tensor(ops::logical_not(p)?)?;
    let h = chosen(p, &not_p, x)?;
    let mut a = ops::neg(&h)?;
    let mut b = ops::scale(&h, 2.0)?;
    let mut i = ops::zeros(x.scope(), ())?;
    #[device(limit = 10)]
    while ops::lt(&i, n)? {
        (a, b) = (b, ops::add(&a, 1.0)?);
        i = ops::add(&i, 1)?;
    }
    let e = #[eager]
    ops::neg(&a)?;
    let mut pair = Pair { l: e.clone(), r: b };
    let given = Some(x.clone());
    for step in 0..model.steps {
        #[device]
        if p {
            pair.l = ops::add(&pair.l, &pair.r)?;
            if step == 1 {
                pair.r = ops::scale(&pair.r, 0.5)?;
                continue_with(&model.log, &pair.r)?;
            }
        }
    }
    let value = #[device]
    if ops::ge(n, 3)? {
        let a = a;
        pair.r = ops::neg(&a)?;
        given.unwrap()
    } else {
        ops::add(&a, &e)?
    };
    let total = #[eager]
    ops::add(&pair.l, &pair.r)?;
    let y = model.twice(n, &value)?;
    let mut out = ops::add(&total, &y)?;
    let i = counted(n, x, &mut out)?;
    Ok((out, i))
}

fn continue_with<'s>(log: &State<f32>, x: &Tensor<'s, f32>) -> Result<()> {
    ops::store(log, x)
}

type Row = [f32; 2];

fn map(x: Row, f: impl Fn(f32) -> f32) -> Row {
    x.map(f)
}

fn zip(x: Row, y: Row) -> Row {
    [x[0] + y[0], x[1] + y[1]]
}

/// The same, on the host.
fn plain(n: i32, p: bool, x: Row, log: &mut Row) -> (Row, i32) {
    let h = if p {
        map(x, |v| -v)
    } else {
        let y = map(x, |v| 3.0 * v);
        if y[0] + y[1] > 0.0 { map(y, |v| v + 1.0) } else { y }
    };
    let (mut a, mut b) = (map(h, |v| -v), map(h, |v| 2.0 * v));
    for _ in 0..n {
        (a, b) = (b, map(a, |v| v + 1.0));
    }
    let e = map(a, |v| -v);
    let (mut l, mut r) = (e, b);
    for step in 0..2 {
        if p {
            l = zip(l, r);
            if step == 1 {
                r = map(r, |v| 0.5 * v);
                *log = r;
            }
        }
    }
    let value = if n >= 3 {
        r = map(a, |v| -v);
        x
    } else {
        zip(a, e)
    };
    let choose = |x: Row| match n {
        0 => map(x, |v| 4.0 * v),
        -1 | HALVED => map(x, |v| 0.5 * v),
        _ => map(x, |v| -v),
    };
    let mut y = choose(value);
    if n >= 2 {
        y = choose(y);
    }
    let mut out = zip(zip(l, r), y);
    for _ in 0..n {
        out = zip(out, x);
    }
    (out, n.max(0))
}

/// Names that generated code has as well.
#[graphable(helper)]
fn named(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let (arm, given, value, error, carried, round) = (x, x, x, x, x, x);
    let (__arm, __given, __value, __o0) = (arm, given, value, carried);
    let mut limit = x.clone();
    #[device(limit = 3)]
    while p {
        limit = ops::add(&ops::add(__arm, __given)?, &ops::add(__value, __o0)?)?;
        limit = ops::add(&limit, &ops::add(error, round)?)?;
    }
    Ok(limit)
}

fn main() -> Result<()> {
    let _ = named;
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(Device::cpu())?;
        let w = Param::new(&rt, &[2], &[4.0f32, 4.0])?;
        let model = Model { w, log: State::zeros(&rt, &[2])?, steps: 2 };
        let graph = DecodeGraph::builder().mode(mode).build(&mut rt)?;
        let mut log = [0.0; 2];
        let mut recordings = 0;
        for turn in 0..4 {
            for n in [0, 1, -1, 2, 3, 7, 4] {
                for p in [true, false] {
                    for x in [[1.0, 2.0], [-3.0, 0.5]] {
                        let expected = plain(n, p, x, &mut log);
                        let step = rt.step()?;
                        let (y, i) = graph.call(&step, n, p, &x, &model)?;
                        assert_eq!(step.read(&y)?, expected.0, "{mode} {turn} {n} {p} {x:?}");
                        assert_eq!(step.item(&i)?, expected.1);
                        assert_eq!(step.read(&ops::load(step.scope(), &model.log)?)?, log);
                    }
                }
            }
            match turn {
                0 => recordings = rt.stats().recordings,
                _ => assert_eq!(rt.stats().recordings, recordings),
            }
        }
        assert_eq!(mode == Mode::None, recordings == 0);
    }
    Ok(())
}
