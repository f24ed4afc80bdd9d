//! From a kernel's name to code on the device: the cache, else the compiler.

use std::sync::Arc;

mod cache;
mod nvrtc;

pub(crate) use cache::Cache;
pub(crate) use nvrtc::{Nvrtc, Source};

use super::{
    driver::{Context, Function, Module},
    kernels::{COMMON, Family, Kernel, Unit},
};
use crate::{Error, Result};

/// Options of every compilation, besides the architecture and the types.
const OPTIONS: [&str; 2] = ["--extra-device-vectorization", "-lineinfo"];

/// All options for a unit.
fn options(unit: Unit) -> Vec<String> {
    OPTIONS.iter().map(|&o| o.to_owned()).chain(unit.defines()).collect()
}

/// Machine code of a unit, from the cache where it is there.
///
/// # Errors
/// [`Error::NoDevice`] without the compiler, [`Error::Device`] with its log.
fn machine_code(unit: Unit, arch: &str) -> Result<Vec<u8>> {
    let nvrtc = Nvrtc::get()?;
    let (major, minor) = nvrtc.version();
    let options = options(unit);
    let cache = Cache::of_user("kernels");
    let version = format!("{major}.{minor}");
    let key = Cache::key(&[
        unit.family.source().as_bytes(),
        COMMON.as_bytes(),
        options.join("\0").as_bytes(),
        arch.as_bytes(),
        version.as_bytes(),
    ]);
    if let Some(code) = cache.load(&key) {
        return Ok(code);
    }
    tracing::debug!(file = unit.family.file(), arch, "compiling");
    let source = Source { name: unit.family.file(), text: unit.family.source(), common: COMMON };
    let (code, _) = nvrtc.compile(source, arch, &options)?;
    cache.store(&key, &code);
    Ok(code)
}

/// A kernel, compiled and loaded when it is first asked for.
///
/// # Errors
/// As [`machine_code`]; [`Error::Device`] when the driver refuses the code, which happens when the
/// compiler is newer than the driver.
pub(crate) fn function(context: &Arc<Context>, kernel: Kernel, shared: u32) -> Result<Function> {
    let module = context.module(kernel.unit, || {
        let code = machine_code(kernel.unit, &context.props().arch())?;
        Module::load(context, &code).map_err(|error| match error {
            Error::Device { device, call, why } => {
                let (major, minor) = Nvrtc::get().map_or((0, 0), Nvrtc::version);
                let why = format!(
                    "{why}; {} was compiled by NVRTC {major}.{minor}: a driver of an older major version cannot \
                     load it, update the driver or point GRAPHABLE_NVRTC at an older compiler",
                    kernel.unit.family.file()
                );
                Error::Device { device, call, why }
            }
            other => other,
        })
    })?;
    module.function(context, kernel.name, shared)
}

/// Compiles every kernel for `arch` without a GPU, and returns the compiler's remarks, one entry a
/// unit.
///
/// # Errors
/// [`Error::NoDevice`] without the compiler; [`Error::Device`] with the first failure's log.
pub fn compile_all(arch: &str) -> Result<Vec<(String, String)>> {
    let nvrtc = Nvrtc::get()?;
    let mut out = Vec::new();
    for family in Family::ALL {
        for (t, u) in family.types() {
            let unit = Unit { family, t, u };
            let mut options = options(unit);
            let name = format!("{} {}", family.file(), unit.defines().join(" "));
            options.push("--ptxas-options=-v".into());
            let source = Source { name: family.file(), text: family.source(), common: COMMON };
            let (_, log) = nvrtc.compile(source, arch, &options)?;
            out.push((name, log));
        }
    }
    Ok(out)
}
