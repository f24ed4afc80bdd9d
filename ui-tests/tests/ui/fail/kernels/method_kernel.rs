//! A method is no kernel.

use graphable::prelude::*;

struct Act;

impl Act {
    #[kernel]
    fn apply(self, x: f32) -> f32 {
        x
    }
}

fn main() {}
