//! Compiled kernels on disk, shared by the processes of a user.

#[cfg(test)]
use std::path::Path;
use std::{io, path::PathBuf};

use sha2::{Digest as _, Sha256};

#[cfg(test)]
use crate::backend::cuda::disk::CacheFolder;
use crate::backend::cuda::{
    disk::{Disk, Kind},
    trust,
};

/// The first bytes of an entry: its kind, and the version of this format.
const MAGIC: &[u8; 16] = b"graphable-cubin1";

/// A folder of entries. If reading or writing fails, the cache is just not used: this is reported once
/// through `tracing`, and is never an error.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    disk: Disk,
    folder: Option<PathBuf>,
}

impl Cache {
    /// Returns the cache of a folder.
    pub(crate) fn on(disk: &Disk) -> Self {
        Self { disk: disk.clone(), folder: disk.folder(Kind::Kernels) }
    }

    /// In a folder of the caller's.
    #[cfg(test)]
    pub(crate) fn at(folder: &Path) -> Self {
        Self::on(&Disk::new(&CacheFolder::At(folder.to_owned()), None))
    }

    /// Returns the folder of the entries.
    #[cfg(test)]
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The name of an entry: a hash of everything that its contents depend on.
    pub(crate) fn key(parts: &[&[u8]]) -> String {
        let mut hash = Sha256::new();
        for part in parts {
            // Lengths keep `ab, c` and `a, bc` apart.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hex(&hash.finalize())
    }

    /// Returns an entry, if it exists, is complete, and belongs to this user.
    pub(crate) fn load(&self, key: &str) -> Option<Vec<u8>> {
        let folder = self.folder.as_ref().filter(|folder| trust::is_trusted(folder))?;
        let path = folder.join(key);
        let bytes = match trust::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "an entry of the kernel cache is not used");
                return None;
            }
        };
        let whole = bytes
            .strip_prefix(MAGIC)
            .and_then(|rest| rest.split_at_checked(32))
            .filter(|(sum, data)| Sha256::digest(data)[..] == **sum);
        match whole {
            Some((_, data)) => {
                self.disk.loaded(&path);
                Some(data.to_vec())
            }
            None => {
                tracing::warn!(path = %path.display(), "a damaged entry of the kernel cache is compiled again");
                None
            }
        }
    }

    /// Writes an entry in one step: readers see all of it or nothing.
    pub(crate) fn store(&self, key: &str, data: &[u8]) {
        let Some(folder) = self.folder.as_ref().filter(|folder| trust::is_trusted(folder)) else { return };
        match trust::publish(&folder.join(key), &[MAGIC, &Sha256::digest(data), data]) {
            Ok(()) => self.disk.stored((MAGIC.len() + 32 + data.len()) as u64),
            Err(error) => {
                tracing::warn!(folder = %folder.display(), %error, "compiled kernels cannot be kept; every start compiles");
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut out, byte| {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use std::{env, fs, process, thread};

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = env::temp_dir().join(format!("graphable-cache-{name}-{}", process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn keeps_what_it_is_given() {
        let cache = Cache::at(&folder("keeps"));
        let key = Cache::key(&[b"source", b"sm_90a"]);
        assert_eq!(cache.load(&key), None);
        cache.store(&key, b"machine code");
        assert_eq!(cache.load(&key).as_deref(), Some(&b"machine code"[..]));
        assert_ne!(Cache::key(&[b"ab", b"c"]), Cache::key(&[b"a", b"bc"]));
    }

    #[test]
    fn damaged_entries_are_not_used() {
        let cache = Cache::at(&folder("damaged"));
        let key = Cache::key(&[b"x"]);
        cache.store(&key, &[7; 1000]);
        let path = cache.folder().unwrap().join(&key);
        let good = fs::read(&path).unwrap();
        for cut in [0, 10, 47, 48, 500, good.len() - 1] {
            fs::write(&path, &good[..cut]).unwrap();
            assert_eq!(cache.load(&key), None, "{cut} bytes");
        }
        for at in [0, 20, 60, good.len() - 1] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&path, &bad).unwrap();
            assert_eq!(cache.load(&key), None, "byte {at} changed");
        }
        cache.store(&key, &[7; 1000]);
        assert_eq!(cache.load(&key), Some(vec![7; 1000]));
    }

    #[test]
    #[cfg(unix)]
    fn nothing_is_loaded_from_what_others_may_write() {
        use std::os::unix::fs::PermissionsExt as _;
        let cache = Cache::at(&folder("others"));
        let (key, other) = (Cache::key(&[b"x"]), Cache::key(&[b"y"]));
        cache.store(&key, b"code");
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let folder = cache.folder().unwrap();
        set(folder, 0o777);
        assert_eq!(cache.load(&key), None);
        cache.store(&other, b"code");
        set(folder, 0o700);
        assert_eq!(cache.load(&other), None, "nothing was kept there");
        assert_eq!(cache.load(&key).as_deref(), Some(&b"code"[..]));
        set(&folder.join(&key), 0o622);
        assert_eq!(cache.load(&key), None);
        cache.store(&key, b"code again");
        assert_eq!(cache.load(&key).as_deref(), Some(&b"code again"[..]), "replaced");
    }

    #[test]
    fn writers_and_readers_at_once() {
        let cache = Cache::at(&folder("at-once"));
        let key = Cache::key(&[b"y"]);
        let data: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..20).for_each(|_| cache.store(&key, &data)));
                scope.spawn(|| {
                    for _ in 0..200 {
                        assert!(cache.load(&key).is_none_or(|found| found == data));
                    }
                });
            }
        });
        assert_eq!(cache.load(&key).as_ref(), Some(&data));
        let left = fs::read_dir(cache.folder().unwrap()).unwrap().count();
        assert_eq!(left, 1, "temporary files are left");
    }
}
