//! Kernels compiled without a GPU, for the compiler's remarks: what CI does.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write as _,
    iter,
    sync::{Mutex, PoisonError},
};

use super::{LINE_INFO, Nvrtc, key_with, of, options, target::Target};
use crate::{
    DType, Error, Result,
    backend::cuda::kernels::{Header, SourceFile, Types, Unit},
};

/// The first major version of NVRTC of which every release knows `--Ofast-compile`.
const FAST_COMPILE: (i32, i32) = (13, 0);

/// In front of each kernel that the compiler makes machine code of, in its remarks.
const ENTRY: &str = "Compiling entry function";

/// In front of a unit that the compiler has no remarks about: either it has no kernel of a type that its line `// Types: …`
/// states, or NVRTC has kept what it compiled: where there is a driver, it says nothing about the same text again.
const SILENT: &str = "no remarks about ";

/// A compilation for an architecture, without a GPU.
///
/// Making machine code takes most of the time. Units of which it was made before without spilled registers, by the same compiler with the
/// same options, are compiled only to PTX, which shows that their texts are accepted.
#[derive(Debug)]
pub struct Check {
    arch: String,
    units: Units,
    passed: Mutex<BTreeMap<String, String>>,
}

/// Which units are compiled; others have no remarks.
#[derive(Debug)]
enum Units {
    All,
    /// Those of which machine code was not made before.
    New(HashSet<String>),
    /// The others, to PTX.
    Known(HashSet<String>),
}

impl Check {
    /// Returns a compilation of all units for `arch`: `sm_90a` for machine code, `compute_90` for PTX, `sm_80:fast` for machine
    /// code with little optimisation, which takes a quarter of the time and says nothing about registers of real code.
    pub fn new(arch: &str) -> Self {
        Self { arch: arch.to_owned(), units: Units::All, passed: Mutex::default() }
    }

    /// Returns two compilations, to be run one after the other: the first makes machine code of the units that are not `known`, and the
    /// second compiles the known ones to PTX. `known` are keys that [`passed`](Self::passed) returned. They are kept apart because a
    /// compilation with little optimisation changes later ones of the process (NVRTC 13.0): a kernel spilled registers after it.
    pub fn in_turn(arch: &str, known: &HashSet<String>) -> [Self; 2] {
        [Units::New(known.clone()), Units::Known(known.clone())]
            .map(|units| Self { units, ..Self::new(arch) })
    }

    /// Returns the architecture.
    pub fn arch(&self) -> &str {
        &self.arch
    }

    /// Returns the keys and the names of all units of which machine code was made with full optimisation and without spilled registers,
    /// by this compilation or, of the same texts, before.
    pub fn passed(&self) -> BTreeMap<String, String> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of kernels that remarks are about.
    pub fn count_kernels(remarks: &str) -> usize {
        remarks.matches(ENTRY).count()
    }

    /// Returns the lines of remarks about registers that were spilled: local memory in a kernel that was not meant to have any.
    pub fn spills(remarks: &str) -> impl Iterator<Item = &str> {
        remarks
            .lines()
            .filter(|l| l.contains("bytes spill stores") && !l.contains(" 0 bytes spill stores"))
            .map(str::trim)
    }

    /// Returns the lines of remarks about units that the compiler has no remarks about, so that nothing is known of their registers.
    pub fn silent(remarks: &str) -> impl Iterator<Item = &str> {
        remarks.lines().filter(|line| line.starts_with(SILENT))
    }

    /// Compiles a unit, and returns the compiler's remarks.
    fn compile(&self, unit: Unit) -> Result<String> {
        let nvrtc = Nvrtc::get()?;
        let plain = self.arch.strip_suffix(":fast");
        let (name, is_fast) = (plain.unwrap_or(&self.arch), plain.is_some());
        let mut all = checking(unit);
        if is_fast || name.starts_with("compute_") {
            all.extend(fast(nvrtc));
            return Ok(nvrtc.compile(of(unit.source), &target(name), &all)?.1);
        }
        let key = key(unit, name, &all, nvrtc);
        let remarks = match &self.units {
            Units::New(known) if known.contains(&key) => return Ok(String::new()),
            Units::Known(known) if !known.contains(&key) => return Ok(String::new()),
            Units::Known(_) => {
                all.extend(fast(nvrtc));
                let ptx = target(&name.replacen("sm_", "compute_", 1));
                let (code, _) = nvrtc.compile(of(unit.source), &ptx, &all)?;
                entries(&String::from_utf8_lossy(&code))
            }
            Units::All | Units::New(_) => {
                let (_, remarks) = nvrtc.compile(of(unit.source), &target(name), &all)?;
                if Self::count_kernels(&remarks) > 0 { remarks } else { format!("{SILENT}{unit:?}\n") }
            }
        };
        if matches!(self.units, Units::Known(_)) || fit(&remarks) {
            let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
            passed.insert(key, format!("{unit:?}"));
        }
        Ok(remarks)
    }

    /// Compiles one kernel of a unit without the others, as a program asks for it: the last one that `remarks` name. Only to PTX,
    /// and only for `:fast` architectures, since a compilation with little optimisation changes the machine code that the process
    /// makes later ([`in_turn`](Self::in_turn)).
    ///
    /// # Errors
    /// Returns [`Error::Device`] with the compiler's log, if code of anything else was made, or without remarks.
    fn compile_last_alone(&self, unit: Unit, remarks: &str) -> Result<()> {
        let Some(arch) = self.arch.strip_suffix(":fast") else { return Ok(()) };
        let mut names = remarks.lines().filter_map(|line| line.split_once(ENTRY)?.1.split('\'').nth(1));
        let Some(name) = names.next_back() else {
            let reason = format!("{SILENT}{unit:?}, so that none of its kernels was compiled alone");
            return Err(Error::Device { device: "NVRTC".into(), call: "compile", reason });
        };
        let name: &'static str = name.to_owned().leak();
        let nvrtc = Nvrtc::get()?;
        let unit = Unit { alone: Some(name), ..unit };
        let all: Vec<String> = checking(unit).into_iter().chain(fast(nvrtc)).collect();
        let ptx = target(&arch.replacen("sm_", "compute_", 1));
        let (code, _) = nvrtc.compile(of(unit.source), &ptx, &all)?;
        let made = entries(&String::from_utf8_lossy(&code));
        if Self::count_kernels(&made) == 1 && made.contains(&format!("'{name}'")) {
            return Ok(());
        }
        let reason = format!("{unit:?}: not the one kernel that was asked for\n{made}");
        Err(Error::Device { device: "NVRTC".into(), call: "compile", reason })
    }
}

/// Returns whether remarks say of each kernel that no register was spilled.
fn fit(remarks: &str) -> bool {
    let kernels = Check::count_kernels(remarks);
    kernels > 0
        && remarks.matches(" 0 bytes spill stores").count() >= kernels
        && Check::spills(remarks).next().is_none()
}

/// What the machine code of a unit depends on; of the compiler, the version that it states (13.0), which two of its builds may share: CI
/// installs one build.
fn key(unit: Unit, arch: &str, options: &[String], nvrtc: &Nvrtc) -> String {
    let (major, minor) = nvrtc.version();
    let mut key = key_with(unit, options, arch, &format!("{major}.{minor}"));
    // Half of a hash tells some thousands of units apart.
    key.truncate(32);
    key
}

/// The kernels of PTX, as the remarks about machine code name them.
fn entries(ptx: &str) -> String {
    let mut remarks = String::new();
    for name in ptx.lines().filter_map(|line| line.split(".entry ").nth(1)?.split('(').next()) {
        // Writing to a string cannot fail.
        let _ = writeln!(remarks, "{ENTRY} '{name}': machine code was made before");
    }
    remarks
}

fn target(name: &str) -> Target {
    let name = name.to_owned();
    if name.starts_with("compute_") { Target::Virtual(name) } else { Target::Machine(name) }
}

/// The options for a unit of which only the compiler's remarks are kept, among them registers and spills: without lines of
/// the source, of which there are more than of code, the compiler takes a tenth less time.
fn checking(unit: Unit) -> Vec<String> {
    let remarks = "--ptxas-options=-v".to_owned();
    options(unit).into_iter().filter(|option| option != LINE_INFO).chain([remarks]).collect()
}

/// The option for code that is thrown away: that the text is accepted is all that is asked, which takes a third of the time or
/// less.
fn fast(nvrtc: &Nvrtc) -> Option<String> {
    (nvrtc.version() >= FAST_COMPILE).then(|| "--Ofast-compile=max".to_owned())
}

/// Compiles a source without a GPU, and returns the compiler's remarks.
///
/// # Errors
/// [`Error::NoDevice`] without the compiler; [`Error::Device`] with its log.
pub(crate) fn compile_source(source: &'static SourceFile, check: &Check) -> Result<String> {
    check.compile(Unit::whole(source, None))
}

/// Compiles a `.cu` file of this crate without a GPU, for every element type that its line `// Types: …` states, and again with
/// the macros of each line `// Also: …`, and returns the compiler's remarks, one entry per unit. `header` is the name and the
/// text of a header of its own.
///
/// # Errors
/// Returns [`Error::NoDevice`] without the compiler; [`Error::Device`] if the file states no types, and with
/// the first failure's log.
pub fn compile_file(
    name: &str,
    text: &str,
    header: Option<(&str, &str)>,
    check: &Check,
) -> Result<Vec<(String, String)>> {
    let Some(types) = Types::stated_in(text) else {
        let reason = format!("{name} lacks a line such as `// Types: none` or `// Types: floats`");
        return Err(Error::Device { device: "NVRTC".into(), call: "compile", reason });
    };
    // Kept for the life of the process, as every source is: this is what CI does with a few files.
    let kept = |text: &str| -> &'static str { text.to_owned().leak() };
    let mut source = SourceFile::ours(kept(name), kept(text));
    source.header = header.map(|(name, text)| Header { name: kept(name), text: kept(text) });
    let mut out = Vec::new();
    for names in iter::once("").chain(also(text)) {
        let options: Vec<&'static str> =
            names.split_whitespace().map(|name| kept(&format!("-D{name}=1"))).collect();
        let name = if names.is_empty() { source.name } else { kept(&format!("{name} {names}")) };
        let source: &'static SourceFile =
            Box::leak(Box::new(SourceFile { name, options: options.leak(), ..source }));
        for t in types.list() {
            // Of more variants of machine code, f16 is as bf16.
            if t == Some(DType::F16) && !names.is_empty() && check.arch.starts_with("sm_") {
                continue;
            }
            let unit = Unit::whole(source, t);
            let remarks = check.compile(unit)?;
            if text.contains("KERNEL(") {
                check.compile_last_alone(unit, &remarks)?;
            }
            out.push((format!("{unit:?}"), remarks));
        }
    }
    Ok(out)
}

/// The macros with which a file is compiled besides without any, in lines such as `// Also: VARIANT WIDE`.
fn also(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix("// Also: "))
}

#[cfg(test)]
mod tests {
    use std::{
        process,
        sync::atomic::{AtomicU64, Ordering},
        time::{SystemTime, UNIX_EPOCH},
    };

    use super::*;
    use crate::backend::cuda::kernels::testing::say_skipped;

    #[test]
    fn kernels_and_spills_are_found_in_remarks() {
        let remarks = "ptxas info    : Compiling entry function 'one' for 'sm_90a'\n\
                       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
                       ptxas info    : Compiling entry function 'two' for 'sm_90a'\n  \
                       16 bytes stack frame, 24 bytes spill stores, 8 bytes spill loads\n";
        assert_eq!(Check::count_kernels(remarks), 2);
        let spills: Vec<&str> = Check::spills(remarks).collect();
        assert_eq!(spills, ["16 bytes stack frame, 24 bytes spill stores, 8 bytes spill loads"]);
        let good = remarks.replace("24 bytes", "0 bytes");
        assert!(fit(&good) && !fit(remarks));
        // Nothing said is nothing known.
        assert!(!fit("") && !fit(&good.replace("0 bytes spill stores", "none spilled")));
        let silent = format!("{good}{SILENT}norm.cu\n");
        assert_eq!(Check::silent(&silent).collect::<Vec<_>>(), ["no remarks about norm.cu"]);
    }

    #[test]
    fn kernels_of_ptx_count_as_those_of_machine_code() {
        let ptx = ".visible .entry one(\n.param .u64 x\n)\n{\n}\n.visible .entry two(\n)\n";
        assert_eq!(Check::count_kernels(&entries(ptx)), 2);
    }

    /// A kernel that no process has compiled before: where there is a driver, NVRTC keeps what it compiled, and says nothing of it again.
    fn unheard(body: &str) -> &'static SourceFile {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let name = format!("kernel_{}_{now}_{count}", process::id());
        let text = format!(
            "extern \"C\" __global__ void __launch_bounds__(1024, 2) {name}(float *x) {{\n{body}\n}}\n"
        );
        Box::leak(Box::new(SourceFile::ours("unheard.cu", text.leak())))
    }

    /// Of more values than a thread has registers.
    const SPILLS: &str = "float v[64];\n\
        for (int i = 0; i < 64; i++) v[i] = x[i * 7 + threadIdx.x];\n\
        __syncthreads();\n\
        for (int i = 0; i < 64; i++) for (int j = 0; j < 64; j++) v[i] = v[i] * v[j] + x[j];\n\
        for (int i = 0; i < 64; i++) x[i * 9 + threadIdx.x] = v[i];";

    /// A unit that spills is never known, another one is by its text, and what is known must still compile.
    #[test]
    fn only_what_was_made_without_spills_is_known() {
        let (fits, check) = (unheard("*x = 1;"), Check::new("sm_90a"));
        match compile_source(unheard(SPILLS), &check) {
            Err(error @ Error::NoDevice { .. }) => {
                return say_skipped("only_what_was_made_without_spills_is_known", &error);
            }
            remarks => assert_eq!(Check::spills(&remarks.unwrap()).count(), 1),
        }
        assert!(check.passed().is_empty());
        compile_source(fits, &check).unwrap();
        let passed = check.passed();
        assert_eq!(passed.len(), 1);
        let known: HashSet<String> = passed.clone().into_keys().collect();
        let [new, again] = Check::in_turn("sm_90a", &known);
        assert_eq!(compile_source(fits, &new).unwrap(), "");
        assert!(Check::silent(&compile_source(unheard(SPILLS), &new).unwrap()).next().is_none());
        assert!(new.passed().keys().all(|key| !known.contains(key)));
        // Of another architecture, nothing is known.
        let [other, none] = Check::in_turn("sm_80", &known);
        assert_eq!(Check::count_kernels(&compile_source(fits, &other).unwrap()), 1);
        // From here on, machine code of this process may be another one.
        let remarks = compile_source(fits, &again).unwrap();
        assert!(remarks.contains("before") && Check::count_kernels(&remarks) == 1, "{remarks}");
        assert_eq!(
            (compile_source(unheard(SPILLS), &again).unwrap(), again.passed()),
            (String::new(), passed)
        );
        assert_eq!(compile_source(fits, &none).unwrap(), "");
        let unit = Unit::whole(unheard("*y = 1;"), None);
        let wrong = key(unit, "sm_90a", &checking(unit), Nvrtc::get().unwrap());
        let [_, again] = Check::in_turn("sm_90a", &HashSet::from([wrong]));
        assert!(compile_source(unit.source, &again).is_err());
    }
}
