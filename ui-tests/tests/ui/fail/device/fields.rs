//! An arm assigns a field of a struct, which leaves it, and changes others, which would not.
use graphable::prelude::*;

#[derive(Clone)]
struct Pair<'s> {
    l: Tensor<'s, f32>,
    r: Tensor<'s, f32>,
    spare: Option<Tensor<'s, f32>>,
    all: Vec<Tensor<'s, f32>>,
    count: usize,
}

impl Pair<'_> {
    fn bump(&mut self) -> Result<()> {
        self.r = ops::add(&self.r, 100.0)?;
        self.count += 1;
        Ok(())
    }
}

fn pair<'s>(x: &Tensor<'s, f32>) -> Pair<'s> {
    Pair { l: x.clone(), r: x.clone(), spare: None, all: vec![x.clone()], count: 0 }
}

macro_rules! set {
    ($place:expr, $value:expr) => {
        $place = $value
    };
}

#[graphable(helper)]
fn methods(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut pair = pair(x);
    #[device]
    if p {
        pair.l = ops::neg(&pair.l)?;
        pair.bump()?;
        for t in pair.all.iter_mut() {
            *t = ops::neg(&*t)?;
        }
        pair.all[0].clone_from(x);
        if let Some(t) = pair.spare.as_mut() {
            *t = ops::neg(&*t)?;
        }
        pair.spare.take();
    }
    ops::add(&pair.l, &pair.r)
}

#[graphable(helper)]
fn rounds(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut pair = pair(x);
    #[device]
    while p {
        pair.l = ops::neg(&pair.l)?;
        pair.bump()?;
    }
    ops::add(&pair.l, &pair.r)
}

#[graphable(helper)]
fn patterns(k: &Scalar<u32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut pair = pair(x);
    #[device]
    match k {
        0 => {
            pair.l = ops::neg(&pair.l)?;
            let Pair { r: ref mut mine, .. } = pair;
            *mine = ops::add(&*mine, 100.0)?;
        }
        _ => match pair.spare {
            Some(ref mut mine) => *mine = ops::neg(&*mine)?,
            None => {}
        },
    }
    ops::add(&pair.l, &pair.r)
}

#[graphable(helper)]
fn macros(p: &Scalar<bool>, q: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut y = (x.clone(), x.clone(), |v: usize| v + 1);
    let mut rounds = 0;
    let mut counted = (x.clone(), x.clone(), move || {
        rounds += 1;
        rounds
    });
    #[device]
    if p {
        y.0 = ops::neg(x)?;
        set!(y.1, ops::neg(x)?);
        assert!({
            y.1 = ops::neg(x)?;
            true
        });
        counted.0 = ops::scale(x, (y.2)(1) as f32)?;
        counted.0 = ops::scale(x, (counted.2)() as f32)?;
    }
    #[device]
    if p {
        y.0 = ops::neg(x)?;
        #[device]
        if q {
            y.1 = ops::neg(x)?;
            y.0.clone_from(x);
        }
    }
    ops::add(&y.1, &counted.0)
}

fn main() {}
