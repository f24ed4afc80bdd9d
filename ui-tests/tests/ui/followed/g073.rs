//! `fail/side_effects/clock.rs`, by its help.

use graphable::prelude::*;

use std::time::{Instant, SystemTime};
#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    #[host]
    let start = Instant::now();
    let y = ops::scale(x, n as f32)?;
    let when = #[eager]
    {
        SystemTime::now()
    };
    #[eager]
    {
        println!("{:?} {when:?}", start.elapsed());
    }
    Ok(y)
}
