//! Results of rows come at the end.

use graphable::prelude::*;

#[kernel(rows)]
fn positive(x: Row<f32>) -> f32 {
    if x.min() < 0.0 {
        return 0.0;
    }
    x.sum()
}

fn main() {}
