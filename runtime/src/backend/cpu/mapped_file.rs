//! Files in memory that are read as their bytes are used.

use std::{
    fs::{File, Metadata},
    io,
    ops::Range,
    path::Path,
};

use memmap2::{Mmap, MmapOptions};

/// A file in memory: its pages are read when they are used, and given back when memory is short.
///
/// As long as it exists, nobody may write to the file or cut it off: that is what [`open`](Self::open) demands of its caller.
#[derive(Debug)]
pub struct MappedFile {
    /// `None` if the file is empty, which cannot be mapped.
    map: Option<Mmap>,
}

impl MappedFile {
    /// Maps the file at `path`.
    ///
    /// # Errors
    /// Returns errors of the file system; a folder is [`io::ErrorKind::IsADirectory`], and what else is not a regular file, such as
    /// a pipe, [`io::ErrorKind::Unsupported`]. Such a file is not opened, so that it can still be read.
    ///
    /// # Safety
    /// Until the value is dropped, no process may write to the file or cut it off: slices of [`bytes`](Self::bytes) would change
    /// under their readers, and reading behind the new end ends the process. Replacing the file by another one of its name, as
    /// programs that download do, or removing it, is allowed.
    pub unsafe fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        // Before it is opened, which would wait for a writer to a pipe, and take it from whoever reads the pipe instead.
        check_regular(&std::fs::metadata(path)?)?;
        let file = File::open(path)?;
        // It may have been replaced since.
        let known = file.metadata()?;
        check_regular(&known)?;
        if known.len() == 0 {
            return Ok(Self { map: None });
        }
        // SAFETY: `MmapOptions::map` asks that the file does not change while it is mapped, which is what the caller guarantees.
        // Only shared slices of it are handed out, which cannot outlive the value. Every pattern of bytes is valid.
        let map = unsafe { MmapOptions::new().map(&file) }?;
        Ok(Self { map: Some(map) })
    }

    /// Returns the contents.
    pub fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    /// Returns where in the file `part` is; `None` if it is not a part of it.
    pub(crate) fn range(&self, part: &[u8]) -> Option<Range<usize>> {
        let all = self.bytes();
        let start = part.as_ptr().addr().checked_sub(all.as_ptr().addr())?;
        let end = start.checked_add(part.len())?;
        (end <= all.len()).then_some(start..end)
    }
}

/// Refuses what has no contents of a known length.
fn check_regular(known: &Metadata) -> io::Result<()> {
    if known.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !known.is_file() {
        let reason =
            "it is a pipe, a socket or a device, and only regular files can be mapped: read it instead";
        return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
    }
    Ok(())
}

#[cfg(test)]
impl MappedFile {
    /// Maps a file of a test, which removes and replaces its files, but never writes to one that is mapped.
    pub(crate) fn of_test(path: impl AsRef<Path>) -> io::Result<Self> {
        // SAFETY: tests have files of their own, to which no other process writes.
        unsafe { Self::open(path) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_the_contents() {
        let path = std::env::temp_dir().join(format!("graphable-mapped-{}", std::process::id()));
        std::fs::write(&path, b"weights").unwrap();
        let file = MappedFile::of_test(&path).unwrap();
        // Another file of that name, as a download makes one.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, b"").unwrap();
        assert_eq!(file.bytes(), b"weights");
        assert_eq!(MappedFile::of_test(&path).unwrap().bytes(), b"");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(MappedFile::of_test(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(
            MappedFile::of_test(std::env::temp_dir()).unwrap_err().kind(),
            io::ErrorKind::IsADirectory
        );
    }

    /// Nobody writes to the pipe, so that opening it would not end.
    #[test]
    #[cfg(unix)]
    fn refuses_what_is_not_a_regular_file() {
        let pipe = std::env::temp_dir().join(format!("graphable-pipe-{}", std::process::id()));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [pipe.as_path(), Path::new("/dev/zero")] {
            let e = MappedFile::of_test(path).unwrap_err();
            assert_eq!(e.kind(), io::ErrorKind::Unsupported, "{e}");
            assert!(e.to_string().contains("only regular files can be mapped"), "{e}");
        }
        std::fs::remove_file(&pipe).unwrap();
    }
}
