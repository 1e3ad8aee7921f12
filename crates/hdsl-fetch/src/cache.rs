//! The cache folder of a data set, its lock, and the digests of the downloaded files.

use crate::error::{FetchError, Result};
use etcetera::BaseStrategy;
use hdsl::data::OutputFile;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Digests of the files in the folder, in the format of `sha256sum -c`.
const SUMS: &str = "SHA256SUMS";

/// The default cache folder: the environment variable `HDSL_DATA`, or `hdsl` in the user's cache folder.
pub fn default_folder() -> Result<PathBuf> {
    match std::env::var_os("HDSL_DATA") {
        Some(folder) if !folder.is_empty() => Ok(PathBuf::from(folder)),
        _ => etcetera::choose_base_strategy()
            .map(|dirs| dirs.cache_dir().join("hdsl"))
            .map_err(|_| FetchError::NoCacheFolder),
    }
}

/// The folder of one data set, locked against other processes.
pub(crate) struct Cache {
    folder: PathBuf,
    /// Whether lines of the list of digests that cannot be read are left out; otherwise they are an error.
    repairs: bool,
    _lock: Option<File>,
}

impl Cache {
    /// Locks the folder. Calls `on_wait` and waits if another process fetches the same set.
    pub(crate) fn open(folder: PathBuf, mut on_wait: impl FnMut()) -> Result<Self> {
        // A read-only cache, filled by another user, works without a lock.
        let lock = fs::create_dir_all(&folder)
            .and_then(|()| File::create(folder.join(".lock")))
            .ok();
        if let Some(lock) = &lock
            && matches!(lock.try_lock(), Err(fs::TryLockError::WouldBlock))
        {
            on_wait();
            // Some file systems do not support locks. Then concurrent downloads are not prevented.
            let _ = lock.lock();
        }
        Ok(Self {
            folder,
            repairs: false,
            _lock: lock,
        })
    }

    /// From now on, a damaged list of digests is written anew, without the lines that cannot be read.
    pub(crate) fn repair(&mut self) {
        self.repairs = true;
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Whether the file exists. Its digest must be the recorded one; a file without a record, placed by the user, is
    /// accepted and recorded.
    pub(crate) fn contains(&self, name: &str) -> Result<bool> {
        let path = self.path(name);
        if !path.is_file() {
            return Ok(false);
        }
        let found = digest(&path)?;
        match self.sums()?.get(name) {
            Some(expected) if *expected != found => Err(FetchError::Changed {
                path,
                expected: expected.clone(),
                found,
            }),
            Some(_) => Ok(true),
            None => {
                // A read-only cache cannot record it.
                let _ = self.record(name, found);
                Ok(true)
            }
        }
    }

    /// Records the digest of a file.
    pub(crate) fn record(&self, name: &str, digest: String) -> Result<()> {
        let mut sums = self.sums()?;
        sums.insert(name.to_owned(), digest);
        self.write_sums(&sums)
    }

    /// Removes the recorded digest of a file that is about to be replaced.
    pub(crate) fn remove_record(&self, name: &str) -> Result<()> {
        let mut sums = self.sums()?;
        match sums.remove(name) {
            Some(_) => self.write_sums(&sums),
            None => Ok(()),
        }
    }

    fn write_sums(&self, sums: &BTreeMap<String, String>) -> Result<()> {
        let mut out = OutputFile::create(&self.path(SUMS))?;
        out.fill(|out| {
            sums.iter()
                .try_for_each(|(name, digest)| writeln!(out, "{digest}  {name}"))
        })?;
        Ok(out.commit()?)
    }

    fn sums(&self) -> Result<BTreeMap<String, String>> {
        let path = self.path(SUMS);
        let text = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(source) => return Err(hdsl::Error::Read { path, source }.into()),
        };
        let is_digest =
            |word: &str| word.len() == 64 && word.bytes().all(|b| b.is_ascii_hexdigit());
        let mut sums = BTreeMap::new();
        for (at, line) in text.lines().enumerate() {
            match line.split_once("  ") {
                Some((digest, name)) if is_digest(digest) && !name.contains('\u{fffd}') => {
                    sums.insert(name.to_owned(), digest.to_lowercase());
                }
                _ if self.repairs => {}
                _ => {
                    let shown: String = line.chars().take(100).collect();
                    let reason = format!(
                        "line {} is damaged: expected a SHA-256 digest, two spaces and a file name, found {shown:?}",
                        at + 1
                    );
                    return Err(FetchError::Corrupt { path, reason });
                }
            }
        }
        Ok(sums)
    }
}

/// The SHA-256 digest of a file, in hexadecimal.
pub(crate) fn digest(path: &Path) -> Result<String> {
    let read = |source| hdsl::Error::Read {
        path: path.to_owned(),
        source,
    };
    let mut file = File::open(path).map_err(read)?;
    let mut sha = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        let n = file.read(&mut buffer).map_err(read)?;
        if n == 0 {
            break;
        }
        sha.update(&buffer[..n]);
    }
    Ok(sha.finalize().iter().map(|b| format!("{b:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_agrees_with_the_standard() {
        // An example of FIPS 180-4.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("abc");
        fs::write(&path, "abc").unwrap();
        assert_eq!(
            digest(&path).unwrap(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn a_changed_file_is_an_error_and_a_file_without_a_record_is_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let mut cache = Cache::open(folder.path().join("set"), || ()).unwrap();
        assert!(!cache.contains("a").unwrap());
        fs::write(cache.path("a"), "one").unwrap();
        assert!(cache.contains("a").unwrap() && cache.contains("a").unwrap());
        fs::write(cache.path("a"), "two").unwrap();
        let error = cache.contains("a").unwrap_err();
        assert!(matches!(error, FetchError::Changed { .. }), "{error}");
        cache.remove_record("a").unwrap();
        assert!(cache.contains("a").unwrap());
        fs::write(cache.path(SUMS), "nonsense\n").unwrap();
        let error = cache.contains("a").unwrap_err().to_string();
        assert!(
            error.contains("SHA256SUMS: line 1 is damaged: expected a SHA-256 digest"),
            "{error}"
        );
        // Repaired: what can be read stays, such as the second of these lines.
        let good = format!("{}  b\n", "0".repeat(64));
        fs::write(
            cache.path(SUMS),
            ["\u{0}x  y\n".as_bytes(), good.as_bytes(), b"\xff"].concat(),
        )
        .unwrap();
        assert!(cache.record("a", "1".repeat(64)).is_err());
        cache.repair();
        cache.record("a", "1".repeat(64)).unwrap();
        let sums = fs::read_to_string(cache.path(SUMS)).unwrap();
        assert_eq!(sums, format!("{}  a\n{good}", "1".repeat(64)));
    }
}
