//! Files that are complete or not there at all.

use crate::error::{Error, Result};
use std::fs;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file being written. It takes its name only when [`OutputFile::commit`] is called; dropped before that, it
/// leaves nothing behind, and whatever stood at its place stays.
///
/// Open it before long work, so that a destination that cannot be written is found out at once. The path `-`
/// means standard output; a device or pipe is written straight through.
///
/// ```
/// use hdsl::data::OutputFile;
/// use std::io::Write;
/// # let folder = std::env::temp_dir().join(format!("hdsl-out-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let path = folder.join("answer.txt");
/// let mut out = OutputFile::create(&path)?;
/// out.fill(|out| writeln!(out, "42"))?;
/// assert!(!path.exists());
/// out.commit()?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "42\n");
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), hdsl::Error>(())
/// ```
pub struct OutputFile {
    path: PathBuf,
    out: BufWriter<Box<dyn Write + Send>>,
    rename: Option<Rename>,
}

/// A temporary file that takes the place of another.
struct Rename {
    temporary: NamedTempFile,
    destination: PathBuf,
    /// Permissions of the file that is replaced.
    permissions: Option<fs::Permissions>,
}

impl OutputFile {
    /// Opens the destination, or says why it cannot be written. The destination is not changed yet.
    pub fn create(path: &Path) -> Result<Self> {
        let (out, rename) = open(path).map_err(|source| write_error(path, source))?;
        Ok(Self {
            path: path.to_owned(),
            out: BufWriter::with_capacity(1 << 16, out),
            rename,
        })
    }

    /// The path given at the start.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets `write` write, and adds the file's name to its error.
    pub fn fill(&mut self, write: impl FnOnce(&mut Self) -> io::Result<()>) -> Result<()> {
        write(self).map_err(|source| write_error(&self.path, source))
    }

    /// Overwrites the first bytes of what was written so far. What is no file of its own, such as a pipe, cannot do this.
    pub(crate) fn overwrite_start(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.flush()?;
        let Some(rename) = &mut self.rename else {
            let kind = io::ErrorKind::Unsupported;
            return Err(io::Error::new(
                kind,
                "expected a file, not a pipe or a device",
            ));
        };
        let file = rename.temporary.as_file_mut();
        file.rewind()?;
        file.write_all(bytes)?;
        file.seek(SeekFrom::End(0)).map(|_| ())
    }

    /// Writes what is buffered, waits until it is on disk, and gives the file its name.
    pub fn commit(mut self) -> Result<()> {
        let mut commit = || {
            self.out.flush()?;
            let Some(rename) = self.rename.take() else {
                return Ok(());
            };
            let file = rename.temporary.as_file();
            if let Some(permissions) = rename.permissions {
                file.set_permissions(permissions)?;
            }
            file.sync_all()?;
            rename.temporary.persist(rename.destination)?;
            Ok(())
        };
        commit().map_err(|source| write_error(&self.path, source))
    }
}

fn write_error(path: &Path, source: io::Error) -> Error {
    Error::Write {
        path: path.to_owned(),
        source,
    }
}

fn open(path: &Path) -> io::Result<(Box<dyn Write + Send>, Option<Rename>)> {
    if path == Path::new("-") {
        return Ok((Box::new(io::stdout()), None));
    }
    let existing = match fs::metadata(path) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    // A link is followed, as plain writing would: the file it points to is replaced.
    let destination = match &existing {
        Some(metadata) if metadata.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Some(metadata) if !metadata.is_file() => {
            let file = fs::OpenOptions::new().write(true).open(path)?;
            return Ok((Box::new(file), None));
        }
        // Renaming would work, but a read-only file is not meant to be replaced.
        Some(metadata) if metadata.permissions().readonly() => {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Some(_) => fs::canonicalize(path)?,
        None => path.to_owned(),
    };
    if destination.file_name().is_none() || path.as_os_str().is_empty() {
        let kind = io::ErrorKind::InvalidInput;
        return Err(io::Error::new(kind, "the path names no file"));
    }
    let folder = match destination.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".hdsl-").suffix(".tmp");
    #[cfg(unix)]
    {
        // The system applies the user's mask, as for any new file; the default would be 0600.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let temporary = builder.tempfile_in(folder).map_err(plain)?;
    let rename = Rename {
        destination,
        permissions: existing.map(|metadata| metadata.permissions()),
        temporary,
    };
    let file = rename.temporary.as_file().try_clone()?;
    Ok((Box::new(file), Some(rename)))
}

/// The error of the operating system without the name of the temporary file.
fn plain(error: io::Error) -> io::Error {
    match std::error::Error::source(&error).and_then(|inner| inner.downcast_ref::<io::Error>()) {
        Some(inner) => inner
            .raw_os_error()
            .map_or_else(|| inner.kind().into(), io::Error::from_raw_os_error),
        None => error.kind().into(),
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn dropped_without_commit_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "old").unwrap();
        let mut out = OutputFile::create(&path).unwrap();
        out.write_all(b"new").unwrap();
        drop(out);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(files(folder.path()), ["a"]);
        let mut out = OutputFile::create(&path).unwrap();
        out.write_all(b"new").unwrap();
        out.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(files(folder.path()), ["a"]);
    }

    #[test]
    fn hopeless_destinations_are_found_out_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let locked = folder.path().join("locked");
        fs::write(&locked, "").unwrap();
        let mut permissions = fs::metadata(&locked).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&locked, permissions).unwrap();
        for path in [
            folder.path().to_owned(),
            folder.path().join("none/a"),
            locked.join("a"),
            locked,
            PathBuf::new(),
            PathBuf::from("/"),
            PathBuf::from(".."),
        ] {
            let error = OutputFile::create(&path).err().unwrap();
            assert!(matches!(error, Error::Write { .. }), "{path:?}: {error}");
            assert!(!error.to_string().contains(".hdsl-"), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn looks_like_any_other_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (plain, ours) = (folder.path().join("plain"), folder.path().join("ours"));
        fs::write(&plain, "").unwrap();
        OutputFile::create(&ours).unwrap().commit().unwrap();
        assert_eq!(mode(&ours), mode(&plain));
        fs::set_permissions(&ours, fs::Permissions::from_mode(0o640)).unwrap();
        OutputFile::create(&ours).unwrap().commit().unwrap();
        assert_eq!(mode(&ours), 0o640);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&plain, &link).unwrap();
        let mut out = OutputFile::create(&link).unwrap();
        out.write_all(b"through").unwrap();
        out.commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&plain).unwrap(), b"through");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn devices_are_written_straight_through() {
        let mut out = OutputFile::create(Path::new("/dev/null")).unwrap();
        out.write_all(b"gone").unwrap();
        out.commit().unwrap();
        // A device that is always full: the error comes out at the end, not lost in a buffer.
        let mut out = OutputFile::create(Path::new("/dev/full")).unwrap();
        out.write_all(b"no room").unwrap();
        let error = out.commit().unwrap_err();
        assert!(matches!(error, Error::Write { .. }), "{error}");
    }
}
