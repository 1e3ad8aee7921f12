//! Files that are complete or not there at all.

use crate::error::{Error, Result};
use std::fs;
use std::io::{self, BufWriter, IsTerminal, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use tempfile::NamedTempFile;

/// How the names of temporary files begin and end.
const TEMPORARY: [&str; 2] = [".hdsl-", ".tmp"];

/// A file being written. It takes its name only when [`OutputFile::commit`] is called; dropped before that, it
/// leaves nothing behind, and whatever stood at its place stays.
///
/// Open it before long work, so that a destination that cannot be written is found out at once. The path `-`
/// means standard output; a device or pipe is written straight through.
///
/// A process that is killed leaves its temporary file behind. The next [`OutputFile`] of a later process in that folder
/// removes it: temporary files are locked as long as their process lives.
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
    pub fn commit(self) -> Result<()> {
        Self::commit_all(vec![self])
    }

    /// The same for files that belong together. All are on disk before the first takes its name, so that none of them is
    /// replaced if one cannot be written. The old files of all but the first are removed before the first is replaced: a
    /// process that is killed in between leaves some of the files missing, never old ones beside new ones.
    pub fn commit_all(files: Vec<Self>) -> Result<()> {
        Self::replace_all(files, || ())
    }

    /// Calls `each` after every change of the folder.
    fn replace_all(mut files: Vec<Self>, mut each: impl FnMut()) -> Result<()> {
        for file in &mut files {
            file.settle()
                .map_err(|source| write_error(&file.path, source))?;
        }
        for file in files.iter().skip(1) {
            let Some(rename) = file.rename.as_ref().filter(|r| r.permissions.is_some()) else {
                continue;
            };
            match fs::remove_file(&rename.destination) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(write_error(&file.path, error));
                }
                _ => each(),
            }
        }
        for file in &mut files {
            let Some(rename) = file.rename.take() else {
                continue;
            };
            let name = rename.temporary.path().to_owned();
            let renamed = rename.temporary.persist(rename.destination);
            // The error contains the temporary file, which is removed with it.
            renamed.map_err(|failed| write_error(&file.path, failed.error))?;
            temporaries().retain(|path| *path != name);
            each();
        }
        Ok(())
    }

    /// Writes what is buffered, and waits until it is on disk.
    fn settle(&mut self) -> io::Result<()> {
        self.out.flush()?;
        let Some(rename) = &self.rename else {
            return Ok(());
        };
        let file = rename.temporary.as_file();
        if let Some(permissions) = &rename.permissions {
            file.set_permissions(permissions.clone())?;
        }
        file.sync_all()
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(rename) = &self.rename {
            temporaries().retain(|path| path != rename.temporary.path());
        }
    }
}

/// The temporary files of this process.
fn temporaries() -> MutexGuard<'static, Vec<PathBuf>> {
    static NAMES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the temporary files of this process: for a process that is about to be ended by a signal.
pub fn remove_temporary_files() {
    for path in temporaries().drain(..) {
        // A file that is gone already has been renamed or removed.
        let _ = fs::remove_file(path);
    }
}

/// Removes the temporary files that killed processes left in a folder: those that are older than this process and not
/// locked by another.
fn remove_leftovers(folder: &Path) {
    static STARTED: LazyLock<SystemTime> = LazyLock::new(SystemTime::now);
    static SEEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let started = *STARTED;
    {
        let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.iter().any(|known| known == folder) {
            return;
        }
        seen.push(folder.to_owned());
    }
    // A folder that cannot be listed may still be written.
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let is_ours = |name: &std::ffi::OsStr| {
        let name = name.as_encoded_bytes();
        let [start, end] = TEMPORARY.map(str::as_bytes);
        name.starts_with(start) && name.ends_with(end)
    };
    for entry in entries.flatten().filter(|e| is_ours(&e.file_name())) {
        let is_old = || -> io::Result<bool> {
            let metadata = entry.metadata()?;
            Ok(metadata.is_file() && metadata.modified()? < started)
        };
        if !is_old().unwrap_or(false) {
            continue;
        }
        let Ok(file) = fs::File::open(entry.path()) else {
            continue;
        };
        if file.try_lock().is_ok() {
            // Another process may have removed it.
            let _ = fs::remove_file(entry.path());
        }
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
        return Ok(match io::stdout().is_terminal() {
            true => (Box::new(Escaped(io::stdout())), None),
            false => (Box::new(io::stdout()), None),
        });
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
        None => end_of_links(path),
    };
    if destination.file_name().is_none() || path.as_os_str().is_empty() {
        let kind = io::ErrorKind::InvalidInput;
        return Err(io::Error::new(kind, "the path names no file"));
    }
    let folder = match destination.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    remove_leftovers(folder);
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY[0]).suffix(TEMPORARY[1]);
    #[cfg(unix)]
    {
        // The system applies the user's mask, as for any new file; the default would be 0600.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let temporary = builder.tempfile_in(folder).map_err(plain)?;
    temporaries().push(temporary.path().to_owned());
    // Where files cannot be locked, a leftover may be removed while its process lives; writing it then fails.
    let _ = temporary.as_file().try_lock();
    let rename = Rename {
        destination,
        permissions: existing.map(|metadata| metadata.permissions()),
        temporary,
    };
    let file = rename.temporary.as_file().try_clone()?;
    Ok((Box::new(file), Some(rename)))
}

/// Where a path leads that may be a link, or a chain of them, to a file that does not exist yet.
fn end_of_links(path: &Path) -> PathBuf {
    let mut end = path.to_owned();
    // As many as Linux follows. A circle is an error before this.
    for _ in 0..40 {
        let Ok(target) = fs::read_link(&end) else {
            break;
        };
        end = end.parent().unwrap_or(Path::new("")).join(target);
    }
    end
}

/// Text for a terminal: control characters, which could clear it or change what was shown, are replaced by `?`. Ends of
/// lines and tabs stay.
struct Escaped<W>(W);

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_control = |&b: &u8| (b < 0x20 && b != b'\n' && b != b'\t') || b == 0x7f;
        let mut shown: Vec<u8> = (bytes.iter())
            .map(|b| if is_control(b) { b'?' } else { *b })
            .collect();
        // The control characters above ASCII are C2 80 to C2 9F in UTF-8.
        for at in 1..shown.len() {
            if shown[at - 1] == 0xc2 && (0x80..0xa0).contains(&shown[at]) {
                shown[at - 1..=at].copy_from_slice(b"??");
            }
        }
        self.0.write_all(&shown)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The error of the operating system without the name of the temporary file, which is all that tempfile adds.
fn plain(error: io::Error) -> io::Error {
    match error.kind() {
        // What the standard library says of this kind is "entity not found".
        kind @ io::ErrorKind::NotFound => io::Error::new(kind, "No such file or directory"),
        kind => kind.into(),
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

    #[test]
    fn files_that_belong_together_are_replaced_together() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        fs::write(&a, "old").unwrap();
        let both = || {
            [&a, &b].map(|path| {
                let mut out = OutputFile::create(path).unwrap();
                out.write_all(b"new").unwrap();
                out
            })
        };
        #[cfg(target_os = "linux")]
        {
            let mut files = Vec::from(both());
            files.push(OutputFile::create(Path::new("/dev/full")).unwrap());
            files[2].write_all(b"no room").unwrap();
            assert!(OutputFile::commit_all(files).is_err());
            assert_eq!(self::files(folder.path()), ["a"]);
            assert_eq!(fs::read(&a).unwrap(), b"old");
        }
        OutputFile::commit_all(both().into()).unwrap();
        assert_eq!(self::files(folder.path()), ["a", "b"]);
        assert_eq!(fs::read(&a).unwrap(), b"new");
    }

    /// A link to a file that does not exist yet stays a link, also through others.
    #[cfg(unix)]
    #[test]
    fn links_that_lead_nowhere_yet_are_followed() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink("second", at("first")).unwrap();
        symlink(at("target"), at("second")).unwrap();
        symlink("none/target", at("hopeless")).unwrap();
        symlink("circle", at("circle")).unwrap();
        let mut out = OutputFile::create(&at("first")).unwrap();
        out.write_all(b"new").unwrap();
        out.commit().unwrap();
        assert_eq!(fs::read(at("target")).unwrap(), b"new");
        assert!(at("first").is_symlink() && at("second").is_symlink());
        for name in ["hopeless", "circle"] {
            let error = OutputFile::create(&at(name)).err().unwrap().to_string();
            assert!(
                error.contains(&format!("{name}: cannot write: ")),
                "{error}"
            );
            assert!(
                !error.contains(".hdsl-") && !error.contains("entity"),
                "{error}"
            );
        }
    }

    /// The name of the temporary file is nobody's business.
    #[test]
    fn errors_do_not_name_the_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let out = OutputFile::create(&path).unwrap();
        fs::create_dir_all(path.join("in the way")).unwrap();
        let error = out.commit().unwrap_err().to_string();
        assert!(error.contains("a: cannot write: "), "{error}");
        assert!(!error.contains(".hdsl-"), "{error}");
        fs::remove_dir_all(&path).unwrap();
        let out = OutputFile::create(&path).unwrap();
        let temporary = fs::read_dir(folder.path()).unwrap().next().unwrap();
        fs::remove_file(temporary.unwrap().path()).unwrap();
        let error = out.commit().unwrap_err().to_string();
        assert!(
            error.contains("a: cannot write: ") && !error.contains(".hdsl-"),
            "{error}"
        );
    }

    /// Whenever the process is killed, old and new files are not mixed.
    #[test]
    fn old_and_new_files_are_never_mixed() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "b", "c", "d"].map(|name| folder.path().join(name));
        // The last one is new.
        paths[..3].iter().for_each(|p| fs::write(p, "old").unwrap());
        let open = |path: &PathBuf| {
            let mut out = OutputFile::create(path).unwrap();
            out.write_all(b"new").unwrap();
            out
        };
        let mut states = Vec::new();
        OutputFile::replace_all(paths.iter().map(open).collect(), || {
            let read = paths
                .iter()
                .filter_map(|path| fs::read_to_string(path).ok());
            states.push(read.collect::<Vec<String>>());
        })
        .unwrap();
        assert_eq!(states.last().unwrap(), &["new"; 4]);
        assert_eq!(states.len(), 6);
        for mut state in states {
            state.dedup();
            assert_eq!(state.len(), 1, "{state:?}");
        }
    }

    /// Leftovers of killed processes are removed, but not the files of one that lives, nor those of others.
    #[test]
    fn leftovers_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        drop(OutputFile::create(&folder.path().join("first")).unwrap());
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let names = [".hdsl-a.tmp", ".hdsl-b.tmp", ".hdsl-new.tmp", "hdsl-c.tmp"];
        let long_ago = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        for name in names {
            fs::write(inner.join(name), "").unwrap();
            let file = fs::OpenOptions::new().write(true).open(inner.join(name));
            if name != ".hdsl-new.tmp" {
                file.unwrap().set_modified(long_ago).unwrap();
            }
        }
        let held = fs::File::open(inner.join(".hdsl-b.tmp")).unwrap();
        held.lock().unwrap();
        OutputFile::create(&inner.join("m"))
            .unwrap()
            .commit()
            .unwrap();
        let left = [".hdsl-b.tmp", ".hdsl-new.tmp", "hdsl-c.tmp", "m"];
        assert_eq!(files(&inner), left);
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

    #[test]
    fn a_terminal_gets_no_control_characters() {
        let mut out = Escaped(Vec::new());
        out.write_all("a\tb\u{1b}[2J\u{9b}é\n\u{7f}".as_bytes())
            .unwrap();
        assert_eq!(out.0, "a\tb?[2J??é\n?".as_bytes());
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
