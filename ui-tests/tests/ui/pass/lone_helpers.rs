//! Associated functions that are no graphs: in an `impl` without the attribute, it fills in lifetimes, whatever they name. Those
//! that the `impl` or the trait declares are not declared again.

use graphable::prelude::*;

struct Net;

impl Net {
    #[graphable]
    fn negated(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        #[cfg(not(test))]
        compile_error!("it is compiled as a test");
        ops::neg(x)
    }
}

trait Norm {
    #[graphable]
    fn norm(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        ops::exp(x)
    }
}

impl Norm for Net {
    #[graphable]
    fn norm(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        Self::negated(x)
    }
}

struct Pair<'s> {
    l: Tensor<'s, f32>,
    r: Tensor<'s, f32>,
}

impl<'s> Pair<'s> {
    #[graphable(helper)]
    fn of(l: &Tensor<f32>, r: &Tensor<'s, f32>) -> Result<Self> {
        Ok(Self { l: l.clone(), r: r.clone() })
    }

    #[graphable(helper)]
    fn sum(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        ops::add(&ops::add(&self.l, &self.r)?, x)
    }

    #[graphable(helper)]
    fn shift(&mut self, by: Tensor<f32>) -> Result<()> {
        self.l = ops::add(&self.l, &by)?;
        Ok(())
    }
}

/// Another name for the lifetime of the step, and one of the host's.
struct Shifted<'t, 'h> {
    by: Tensor<'t, f32>,
    times: &'h [usize],
}

trait Shift<'t, T> {
    fn shifted(&self, x: &Tensor<'t, T>) -> Result<Tensor<'t, T>>;

    #[graphable(helper)]
    fn twice(&self, x: &Tensor<T>) -> Result<Tensor<'t, T>> {
        self.shifted(&self.shifted(x)?)
    }
}

impl<'t> Shift<'t, f32> for Shifted<'t, '_> {
    #[graphable(helper)]
    fn shifted(&self, x: &Tensor<'t, f32>) -> Result<Tensor<f32>> {
        let mut y = x.clone();
        for _ in self.times {
            y = ops::add(&y, &self.by)?;
        }
        Ok(y)
    }
}

impl<'h> Shifted<'_, 'h> {
    #[graphable(helper)]
    fn new(by: &Tensor<f32>, times: &'h [usize]) -> Result<Shifted<'s, 'h>> {
        Ok(Shifted { by: by.clone(), times })
    }
}

#[graphable]
fn all(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let y = Net::norm(&Net::negated(x)?)?;
    let mut pair = Pair::of(&y, x)?;
    pair.shift(y.clone())?;
    let times = [0, 1];
    let x = Shifted::new(x, &times)?.twice(x)?;
    // y + y + x + 5 x
    pair.sum(&x)
}

fn main() {
    let mut rt = Runtime::new(Device::cpu()).unwrap();
    let graph = AllGraph::builder().build(&mut rt).unwrap();
    let step = rt.step().unwrap();
    let x = step.tensor(&[2], &[1.0f32, -2.0]).unwrap();
    let y = step.read(&graph.call(&step, &x).unwrap()).unwrap();
    assert_eq!(y, [8.0, -16.0]);
}
