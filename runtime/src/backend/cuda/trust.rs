//! Files that are loaded as code, and their folders: only those that nobody else can write.
//!
//! Compiled kernels run on the device with access to everything that the process has there, and an algorithm
//! of the library may be anything. Using a folder that others can write would let them run their code, so
//! nothing is loaded from or stored in such a folder.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    process,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

/// Returns the reason why user `me` should not trust something with this owner and mode: root can do anything
/// in any case.
#[cfg(any(unix, test))]
fn refusal(owner: u32, mode: u32, me: u32) -> Option<String> {
    if owner != me && owner != 0 {
        return Some(format!("it belongs to user {owner}, and this process runs as user {me}"));
    }
    match (mode & 0o020 != 0, mode & 0o002 != 0) {
        (_, true) => Some(format!("everybody may write it (mode {:o})", mode & 0o7777)),
        (true, _) => Some(format!("its group may write it (mode {:o})", mode & 0o7777)),
        _ => None,
    }
}

/// Like [`refusal`], for a parent folder: if everybody may write to it but only the owner of an entry may
/// replace it, as in `/tmp`, the entry that leads here is as safe as its own owner.
#[cfg(any(unix, test))]
fn refusal_above(owner: u32, mode: u32, me: u32) -> Option<String> {
    const STICKY: u32 = 0o1000;
    match mode & STICKY {
        0 => refusal(owner, mode, me),
        _ => refusal(owner, mode & !0o022, me),
    }
}

#[cfg(unix)]
fn user() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(unix)]
fn distrust(of: &fs::Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    refusal(of.uid(), of.mode(), user())
}

/// Returns who can replace a folder on the way to `folder`, on any path that leads there.
#[cfg(unix)]
fn distrust_above(folder: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let folder = fs::canonicalize(folder).ok()?;
    folder.ancestors().skip(1).find_map(|above| {
        let of = fs::metadata(above).ok()?;
        let reason = refusal_above(of.uid(), of.mode(), user())?;
        Some(format!("{} above it: {reason}", above.display()))
    })
}

/// Elsewhere a user's folders are the user's.
#[cfg(not(unix))]
fn distrust(_: &fs::Metadata) -> Option<String> {
    None
}

#[cfg(not(unix))]
fn distrust_above(_: &Path) -> Option<String> {
    None
}

/// Returns whether files in `folder` may be loaded, and stored there; a folder that does not exist yet may be
/// used. An untrusted folder is reported once, with the remedy.
pub(super) fn is_trusted(folder: &Path) -> bool {
    static WARNED: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);
    let own = fs::metadata(folder).ok().as_ref().and_then(distrust);
    let Some(reason) = own.or_else(|| distrust_above(folder)) else { return true };
    let mut warned = WARNED.lock().unwrap_or_else(PoisonError::into_inner);
    if warned.get_or_insert_default().insert(folder.to_owned()) {
        tracing::warn!(
            folder = %folder.display(),
            "the cache is not used, since others could put code there: {reason}; every start compiles and measures. \
             Make the folder yours alone (`chown $USER`, `chmod go-w`), or point GRAPHABLE_CACHE at one that is"
        );
    }
    false
}

/// The bytes of a file in a trusted folder.
///
/// # Errors
/// Returns errors of the system; [`io::ErrorKind::PermissionDenied`] for a file that others can write.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    // Checks the open file, not the one that has the name by now.
    if let Some(reason) = distrust(&file.metadata()?) {
        let reason = format!("others could have put code there: {reason}; remove the file");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a file in one step: readers see all of it or nothing. Folder and file are the user's alone.
///
/// # Errors
/// Returns errors of the system; no part of the file then remains.
pub(super) fn publish(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    if let Some(folder) = path.parent() {
        create(folder)?;
    }
    // A unique name, then renamed: of concurrent writers of one file, the last one wins. Processes in
    // containers may share a process id, but not the time as well.
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let beside = path.with_extension(format!("{}-{serial}-{now:x}.tmp", process::id()));
    let written = private_file(&beside).and_then(|mut file| {
        parts.iter().try_for_each(|part| file.write_all(part))?;
        file.sync_all()
    });
    let moved = written.and_then(|()| fs::rename(&beside, path));
    if moved.is_err() {
        // Nothing more can be done about it, and the first error is more informative.
        let _ = fs::remove_file(&beside);
    }
    moved
}

fn create(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Opens the file of this name, and none that it links to.
fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW);
    options.open(path)
}

fn private_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    // Never one that is there already, which may be a link.
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_else_may_write_is_trusted() {
        assert_eq!(refusal(1000, 0o040_700, 1000), None);
        assert_eq!(refusal(1000, 0o100_644, 1000), None, "others may read");
        assert_eq!(refusal(0, 0o040_755, 1000), None, "the system's");
        let reason = |owner, mode, me| refusal(owner, mode, me).unwrap();
        assert!(reason(1000, 0o040_777, 1000).contains("everybody may write it (mode 777)"));
        assert!(reason(1000, 0o040_775, 1000).contains("its group may write it (mode 775)"));
        assert!(reason(1001, 0o040_700, 1000).contains("user 1001"));
        assert!(reason(1000, 0o040_700, 0).contains("user 1000"), "root does not run a user's code");
        assert!(reason(0, 0o041_777, 1000).contains("everybody"), "such as /tmp");
        assert_eq!(refusal_above(0, 0o041_777, 1000), None, "below /tmp");
        assert!(refusal_above(0, 0o040_777, 1000).is_some_and(|reason| reason.contains("everybody")));
        assert!(refusal_above(1001, 0o041_700, 1000).is_some_and(|reason| reason.contains("user 1001")));
    }

    #[cfg(unix)]
    mod on_disk {
        use std::os::unix::fs::PermissionsExt as _;

        use super::*;

        fn set(path: &Path, mode: u32) {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }

        #[test]
        fn what_is_kept_is_the_users_alone_and_changes_are_seen() {
            let root = std::env::temp_dir().join(format!("graphable-trust-{}", process::id()));
            let _ = fs::remove_dir_all(&root);
            let folder = root.join("a").join("b");
            assert!(is_trusted(&folder), "not there yet");
            let file = folder.join("entry");
            publish(&file, &[b"co", b"de"]).unwrap();
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            // A umask can only take rights away.
            assert_eq!((mode(&folder) & 0o077, mode(&file) & 0o177), (0, 0));
            assert!(is_trusted(&folder));
            assert_eq!(read(&file).unwrap(), b"code");
            set(&file, 0o666);
            assert_eq!(read(&file).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
            set(&folder, 0o777);
            assert!(!is_trusted(&folder));
            set(&folder, 0o770);
            assert!(!is_trusted(&folder));
            set(&folder, 0o755);
            assert!(is_trusted(&folder));
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no temporary file is left");
            let above = folder.parent().unwrap();
            set(above, 0o777);
            assert!(!is_trusted(&folder), "the folder can be replaced");
            set(above, 0o1777);
            assert!(is_trusted(&folder), "only by who owns it");
            std::os::unix::fs::symlink(&file, folder.join("link")).unwrap();
            set(&file, 0o600);
            assert_eq!(read(&file).unwrap(), b"code");
            assert!(read(&folder.join("link")).is_err(), "another file under this name");
            fs::remove_dir_all(&root).unwrap();
        }
    }
}
