//! The folder in which compiled kernels and measured choices are kept for later processes: where it is, how large it may
//! become, and what it holds.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use super::trust;

/// The folder of what a runtime compiled and measured, which later processes load instead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheFolder {
    /// The user's: the environment variable `GRAPHABLE_CACHE`, otherwise `graphable` in `XDG_CACHE_HOME` or `~/.cache`; none
    /// if there is no home.
    #[default]
    User,
    /// This one, which is created when it is first needed. Several processes may use it at the same time.
    At(PathBuf),
    /// None: every process compiles and measures.
    Off,
}

impl CacheFolder {
    fn path(&self) -> Option<PathBuf> {
        let named = |variable: &str| env::var_os(variable).filter(|v| !v.is_empty()).map(PathBuf::from);
        match self {
            Self::User => named("GRAPHABLE_CACHE")
                .or_else(|| named("XDG_CACHE_HOME").map(|d| d.join("graphable")))
                .or_else(|| named("HOME").map(|d| d.join(".cache").join("graphable"))),
            Self::At(path) => Some(path.clone()),
            Self::Off => None,
        }
    }
}

/// A kind of entries, each in a folder of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Compiled kernels, named by 64 digits.
    Kernels,
    /// Measured choices for products, named by 32 digits.
    Products,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Kernels, Self::Products];

    fn folder(self) -> &'static str {
        match self {
            Self::Kernels => "kernels",
            Self::Products => "products",
        }
    }

    /// Returns whether a file of the folder is an entry: nothing else is ever deleted.
    fn is_entry(self, name: &str) -> bool {
        let digits = |text: &str, n: usize| text.len() == n && text.bytes().all(|b| b.is_ascii_hexdigit());
        match self {
            Self::Kernels => digits(name, 64),
            Self::Products => name.strip_suffix(".json").is_some_and(|name| digits(name, 32)),
        }
    }
}

/// One file.
#[derive(Debug)]
struct Entry {
    path: PathBuf,
    bytes: u64,
    /// The time at which it was stored, or last loaded.
    used: SystemTime,
}

/// The folder with its limit.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    root: Option<PathBuf>,
    limit: Option<u64>,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The bytes there, as far as this process knows; `None` before it has looked.
    bytes: Mutex<Option<u64>>,
    evicted: AtomicU64,
}

impl Disk {
    pub(crate) fn new(folder: &CacheFolder, limit: Option<u64>) -> Self {
        Self { root: folder.path(), limit, state: Arc::default() }
    }

    /// Returns the folder of a kind.
    pub(crate) fn folder(&self, kind: Kind) -> Option<PathBuf> {
        self.root.as_ref().map(|root| root.join(kind.folder()))
    }

    /// Notes that an entry was loaded: it goes after those that were not for longer.
    pub(crate) fn loaded(&self, path: &Path) {
        if self.limit.is_some() {
            // Not important enough to fail: the entry seems older than it is.
            let _ = fs::File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
        }
    }

    /// Notes that an entry was stored, and removes the ones that were not used for longest if there are more bytes than
    /// allowed: then an eighth of the limit becomes free, so that this is not done each time.
    pub(crate) fn stored(&self, bytes: u64) {
        let Some(limit) = self.limit else { return };
        let mut known = self.state.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = match *known {
            Some(before) => before + bytes,
            None => self.entries().iter().map(|entry| entry.bytes).sum(),
        };
        *known = Some(bytes);
        if bytes <= limit {
            return;
        }
        // Other processes store and remove, too.
        let mut entries = self.entries();
        entries.sort_unstable_by_key(|entry| entry.used);
        let mut left: u64 = entries.iter().map(|entry| entry.bytes).sum();
        if left > limit {
            for entry in entries {
                if left <= limit - limit / 8 {
                    break;
                }
                if self.remove(&entry) {
                    left -= entry.bytes;
                    self.state.evicted.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        *known = Some(left);
    }

    /// Returns the number of entries and their bytes.
    pub(crate) fn usage(&self) -> (usize, u64) {
        let entries = self.entries();
        (entries.len(), entries.iter().map(|entry| entry.bytes).sum())
    }

    /// Returns how many entries this runtime has removed because of the limit.
    pub(crate) fn evicted(&self) -> u64 {
        self.state.evicted.load(Ordering::Relaxed)
    }

    /// Removes all entries; returns their bytes.
    pub(crate) fn clear(&self) -> u64 {
        let mut known = self.state.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        *known = None;
        self.entries().iter().filter(|entry| self.remove(entry)).map(|entry| entry.bytes).sum()
    }

    fn remove(&self, entry: &Entry) -> bool {
        match fs::remove_file(&entry.path) {
            Ok(()) => true,
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => {
                tracing::warn!(path = %entry.path.display(), %error, "an entry of the cache cannot be removed");
                false
            }
        }
    }

    /// Returns every entry of a folder that only this user can write; of another one, nothing is ever removed.
    fn entries(&self) -> Vec<Entry> {
        let mut all = Vec::new();
        for kind in Kind::ALL {
            let Some(folder) = self.folder(kind).filter(|folder| trust::is_trusted(folder)) else { continue };
            // A folder that does not exist has no entries.
            for file in fs::read_dir(folder).into_iter().flatten().flatten() {
                let is_entry = file.file_name().to_str().is_some_and(|name| kind.is_entry(name));
                let Some(of) = file.metadata().ok().filter(|of| is_entry && of.is_file()) else { continue };
                let used = of.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                all.push(Entry { path: file.path(), bytes: of.len(), used });
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::{process, time::Duration};

    use super::*;

    fn disk(name: &str, limit: Option<u64>) -> Disk {
        let root = env::temp_dir().join(format!("graphable-disk-{name}-{}", process::id()));
        let _ = fs::remove_dir_all(&root);
        Disk::new(&CacheFolder::At(root), limit)
    }

    /// Stores an entry that seems to have been stored so many seconds ago.
    fn store(disk: &Disk, kind: Kind, number: u32, bytes: usize, seconds_ago: u64) -> PathBuf {
        let name = match kind {
            Kind::Kernels => format!("{number:064x}"),
            Kind::Products => format!("{number:032x}.json"),
        };
        let path = disk.folder(kind).unwrap().join(name);
        trust::publish(&path, &[&vec![7; bytes]]).unwrap();
        let then = SystemTime::now() - Duration::from_secs(seconds_ago);
        fs::File::open(&path).unwrap().set_modified(then).unwrap();
        disk.stored(bytes as u64);
        path
    }

    #[test]
    fn what_was_not_used_for_longest_goes_when_there_is_too_much() {
        let disk = disk("limit", Some(1000));
        let old = store(&disk, Kind::Kernels, 1, 300, 100);
        let used = store(&disk, Kind::Kernels, 2, 300, 90);
        let choice = store(&disk, Kind::Products, 3, 300, 80);
        assert_eq!((disk.usage(), disk.evicted()), ((3, 900), 0));
        disk.loaded(&used);
        disk.loaded(&choice);
        let new = store(&disk, Kind::Kernels, 4, 300, 0);
        // 1200 bytes are too many, 900 would still be more than seven eighths.
        assert!(!old.exists() && new.exists());
        assert_eq!((disk.usage(), disk.evicted()), ((2, 600), 2));
        assert!(!used.exists() && choice.exists(), "the one that was loaded first goes first");
    }

    #[test]
    fn without_a_limit_nothing_goes() {
        let disk = disk("unlimited", None);
        for number in 0..50 {
            store(&disk, Kind::Kernels, number, 1000, 0);
        }
        assert_eq!((disk.usage(), disk.evicted()), ((50, 50_000), 0));
    }

    #[test]
    fn clearing_removes_entries_and_nothing_else() {
        let disk = disk("clear", Some(1 << 20));
        store(&disk, Kind::Kernels, 1, 100, 0);
        store(&disk, Kind::Products, 2, 50, 0);
        let others = ["notes.txt", "0123", "g".repeat(64).as_str()]
            .map(|name| disk.folder(Kind::Kernels).unwrap().join(name));
        others.iter().for_each(|path| fs::write(path, "mine").unwrap());
        fs::create_dir(disk.folder(Kind::Products).unwrap().join(format!("{:032x}.json", 9))).unwrap();
        assert_eq!(disk.usage(), (2, 150));
        assert_eq!(disk.clear(), 150);
        assert_eq!((disk.usage(), disk.clear()), ((0, 0), 0));
        assert!(others.iter().all(|path| path.exists()));
        // It goes on as before.
        store(&disk, Kind::Kernels, 1, 100, 0);
        assert_eq!(disk.usage(), (1, 100));
    }

    #[test]
    fn entries_of_other_processes_count() {
        let disk = disk("others", Some(1000));
        let other = Disk::new(&CacheFolder::At(disk.root.clone().unwrap()), None);
        store(&disk, Kind::Kernels, 1, 100, 50);
        for number in 10..20 {
            store(&other, Kind::Kernels, number, 100, 10);
        }
        // As far as this one knows there is room; it looks when there would not be.
        store(&disk, Kind::Kernels, 2, 100, 0);
        assert_eq!(disk.usage().1, 1200);
        store(&disk, Kind::Kernels, 3, 801, 0);
        assert!(disk.usage().1 <= 875, "{:?}", disk.usage());
    }

    #[test]
    fn without_a_folder_there_is_nothing() {
        let disk = Disk::new(&CacheFolder::Off, Some(10));
        disk.stored(100);
        assert_eq!((disk.folder(Kind::Kernels), disk.usage(), disk.clear()), (None, (0, 0), 0));
    }

    #[test]
    #[cfg(unix)]
    fn nothing_is_removed_where_others_may_write() {
        use std::os::unix::fs::PermissionsExt as _;
        let disk = disk("untrusted", Some(100));
        let path = store(&disk, Kind::Kernels, 1, 50, 0);
        let folder = disk.folder(Kind::Kernels).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!((disk.usage(), disk.clear()), ((0, 0), 0));
        disk.stored(1000);
        assert!(path.exists());
    }
}
