//! From a kernel's name to code on the device: the cache, else the compiler.

mod cache;
mod check;
mod nvrtc;
mod target;

use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use cache::Cache;
pub(crate) use check::compile_source;
pub use check::{Check, compile_file};
pub(crate) use nvrtc::{Nvrtc, Source};

use self::target::Target;
use super::{
    DeviceProperties,
    disk::Disk,
    driver::{Context, Function, Module},
    kernels::{COMMON, FOR_USERS, Kernel, SourceFile, Unit},
};
use crate::{Error, Result};

/// Options of every compilation, besides the architecture and the types.
const OPTIONS: [&str; 3] = ["--std=c++17", "--extra-device-vectorization", LINE_INFO];

/// Lines of the source in machine code, for profilers: the code is the same without them.
const LINE_INFO: &str = "-lineinfo";

/// The number of units that this process compiled, and of those that it found on disk.
static COMPILED: AtomicU64 = AtomicU64::new(0);
static FOUND: AtomicU64 = AtomicU64::new(0);

/// Returns how many units this process compiled, and how many it found on disk.
pub(crate) fn counts() -> (u64, u64) {
    (COMPILED.load(Ordering::Relaxed), FOUND.load(Ordering::Relaxed))
}

/// All options for a unit, but for the architecture.
fn options(unit: Unit) -> Vec<String> {
    OPTIONS.iter().chain(unit.source.options).map(|&o| o.to_owned()).chain(unit.defines()).collect()
}

/// Code for a device, and where it is from.
#[derive(Debug, PartialEq, Eq)]
struct Code {
    bytes: Vec<u8>,
    was_kept: bool,
}

/// The compiler, as [`code_for`] needs it.
trait Compile {
    /// The GPU that the code is for: as the compiler names it, and its compute capability.
    fn device(&self) -> (String, (u32, u32));
    /// Returns the target of compilation for this device.
    fn target(&mut self) -> Result<Target>;
    fn compile(&mut self, unit: Unit, target: &Target) -> Result<Vec<u8>>;
}

/// NVRTC, found when there is something to compile.
struct ByNvrtc<'a> {
    props: &'a DeviceProperties,
}

impl Compile for ByNvrtc<'_> {
    fn device(&self) -> (String, (u32, u32)) {
        (self.props.arch(), self.props.capability)
    }

    fn target(&mut self) -> Result<Target> {
        let (nvrtc, arch) = (Nvrtc::get()?, self.props.arch());
        let known = nvrtc.architectures();
        let target = Target::of(&arch, self.props.capability, known.as_deref());
        target.map_err(|reason| Error::Device { device: "NVRTC".into(), call: "compile", reason })
    }

    fn compile(&mut self, unit: Unit, target: &Target) -> Result<Vec<u8>> {
        tracing::debug!(file = unit.source.name, kernel = unit.alone, target = %target.name(), "compiling");
        let source = of(unit.source);
        Ok(Nvrtc::get()?.compile(source, target, &options(unit))?.0)
    }
}

/// A source as the compiler takes it.
fn of(source: &SourceFile) -> Source<'_> {
    Source { name: source.name, text: source.text, common: COMMON, header: source.header }
}

/// Returns the name of a unit's code on disk: everything that it depends on, except for the compiler's
/// version, which is not known without the compiler.
fn key(unit: Unit, arch: &str, kind: &str) -> String {
    key_with(unit, &options(unit), arch, kind)
}

/// Returns a hash of a unit's texts and of how they are compiled.
fn key_with(unit: Unit, options: &[String], arch: &str, kind: &str) -> String {
    Cache::key(&[
        unit.source.text.as_bytes(),
        COMMON.as_bytes(),
        FOR_USERS.as_bytes(),
        unit.source.header.map_or("", |header| header.text).as_bytes(),
        options.join("\0").as_bytes(),
        arch.as_bytes(),
        kind.as_bytes(),
    ])
}

/// Returns code of a unit for the compiler's GPU: from the cache if possible, without needing the compiler;
/// otherwise it is compiled and cached. Machine code is preferred; a compiler that does not know the GPU
/// produces PTX, which the driver has to compile at each start. With `anew`, the cache is not read.
///
/// # Errors
/// Returns [`Error::NoDevice`] without the compiler, [`Error::Device`] with its log.
fn code_for(unit: Unit, cache: &Cache, anew: bool, compiler: &mut dyn Compile) -> Result<Code> {
    let (arch, capability) = compiler.device();
    let machine = key(unit, &arch, "machine");
    let kept = |key: &str| {
        let bytes = (!anew).then(|| cache.load(key)).flatten()?;
        Some(Code { bytes, was_kept: true })
    };
    if let Some(code) = kept(&machine) {
        return Ok(code);
    }
    let target = match compiler.target() {
        Ok(target) => target,
        // The best that an earlier compiler made.
        Err(error) => {
            let kept = Target::older(capability).find_map(|ptx| kept(&key(unit, &arch, &ptx.name())));
            return kept.ok_or(error);
        }
    };
    let name = match &target {
        Target::Machine(_) => machine,
        Target::Virtual(name) => {
            let ptx = key(unit, &arch, name);
            if let Some(code) = kept(&ptx) {
                return Ok(code);
            }
            ptx
        }
    };
    let bytes = compiler.compile(unit, &target)?;
    cache.store(&name, &bytes);
    Ok(Code { bytes, was_kept: false })
}

/// A kernel, compiled and loaded when it is first asked for.
///
/// # Errors
/// Returns [`Error::NoDevice`] without the compiler, and [`Error::Device`] with its log; also
/// [`Error::Device`] if the driver rejects the code, which happens if the compiler is newer than the driver.
pub(crate) fn function(context: &Context, kernel: Kernel, shared: u32, disk: &Disk) -> Result<Function> {
    let module = context.module(kernel.unit, || load(context, kernel.unit, disk))?;
    module.function(context, kernel.name, shared)
}

fn load(context: &Context, unit: Unit, disk: &Disk) -> Result<Module> {
    if let Some(code) = unit.source.code {
        return Module::load(context, code);
    }
    let cache = Cache::on(disk);
    let mut compiler = ByNvrtc { props: context.props() };
    let code = code_for(unit, &cache, false, &mut compiler)?;
    let counter = if code.was_kept { &FOUND } else { &COMPILED };
    counter.fetch_add(1, Ordering::Relaxed);
    match Module::load(context, &code.bytes) {
        // Kept by a compiler that the driver is too old for, perhaps; the one of today may be another.
        Err(Error::Device { reason, .. }) if code.was_kept => {
            tracing::info!(
                file = unit.source.name,
                reason,
                "the driver refuses code from the cache; compiling again"
            );
            let code = code_for(unit, &cache, true, &mut compiler)?;
            FOUND.fetch_sub(1, Ordering::Relaxed);
            COMPILED.fetch_add(1, Ordering::Relaxed);
            Module::load(context, &code.bytes).map_err(|error| too_new(error, unit))
        }
        loaded => loaded.map_err(|error| too_new(error, unit)),
    }
}

/// Returns the error for code that the driver rejects, with the remedy.
fn too_new(error: Error, unit: Unit) -> Error {
    match error {
        Error::Device { device, call, reason } => {
            let (major, minor) = Nvrtc::get().map_or((0, 0), Nvrtc::version);
            let reason = format!(
                "{reason}; {} was compiled by NVRTC {major}.{minor}: a driver of an older major version cannot \
                 load it, update the driver or point GRAPHABLE_NVRTC at an older compiler",
                unit.source.name
            );
            Error::Device { device, call, reason }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::{env, fs, process};

    use super::*;
    use crate::DType;

    static SOURCE: SourceFile = SourceFile::ours("one.cu", "// one");
    static WITH_HEADER: SourceFile = SourceFile::ours("one.cu", "// one").with_header("one.cuh", "// its");
    static OTHER: SourceFile = SourceFile::ours("other.cu", "// other");
    const UNIT: Unit = Unit { source: &SOURCE, t: None, alone: None };

    /// A compiler that may be missing, or not know the GPU.
    struct Fake {
        target: Option<Target>,
        compiled: usize,
    }

    impl Fake {
        fn new(target: Option<Target>) -> Self {
            Self { target, compiled: 0 }
        }
    }

    impl Compile for Fake {
        fn device(&self) -> (String, (u32, u32)) {
            ("sm_103a".into(), (10, 3))
        }
        fn target(&mut self) -> Result<Target> {
            let missing = || Error::NoDevice { device: "NVRTC".into(), reason: "missing".into() };
            self.target.clone().ok_or_else(missing)
        }
        fn compile(&mut self, _: Unit, target: &Target) -> Result<Vec<u8>> {
            self.compiled += 1;
            Ok(format!("{} {}", target.name(), self.compiled).into_bytes())
        }
    }

    fn cache(name: &str) -> Cache {
        let path = env::temp_dir().join(format!("graphable-code-{name}-{}", process::id()));
        let _ = fs::remove_dir_all(&path);
        Cache::at(&path)
    }

    fn code(cache: &Cache, anew: bool, compiler: &mut Fake) -> Result<(String, bool)> {
        let code = code_for(UNIT, cache, anew, compiler)?;
        Ok((String::from_utf8(code.bytes).unwrap(), code.was_kept))
    }

    #[test]
    fn with_a_warm_cache_no_compiler_is_needed() {
        let (cache, mut there) = (cache("warm"), Fake::new(Some(Target::Machine("sm_103a".into()))));
        assert!(code(&cache, false, &mut Fake::new(None)).is_err(), "cold");
        assert_eq!(code(&cache, false, &mut there).unwrap(), ("sm_103a 1".into(), false));
        assert_eq!(code(&cache, false, &mut there).unwrap(), ("sm_103a 1".into(), true));
        assert_eq!(code(&cache, false, &mut Fake::new(None)).unwrap(), ("sm_103a 1".into(), true));
        assert_eq!(there.compiled, 1);
    }

    #[test]
    fn what_the_driver_refused_is_compiled_anew_and_replaced() {
        let (cache, mut there) = (cache("anew"), Fake::new(Some(Target::Machine("sm_103a".into()))));
        code(&cache, false, &mut there).unwrap();
        assert_eq!(code(&cache, true, &mut there).unwrap(), ("sm_103a 2".into(), false));
        assert_eq!(code(&cache, false, &mut Fake::new(None)).unwrap(), ("sm_103a 2".into(), true));
    }

    #[test]
    fn ptx_is_kept_until_a_compiler_knows_the_gpu() {
        let (cache, mut old) = (cache("ptx"), Fake::new(Some(Target::Virtual("compute_90".into()))));
        assert_eq!(code(&cache, false, &mut old).unwrap(), ("compute_90 1".into(), false));
        assert_eq!(code(&cache, false, &mut old).unwrap(), ("compute_90 1".into(), true));
        assert_eq!(code(&cache, false, &mut Fake::new(None)).unwrap(), ("compute_90 1".into(), true));
        let mut new = Fake::new(Some(Target::Machine("sm_103a".into())));
        assert_eq!(code(&cache, false, &mut new).unwrap(), ("sm_103a 1".into(), false));
        assert_eq!(
            code(&cache, false, &mut old).unwrap(),
            ("sm_103a 1".into(), true),
            "the better one stays"
        );
    }

    #[test]
    fn ptx_of_an_older_compiler_gives_way_to_that_of_a_newer_one() {
        let (cache, mut old) = (cache("older"), Fake::new(Some(Target::Virtual("compute_90".into()))));
        code(&cache, false, &mut old).unwrap();
        let mut newer = Fake::new(Some(Target::Virtual("compute_100".into())));
        assert_eq!(code(&cache, false, &mut newer).unwrap(), ("compute_100 1".into(), false));
        assert_eq!(code(&cache, false, &mut Fake::new(None)).unwrap(), ("compute_100 1".into(), true));
    }

    #[test]
    fn every_option_is_in_the_key() {
        let float = Unit::whole(&OTHER, Some(DType::F32));
        assert!(
            options(float).iter().any(|o| o == "--std=c++17") && options(float).contains(&"-DT=f32".into())
        );
        let keys = [
            key(UNIT, "sm_90a", "machine"),
            key(UNIT, "sm_90a", "compute_80"),
            key(UNIT, "sm_80", "machine"),
            key(float, "sm_90a", "machine"),
            key(Unit { t: Some(DType::F16), ..float }, "sm_90a", "machine"),
            key(Unit::whole(&WITH_HEADER, None), "sm_90a", "machine"),
            key(Unit { alone: Some("one"), ..float }, "sm_90a", "machine"),
            key(Unit { alone: Some("two"), ..float }, "sm_90a", "machine"),
        ];
        assert_eq!(keys.iter().collect::<std::collections::HashSet<_>>().len(), keys.len());
    }
}
