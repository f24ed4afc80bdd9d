//! Kernels of indices against the built-in gather: 64 MiB of f32 in rows of several lengths.

use graphable::Result;

use crate::{shared_indexed, timing::per_call};

pub(crate) fn run() -> Result<()> {
    let mut rt = crate::timing::runtime()?;
    let shapes = [(262_144, 64), (16_384, 1024), (4096, 4096), (1024, 16_384)];
    shared_indexed::measure(&mut rt, &shapes, &|step, call| {
        let (_, total) = per_call(5, 40, |_| call(), || step.synchronize())?;
        Ok(total)
    })
}
