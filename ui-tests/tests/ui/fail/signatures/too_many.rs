//! A key has room for so many.

use graphable::prelude::*;

#[graphable]
#[rustfmt::skip]
fn decode(#[key] k0: u32, #[key] k1: u32, #[key] k2: u32, #[key] k3: u32, #[key] k4: u32, #[key] k5: u32, #[key] k6: u32, #[key] k7: u32, #[key] k8: u32, #[key] k9: u32, #[key] k10: u32, #[key] k11: u32, #[key] k12: u32, #[key] k13: u32, #[key] k14: u32, #[key] k15: u32, #[key] k16: u32, #[key] k17: u32, #[key] k18: u32, #[key] k19: u32, #[key] k20: u32, #[key] k21: u32, #[key] k22: u32, #[key] k23: u32, #[key] k24: u32, #[key] k25: u32, #[key] k26: u32, #[key] k27: u32, #[key] k28: u32, #[key] k29: u32, #[key] k30: u32, #[key] k31: u32, #[key] k32: u32) -> Result<usize> {
    Ok(0)
}

fn main() {}
