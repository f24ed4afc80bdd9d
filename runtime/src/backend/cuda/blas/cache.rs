//! Choices on disk: one small file per key.

use std::{io, path::PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Choice, library::Algo};
use crate::backend::cuda::{
    disk::{Disk, Kind},
    trust,
};

/// The contents of a file.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    /// The whole key: the file's name is only its hash.
    key: String,
    /// The library's algorithm; none: our own kernel.
    algo: Option<[u64; 8]>,
    /// The measured time when it was chosen, in microseconds.
    micros: f32,
}

/// A folder of choices, safe to share between processes: a file appears whole, by renaming, and a
/// later writer of the same key replaces an equal choice.
#[derive(Debug)]
pub(super) struct Cache {
    disk: Disk,
    folder: PathBuf,
    /// The prefix of all keys: device, library and our own version.
    scope: String,
}

impl Cache {
    /// Choices for one device and one version of the library; `None` if nothing is kept on disk.
    pub(super) fn new(disk: &Disk, device: &str, library: usize) -> Option<Self> {
        let scope = format!("graphable {} | cublasLt {library} | {device}", env!("CARGO_PKG_VERSION"));
        Some(Self { folder: disk.folder(Kind::Products)?, disk: disk.clone(), scope })
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
        if !trust::is_trusted(&self.folder) {
            return None;
        }
        let path = self.file(&key);
        let text = match trust::read(&path) {
            Ok(text) => text,
            Err(reason) if reason.kind() == io::ErrorKind::NotFound => return None,
            Err(reason) => {
                tracing::warn!(path = %path.display(), %reason, "a cached choice of algorithm cannot be read; measuring again");
                return None;
            }
        };
        let reason = match serde_json::from_slice::<Entry>(&text) {
            Ok(entry) if entry.key == key => {
                self.disk.loaded(&path);
                return Some(entry.algo.map_or(Choice::Own, |algo| Choice::Library(Algo(algo))));
            }
            Ok(_) => "it is for another key".to_string(),
            Err(reason) => reason.to_string(),
        };
        tracing::warn!(path = %path.display(), %reason, "a cached choice of algorithm is corrupt; measuring again");
        None
    }

    /// Stores a choice. If it cannot be stored, it is measured again next time, so this is not an error.
    pub(super) fn write(&self, key: &str, choice: &Choice, micros: f32) {
        let key = self.key(key);
        if !trust::is_trusted(&self.folder) {
            return;
        }
        let path = self.file(&key);
        let algo = match choice {
            Choice::Library(algo) => Some(algo.0),
            Choice::Own => None,
        };
        let entry = serde_json::to_vec(&Entry { key, algo, micros }).map_err(io::Error::from);
        match entry.and_then(|entry| trust::publish(&path, &[&entry]).map(|()| entry.len())) {
            Ok(bytes) => self.disk.stored(bytes as u64),
            Err(reason) => {
                tracing::warn!(path = %path.display(), %reason, "a choice of algorithm cannot be kept");
            }
        }
    }
}
