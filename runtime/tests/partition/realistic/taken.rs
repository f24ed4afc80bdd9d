//! Values that methods take: builders, wrappers and options, as a whole and in parts, which nothing uses after their segment.

use graphable::{graphable, prelude::*};

use super::{gives, mix, same};

/// Its methods take it, change it, or only read it.
#[derive(Clone, GraphOutput)]
struct Sum<'s> {
    parts: Vec<Tensor<'s, f32>>,
}

impl<'s> Sum<'s> {
    fn new() -> Self {
        Self { parts: Vec::new() }
    }

    fn with(mut self, part: &Tensor<'s, f32>) -> Self {
        self.parts.push(part.clone());
        self
    }

    fn push(&mut self, part: &Tensor<'s, f32>) {
        self.parts.push(part.clone());
    }

    fn first(&self) -> Result<Tensor<'s, f32>> {
        ops::neg(&self.parts[0])
    }

    fn finish(self) -> Result<Tensor<'s, f32>> {
        let mut parts = self.parts.into_iter();
        let first = parts.next().expect("something was pushed");
        parts.try_fold(first, |sum, part| ops::add(&sum, &part))
    }
}

#[derive(Clone, GraphOutput)]
struct Wrapped<'s>(Tensor<'s, f32>);

impl<'s> Wrapped<'s> {
    fn get(&self) -> &Tensor<'s, f32> {
        &self.0
    }

    fn out(self) -> Tensor<'s, f32> {
        self.0
    }
}

#[derive(Clone, GraphOutput)]
struct Both<'s> {
    one: Wrapped<'s>,
    two: Wrapped<'s>,
}

fn both<'s>(one: &Tensor<'s, f32>, two: &Tensor<'s, f32>) -> Result<Both<'s>> {
    Ok(Both { one: Wrapped(ops::neg(one)?), two: Wrapped(ops::neg(two)?) })
}

fn some<'s>(n: usize, x: &Tensor<'s, f32>) -> Option<Tensor<'s, f32>> {
    (n > 0).then(|| x.clone())
}

#[graphable]
fn builders(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let one = Sum::new().with(x);
    let two = one.with(x);
    let h = two.finish()?;
    let a = #[eager]
    mix(&h)?;
    let mut sum = Sum::new();
    sum.push(&a);
    sum.push(x);
    let first = sum.first()?;
    let h = sum.finish()?;
    let b = #[eager]
    mix(&h)?;
    let mut sum = Sum::new();
    sum.push(&b);
    sum = sum.with(&first);
    let h = if n > 0 { sum.finish()? } else { sum.first()? };
    let mut unread = vec![h.clone()];
    unread.push(h.clone());
    #[eager]
    mix(&h)
}

#[graphable]
fn wrappers(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let pair = both(x, x)?;
    let h = ops::add(pair.one.get(), pair.two.get())?;
    let one = pair.one.out();
    let a = #[eager]
    mix(&ops::add(&one, &h)?)?;
    let pair = both(&a, x)?;
    let one = pair.one.out();
    let two = pair.two.out();
    #[eager]
    mix(&ops::sub(&one, &two)?)
}

#[graphable]
fn options(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let bias = some(n, x);
    let a = #[eager]
    mix(x)?;
    let added = bias.as_ref().map(|bias| ops::add(&a, bias)).transpose()?;
    let h = added.unwrap_or_else(|| ops::neg(&a).expect("it has any shape"));
    let b = #[eager]
    mix(&h)?;
    let other = some(1 - n, &b);
    let last = other.or_else(|| some(1, x)).map_or_else(|| ops::neg(&b), |t| ops::add(&t, &b))?;
    #[eager]
    same(&last)
}

#[test]
fn values_that_methods_take() {
    // x 1, h 2, a 4; first -4, h 5, b 10; 6 or -10.
    gives!(BuildersGraph, 12.0, |g, step, x, m| g.call(&step, &x, 1));
    gives!(BuildersGraph, -20.0, |g, step, x, m| g.call(&step, &x, 0));
    // h -2, a -6; one 6, two -1.
    gives!(WrappersGraph, 14.0, |g, step, x, m| g.call(&step, &x));
    // a 2: 3 and 6, with x; or -2 and -4, twice.
    gives!(OptionsGraph, 7.0, |g, step, x, m| g.call(&step, &x, 1));
    gives!(OptionsGraph, -8.0, |g, step, x, m| g.call(&step, &x, 0));
}
