//! Under clippy's and rustc's pickier lints, with raw names, and with a crate's own `Result`.

#![deny(warnings, unused_qualifications, unreachable_pub, single_use_lifetimes, trivial_casts)]
#![warn(clippy::pedantic)]

use graphable::prelude::*;

type Result<T, E = Error> = std::result::Result<T, E>;

#[graphable]
fn r#loop(r#type: &Tensor<f32>, #[key] r#match: u16) -> Result<Tensor<f32>> {
    let r#ref = ops::scale(r#type, f32::from(r#match))?;
    let r#mut = #[eager]
    ops::neg(&r#ref)?;
    ops::add(&r#mut, &r#ref)
}

fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    let graph = LoopGraph::builder().build(&mut rt)?;
    for _ in 0..4 {
        let step = rt.step()?;
        let x = step.tensor(&[1], &[1.0])?;
        assert_eq!(step.read(&graph.call(&step, &x, 3)?)?, [0.0]);
    }
    Ok(())
}
