//! Files that are loaded as code, and the folders that they are in: only what nobody else may write.
//!
//! Compiled kernels run on the device with everything that the process has there, and an algorithm of the library may
//! be anything. A folder that others can write is as good as letting them run their code, so nothing is loaded from
//! it, and nothing kept there.

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
};

/// Why something of this owner and mode is not to be trusted by user `me`: root may do anything in any case.
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

#[cfg(unix)]
fn distrust(of: &fs::Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    // SAFETY: takes nothing and cannot fail.
    let me = unsafe { libc::geteuid() };
    refusal(of.uid(), of.mode(), me)
}

/// Elsewhere a user's folders are the user's.
#[cfg(not(unix))]
fn distrust(_: &fs::Metadata) -> Option<String> {
    None
}

/// Whether files in `folder` may be loaded, and kept there; one that is not there yet may. What may not be is said
/// once for each folder, with the remedy.
pub(super) fn is_trusted(folder: &Path) -> bool {
    static WARNED: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);
    let Some(why) = fs::metadata(folder).ok().as_ref().and_then(distrust) else { return true };
    let mut warned = WARNED.lock().unwrap_or_else(PoisonError::into_inner);
    if warned.get_or_insert_default().insert(folder.to_owned()) {
        tracing::warn!(
            folder = %folder.display(),
            "the cache is not used, since others could put code there: {why}; every start compiles and measures. \
             Make the folder yours alone (`chown $USER`, `chmod go-w`), or point GRAPHABLE_CACHE at one that is"
        );
    }
    false
}

/// The bytes of a file in a trusted folder.
///
/// # Errors
/// What the system says; [`io::ErrorKind::PermissionDenied`] for a file that others may write.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    // Of what is open, not of what has the name by now.
    if let Some(why) = distrust(&file.metadata()?) {
        let why = format!("others could have put code there: {why}; remove the file");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a file in one step: readers see all of it or nothing. Folder and file are the user's alone.
///
/// # Errors
/// What the system says; nothing is left of the file then.
pub(super) fn publish(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    if let Some(folder) = path.parent() {
        create(folder)?;
    }
    // A name of our own, then renamed: of concurrent writers of one file the last one wins.
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let beside = path.with_extension(format!("{}-{serial}.tmp", process::id()));
    let written = private_file(&beside).and_then(|mut file| {
        parts.iter().try_for_each(|part| file.write_all(part))?;
        file.sync_all()
    });
    let moved = written.and_then(|()| fs::rename(&beside, path));
    if moved.is_err() {
        // Nothing more can be done about it, and the first error says more.
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

fn private_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
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
        let why = |owner, mode, me| refusal(owner, mode, me).unwrap();
        assert!(why(1000, 0o040_777, 1000).contains("everybody may write it (mode 777)"));
        assert!(why(1000, 0o040_775, 1000).contains("its group may write it (mode 775)"));
        assert!(why(1001, 0o040_700, 1000).contains("user 1001"));
        assert!(why(1000, 0o040_700, 0).contains("user 1000"), "root does not run a user's code");
        assert!(why(0, 0o041_777, 1000).contains("everybody"), "such as /tmp");
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
            fs::remove_dir_all(&root).unwrap();
        }
    }
}
