//! The file that is written: under another name, until it is complete.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use crate::{Error, Result};

/// A file that is removed again if it is dropped before it is complete.
pub(super) struct Output {
    path: PathBuf,
    overwrite: bool,
    file: NamedTempFile,
}

impl Output {
    /// Refuses a path at which there is something that may not be overwritten, or that cannot be one of a file.
    pub(super) fn check(path: &Path, overwrite: bool) -> Result<()> {
        let at = |reason: &str, help: &str| {
            Err(Error::File { path: path.to_owned(), reason: reason.into(), help: help.into() })
        };
        match path.symlink_metadata() {
            Ok(found) if found.is_dir() => at("is a folder", "name the file that is to be written"),
            Ok(_) if !overwrite => {
                at("there is such a file already", "pass `--overwrite`, or name another file")
            }
            _ if path.file_name().is_none() => {
                at("is no name of a file", "name the file that is to be written")
            }
            _ => Ok(()),
        }
    }

    /// Creates the file under another name in the folder of `path`.
    pub(super) fn create(path: &Path, overwrite: bool) -> Result<Self> {
        Self::check(path, overwrite)?;
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut builder = tempfile::Builder::new();
        let (prefix, suffix) = (format!(".{name}."), ".part");
        builder.prefix(&prefix).suffix(suffix);
        // Readable for whom other new files are readable, not only for the user.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder.tempfile_in(folder).map_err(|e| Error::io(path, "create", &e))?;
        Ok(Self { path: path.to_owned(), overwrite, file })
    }

    /// Where to write.
    pub(super) fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Gives the file its name, when all of it is on the disk. Returns its length.
    pub(super) fn finish(self) -> Result<u64> {
        let failed = |e: &io::Error| Error::io(&self.path, "write", e);
        // The rename must not be on the disk before the contents are.
        self.file.as_file().sync_all().map_err(|e| failed(&e))?;
        let bytes = self.file.as_file().metadata().map_err(|e| failed(&e))?.len();
        let named = match self.overwrite {
            true => self.file.persist(&self.path),
            // Somebody may have written one meanwhile.
            false => self.file.persist_noclobber(&self.path),
        };
        match named {
            Ok(_) => Ok(bytes),
            Err(e) => Err(Error::io(&self.path, "write", &e.error)),
        }
    }
}
