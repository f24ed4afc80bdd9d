//! Places that are no variables of the function, assigned in bodies.
use graphable::prelude::*;

#[derive(Params)]
struct Model {
    last: State<f32>,
    #[config]
    rounds: u32,
}

#[graphable]
impl Model {
    fn decode(&self, p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let seen = std::cell::RefCell::new(x.clone());
        let mut y = x.clone();
        #[device]
        if p {
            y = ops::neg(&y)?;
            self.last = y.clone();
        } else {
            (self.rounds, y) = (0, ops::exp(&y)?);
        }
        #[device]
        while p {
            self.rounds += 1;
            y = ops::neg(&y)?;
        }
        #[device]
        if p {
            *seen.borrow_mut() = ops::neg(&y)?;
        }
        ops::add(&y, &*seen.borrow())
    }
}

fn main() {}
