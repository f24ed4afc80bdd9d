//! Kernels of rows against the built-in operations: 64 MiB of f32 in rows of several lengths, and a few long rows.

use graphable::Result;

use crate::{shared_rows, timing::per_call};

pub(crate) fn run() -> Result<()> {
    let mut rt = crate::timing::runtime()?;
    let shapes = [
        (131_072, 128),
        (16_384, 1024),
        (4096, 4096),
        (2048, 8192),
        (1024, 16_384),
        (512, 32_768),
        (16, 128_256),
        (1, 128_256),
    ];
    shared_rows::measure(&mut rt, &shapes, &|step, call| {
        let (_, total) = per_call(5, 40, |_| call(), || step.synchronize())?;
        Ok(total)
    })
}
