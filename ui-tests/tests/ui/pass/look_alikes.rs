//! Names that the lints look for, where they mean something harmless.

#![deny(warnings)]

use graphable::prelude::*;

/// Not the clock.
#[derive(Clone, Copy)]
struct Mark(usize);

impl Mark {
    fn now(n: usize) -> Self {
        Self(n)
    }
}

pub mod env {
    pub fn var(n: usize) -> f32 {
        n as f32
    }
}

const SIZES: [usize; 3] = [1, 2, 3];
const NAMES: &[&str] = &["a", "b"];

trait Unique {
    fn unique(&self) -> usize;
}

impl Unique for Vec<usize> {
    fn unique(&self) -> usize {
        let mut sorted = self.clone();
        sorted.sort_unstable();
        sorted.dedup();
        sorted.len()
    }
}

#[derive(Params)]
struct Cell<T: Element> {
    w: Param<T>,
    #[config]
    item: usize,
}

#[graphable]
fn decode(x: &Tensor<f32>, cell: &Cell<f32>, #[key] counts: Vec<usize>) -> Result<Tensor<f32>> {
    let at = Mark::now(counts.unique()).0;
    let by = crate::env::var(at) + SIZES.iter().sum::<usize>() as f32;
    let first = counts.iter().copied().next().unwrap_or(1);
    let h = {
        // The tensor's name, for a number.
        let x = x.rank();
        if x > first && counts[0] == x { cell.item } else { NAMES.len() }
    };
    let plus = |x: f32| x + 1.0;
    let total: Vec<f32> = SIZES.map(|x| x as f32 * 2.0).into();
    let y = ops::mul(x, &cell.w)?;
    let item = match h {
        0 => 1.0,
        n if n > 10 => 2.0,
        _ => plus(total[0]),
    };
    let a = #[eager]
    ops::neg(&y)?;
    for x in counts.iter() {
        assert!(*x > 0, "{x} in {counts:?} for {a:?}");
    }
    ops::scale(&a, by * item)
}

fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    let graph = DecodeGraph::builder().build(&mut rt)?;
    let cell = Cell { w: Param::new(&rt, &[1], &[2.0])?, item: 3 };
    for _ in 0..4 {
        let step = rt.step()?;
        let x = step.tensor(&[1], &[1.0])?;
        assert_eq!(step.read(&graph.call(&step, &x, &cell, vec![1, 1, 2])?)?, [-48.0]);
    }
    Ok(())
}
