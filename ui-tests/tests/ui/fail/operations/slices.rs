//! The code for the CPU gets slices of element types: inputs to read, outputs to write.

use graphable::custom::{CpuCall, CpuFailure};

fn doubles(call: &CpuCall<'_>) -> Result<(), CpuFailure> {
    let x = call.input::<u16>(0)?;
    call.output::<f32>(0)?[0] = x[0] as f32;
    Ok(())
}

fn writes_an_input(call: &CpuCall<'_>) -> Result<(), CpuFailure> {
    call.input::<f32>(0)?.fill(0.0);
    Ok(())
}

fn main() {}
