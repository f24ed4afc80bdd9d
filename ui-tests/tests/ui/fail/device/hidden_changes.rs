//! Changes of the host that no token shows: the code of arms changes nothing around it.
use graphable::prelude::*;

struct Log(Vec<usize>);

impl Log {
    fn note(&mut self, rank: usize) {
        self.0.push(rank);
    }
}

#[graphable(helper)]
fn decode(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut log = Log(Vec::new());
    let mut y = x.clone();
    #[device]
    if p {
        log.note(y.rank());
        y = ops::exp(&y)?;
    }
    ops::scale(&y, log.0.len() as f32)
}

fn main() {}
