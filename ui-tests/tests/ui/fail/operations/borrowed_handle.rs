//! An operation outlives the recordings that hold it, so it owns what its code uses.

use graphable::custom::CustomOp;

fn operation(plan: &[f32]) -> CustomOp {
    CustomOp::builder("planned")
        .cpu(|call| {
            call.output::<f32>(0)?.copy_from_slice(plan);
            Ok(())
        })
        .build()
}

fn main() {
    operation(&[1.0]);
}
