//! An error type of one's own, early `?` on host data, labelled loops, `let … else`, eager values that steer.

#![deny(warnings)]

use graphable::prelude::*;

#[derive(Debug)]
enum Failure {
    Graph(Error),
    Number(std::num::ParseIntError),
    Empty,
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Self::Graph(e)
    }
}

impl From<std::num::ParseIntError> for Failure {
    fn from(e: std::num::ParseIntError) -> Self {
        Self::Number(e)
    }
}

#[graphable]
fn decode(x: &Tensor<f32>, #[key] text: String) -> Result<Tensor<f32>, Failure> {
    let Some(first) = text.split(',').next() else { return Err(Failure::Empty) };
    let n: u32 = first.parse()?;
    let mut h = ops::scale(x, n as f32)?;
    'outer: loop {
        for _ in 0..2 {
            h = ops::scale(&h, 2.0)?;
            let done = #[eager(cx)]
            {
                cx.read(&h)?[0] > 10.0
            };
            if done {
                break 'outer;
            }
        }
        h = ops::neg(&ops::neg(&h)?)?;
    }
    Ok(h)
}

fn main() -> Result<(), Failure> {
    let mut rt = Runtime::new(Device::cpu())?;
    let graph = DecodeGraph::builder().build(&mut rt)?;
    for _ in 0..4 {
        let step = rt.step()?;
        let x = step.tensor(&[1], &[1.0])?;
        let y = graph.call(&step, &x, "3,4".to_owned())?;
        assert_eq!(step.read(&y)?, [12.0]);
        drop(y);
        assert!(matches!(graph.call(&step, &x, "x".to_owned()), Err(Failure::Number(_))));
        if let Err(Failure::Graph(e)) = graph.call(&step, &x, String::new()) {
            panic!("{e}");
        }
    }
    Ok(())
}
