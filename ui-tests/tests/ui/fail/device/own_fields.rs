//! Fields of a value that a method may change, assigned in arms.
use graphable::prelude::*;

#[derive(Clone)]
struct Pair<'s> {
    l: Tensor<'s, f32>,
    r: Tensor<'s, f32>,
}

#[graphable]
impl<'s> Pair<'s> {
    fn update(&mut self, p: &Scalar<'s, bool>) -> Result<()> {
        #[device]
        if p {
            self.l = ops::add(&self.r, 1.0)?;
        }
        Ok(())
    }

    fn updated(mut self, p: &Scalar<'s, bool>) -> Result<Tensor<'s, f32>> {
        #[device]
        while p {
            self.r = ops::add(&self.l, 1.0)?;
        }
        Ok(self.r)
    }
}

fn main() {}
