//! Arms that assign fields of a struct and use the others, and parts of what a `&mut` refers to.

#![deny(warnings)]

use graphable::prelude::*;

#[derive(Clone)]
struct Net<'s> {
    l: Tensor<'s, f32>,
    r: Tensor<'s, f32>,
    spare: Option<Tensor<'s, f32>>,
    all: Vec<Tensor<'s, f32>>,
    inner: Inner<'s>,
    name: String,
    n: usize,
    by: fn(usize) -> usize,
}

#[derive(Clone)]
struct Inner<'s> {
    a: Tensor<'s, f32>,
    steps: usize,
}

impl<'s> Net<'s> {
    fn of(x: &Tensor<'s, f32>) -> Result<Self> {
        Ok(Self {
            l: x.clone(),
            r: ops::scale(x, 2.0)?,
            spare: Some(ops::scale(x, 3.0)?),
            all: vec![x.clone(), ops::neg(x)?],
            inner: Inner { a: ops::scale(x, 4.0)?, steps: 2 },
            name: "net".to_owned(),
            n: 5,
            by: |n| n + 1,
        })
    }

    fn middle(&self) -> Result<Tensor<'s, f32>> {
        ops::scale(&ops::add(&self.l, &self.r)?, 0.5)
    }

    fn right(&self) -> &Tensor<'s, f32> {
        &self.r
    }

    /// The name of a method that takes its receiver, in an `Option`.
    fn filter(&self, least: usize) -> bool {
        self.n >= least
    }

    fn clear(&self) -> usize {
        self.n
    }
}

macro_rules! twice {
    ($x:expr) => {
        ops::scale($x, 2.0)?
    };
}

fn moved(x: Tensor<'_, f32>) -> Tensor<'_, f32> {
    x
}

/// Everything that reads other fields: methods, copies, iterators, indices, patterns, macros, moves.
#[graphable]
fn read(#[host] p: &Scalar<bool>, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Vec<Tensor<f32>>> {
    let mut net = Net::of(x)?;
    #[device]
    if p {
        net.l = net.middle()?;
        assert!(net.filter(1) && net.name.len() == 3, "{}", net.name);
        net.l = ops::scale(&net.l, net.n.max(3) as f32)?;
        net.l = ops::add(&net.l, net.right())?;
        for t in net.all.iter() {
            net.l = ops::add(&net.l, t)?;
        }
        net.l = ops::add(&net.l, &twice!(&net.all[1]))?;
        if let Some(t) = &net.spare {
            net.l = ops::sub(&net.l, t)?;
        }
        if let Some(t) = net.spare.as_ref() {
            net.l = ops::sub(&net.l, t)?;
        }
        let spare = net.spare.unwrap_or(x.clone());
        net.l = ops::add(&net.l, &spare)?;
        net.l = ops::scale(&net.l, ((net.by)(1) + net.clear()) as f32)?;
        net.inner.a = ops::scale(&net.inner.a.clone(), net.inner.steps.pow(2) as f32)?;
        let all = vec![net.inner.a.clone(), twice!(&net.l)];
        net.l = ops::add(&all[0], &all[1])?;
        let r = moved(net.r);
        net.l = ops::add(&net.l, &r)?;
        match net.n {
            0 => {}
            n => net.l = ops::scale(&net.l, n as f32)?,
        }
        let net = Net { n: 1, ..Net::of(x)? };
        let _ = net.name;
    } else {
        // A variable of its own may change as it likes.
        let mut net = net.clone();
        net.all.push(x.clone());
        net.spare.take();
    }
    Ok(vec![net.l, net.r, net.inner.a])
}

/// Below an assigned field, everything may change; what is moved and not used afterwards as well.
#[graphable]
fn below(#[host] p: &Scalar<bool>, #[host] n: &Scalar<u32>, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut pair = (vec![x.clone()], x.clone());
    #[device]
    if p {
        pair.0 = vec![ops::neg(x)?];
        pair.0[0] = ops::scale(&pair.0[0], pair.1.rank() as f32)?;
        pair.0.reverse();
        for t in pair.0.iter_mut() {
            *t = ops::scale(&*t, 3.0)?;
        }
    }
    let mut i = ops::zeros(x.scope(), ())?;
    #[device(limit = 5)]
    while ops::lt(&i, n)? {
        i = ops::add(&i, 1u32)?;
        pair.0[0] = ops::add(&pair.0[0], &pair.1)?;
        #[device]
        if p {
            pair.1 = ops::add(pair.0.first().unwrap_or(x), &pair.1)?;
        }
    }
    let y = ops::add(&pair.0[0], &pair.1)?;
    let mut gone = Net::of(x)?;
    #[device]
    if p {
        gone.l = ops::neg(&y)?;
        gone.all.push(gone.l.clone());
        let Net { all, l, .. } = gone;
        ops::add(&all[2], &l)
    } else {
        Ok(y)
    }
}

#[derive(Clone, Carried, GraphOutput)]
struct Pair<'s> {
    l: Tensor<'s, f32>,
    r: Tensor<'s, f32>,
}

impl Pair<'_> {
    fn negate(&mut self) -> Result<()> {
        self.r = ops::neg(&self.r)?;
        Ok(())
    }
}

#[graphable(helper)]
fn through<'s>(pair: &mut Pair<'s>, all: &mut Vec<Tensor<'s, f32>>, p: &Scalar<bool>) -> Result<()> {
    #[device]
    if p {
        pair.l = ops::neg(&pair.r)?;
        // All of it leaves the arm.
        pair.negate()?;
        all[0] = ops::scale(&pair.l, 2.0)?;
    }
    for one in all.iter_mut().take(0) {
        *one = ops::neg(&*one)?;
    }
    let mine = &mut *pair;
    #[device(limit = 3)]
    while ops::lt(&ops::max(&mine.l, 0)?, 10.0)? {
        mine.l = ops::add(&mine.l, 10.0)?;
        (mine.r, all[1]) = (all[1].clone(), mine.r.clone());
    }
    Ok(())
}

#[graphable]
fn referents(#[host] p: &Scalar<bool>, #[host] #[dims(1)] x: &Tensor<f32>) -> Result<Vec<Tensor<f32>>> {
    let mut pair = Pair { l: x.clone(), r: ops::scale(x, 2.0)? };
    let mut all = vec![x.clone(), ops::scale(x, 3.0)?];
    let seen = #[eager(support = Always)]
    ops::neg(x)?;
    through(&mut pair, &mut all, p)?;
    let mut pairs = vec![pair.clone(), pair];
    for pair in pairs.iter_mut() {
        #[device]
        if p {
            pair.l = ops::add(&pair.l, &seen)?;
        }
    }
    if let Some(pair) = pairs.last_mut() {
        #[device]
        if p {
            pair.r = ops::add(&pair.r, 0.5)?;
        }
    }
    all.extend(pairs.iter().flat_map(|pair| [pair.l.clone(), pair.r.clone()]));
    Ok(all)
}

#[derive(Params)]
struct Cache {
    s: State<f32>,
}

impl Cache {
    fn append(&self, x: &Tensor<f32>) -> Result<()> {
        ops::store(&self.s, x)
    }
}

/// A method that only has the name of one of a collection.
#[graphable]
fn appended(
    #[host] p: &Scalar<bool>,
    #[host] #[dims(1)] x: &Tensor<f32>,
    a: &Cache,
    b: &Cache,
    #[key] second: bool,
) -> Result<Tensor<f32>> {
    let mut cache = a;
    if second {
        cache = b;
    }
    #[device]
    if p {
        cache.append(x)?;
    }
    ops::load(x.scope(), &cache.s)
}

fn main() -> Result<()> {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(Device::cpu())?;
        let read = ReadGraph::builder().mode(mode).build(&mut rt)?;
        let below = BelowGraph::builder().mode(mode).build(&mut rt)?;
        let appended = AppendedGraph::builder().mode(mode).build(&mut rt)?;
        let (a, b) = (Cache { s: State::zeros(&rt, &[1])? }, Cache { s: State::zeros(&rt, &[1])? });
        for (p, second, x, expected) in [(true, false, 1.0, 1.0), (false, false, 2.0, 1.0), (true, true, 3.0, 3.0), (false, false, 4.0, 1.0)] {
            let step = rt.step()?;
            let y = appended.call(&step, p, &[x], &a, &b, second)?;
            assert_eq!(step.read(&y)?, [expected]);
        }
        let referents = ReferentsGraph::builder().mode(mode).build(&mut rt)?;
        for _ in 0..3 {
            for p in [true, false] {
                let step = rt.step()?;
                let y = read.call(&step, p, &[1.0f32])?;
                let y: Vec<f32> = y.iter().map(|t| Ok(step.read(t)?[0])).collect::<Result<_>>()?;
                // l = ((1.5 * 5 + 2 + 1 - 1 - 2 - 3 - 3 + 3) * 7 * 2 + 16 + 2) * 5
                assert_eq!(y, if p { [405.0, 2.0, 16.0] } else { [1.0, 2.0, 4.0] }, "{mode}");
                for n in [0, 1, 3] {
                    let y = step.read(&below.call(&step, p, n, &[1.0f32])?)?[0];
                    let (mut a, mut b) = (if p { -3.0 } else { 1.0 }, 1.0);
                    for _ in 0..n {
                        a += b;
                        if p {
                            b += a;
                        }
                    }
                    assert_eq!(y, if p { -2.0 * (a + b) } else { a + b }, "{mode} {n}");
                }
                let y = referents.call(&step, p, &[1.0f32])?;
                let y: Vec<f32> = y.iter().map(|t| Ok(step.read(t)?[0])).collect::<Result<_>>()?;
                let expected =
                    if p { [-4.0, 3.0, 17.0, -2.0, 17.0, -1.5] } else { [1.0, 2.0, 11.0, 3.0, 11.0, 3.0] };
                assert_eq!(y, expected, "{mode} {p}");
            }
        }
    }
    Ok(())
}
