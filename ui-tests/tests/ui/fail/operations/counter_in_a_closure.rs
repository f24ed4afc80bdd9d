//! The device's thread runs the code, perhaps for two runtimes at once.

use std::cell::Cell;

use graphable::custom::CustomOp;

fn operation() -> CustomOp {
    let calls = Cell::new(0);
    CustomOp::builder("counted")
        .cpu(move |_| {
            calls.set(calls.get() + 1);
            Ok(())
        })
        .build()
}

fn main() {
    operation();
}
