//! Choices on disk: one small file per key.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Choice, library::Algo};

/// What a file holds.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    /// The whole key: the file's name is only its hash.
    key: String,
    /// The library's algorithm; none: our own kernel.
    algo: Option<[u64; 8]>,
    /// What it took when it was chosen, in microseconds.
    micros: f32,
}

/// A folder of choices, safe to share between processes: a file appears whole, by renaming, and a
/// later writer of the same key replaces an equal choice.
#[derive(Debug)]
pub(super) struct Cache {
    folder: PathBuf,
    /// What all keys start with: device, library and our own version.
    scope: String,
}

impl Cache {
    /// Choices for one device and one version of the library.
    pub(super) fn new(folder: PathBuf, device: &str, library: usize) -> Self {
        let scope = format!("graphable {} | cublasLt {library} | {device}", env!("CARGO_PKG_VERSION"));
        Self { folder, scope }
    }

    fn key(&self, key: &str) -> String {
        format!("{} | {key}", self.scope)
    }

    fn file(&self, key: &str) -> PathBuf {
        let hash = Sha256::digest(key.as_bytes());
        let name: String = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(format!("{name}.json"))
    }

    /// The choice for a key. A file that makes no sense counts as none, and is overwritten by the
    /// next choice.
    pub(super) fn read(&self, key: &str) -> Option<Choice> {
        let key = self.key(key);
        let path = self.file(&key);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return None,
            Err(why) => {
                tracing::warn!(path = %path.display(), %why, "a cached choice of algorithm cannot be read; measuring again");
                return None;
            }
        };
        let why = match serde_json::from_slice::<Entry>(&text) {
            Ok(entry) if entry.key == key => {
                return Some(entry.algo.map_or(Choice::Own, |algo| Choice::Library(Algo(algo))));
            }
            Ok(_) => "it is for another key".to_string(),
            Err(why) => why.to_string(),
        };
        tracing::warn!(path = %path.display(), %why, "a cached choice of algorithm is corrupt; measuring again");
        None
    }

    /// Keeps a choice. That it cannot be kept costs a measurement next time, so it is no error.
    pub(super) fn write(&self, key: &str, choice: &Choice, micros: f32) {
        let key = self.key(key);
        let path = self.file(&key);
        let algo = match choice {
            Choice::Library(algo) => Some(algo.0),
            Choice::Own => None,
        };
        if let Err(why) = replace(&path, &Entry { key, algo, micros }) {
            tracing::warn!(path = %path.display(), %why, "a choice of algorithm cannot be kept");
        }
    }
}

/// Writes beside, then renames: readers see the old file or the new one.
fn replace(path: &Path, entry: &Entry) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let beside = path.with_extension(format!("{}-{number}.tmp", process::id()));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let done = fs::write(&beside, serde_json::to_vec(entry)?).and_then(|()| fs::rename(&beside, path));
    if done.is_err() {
        // Nothing more can be done about it than to say what failed.
        let _ = fs::remove_file(&beside);
    }
    done
}
