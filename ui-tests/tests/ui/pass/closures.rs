//! Closures over host data and live-ins, used in several segments; `#[host] let`; allowed macros.

#![deny(warnings)]

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] sizes: Vec<usize>) -> Result<Tensor<f32>> {
    #[host]
    let total: usize = sizes.iter().sum();
    let base = total as f32;
    let scaled = |t: &Tensor<f32>, by: f32| ops::scale(t, by * base);
    assert!(total > 0, "nothing in {sizes:?}");
    let h = scaled(x, 1.0)?;
    let a = #[eager]
    ops::neg(&h)?;
    debug_assert_eq!(a.rank(), 1, "a vector, not {:?}", a.shape());
    let parts = vec![scaled(&a, 0.5)?, a.clone()];
    if matches!(sizes.as_slice(), [1, ..]) {
        return ops::add(&parts[0], &parts[1]);
    }
    ops::sub(&parts[0], &parts[1])
}

fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    let graph = DecodeGraph::builder().build(&mut rt)?;
    for _ in 0..4 {
        for (sizes, expected) in [(vec![1, 1], -4.0), (vec![2], 0.0), (vec![4], -4.0)] {
            let step = rt.step()?;
            let x = step.tensor(&[1], &[1.0f32])?;
            let y = graph.call(&step, &x, sizes)?;
            assert_eq!(step.read(&y)?, [expected]);
        }
    }
    Ok(())
}
