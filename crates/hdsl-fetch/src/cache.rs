//! The folder where files are kept, its lock, and the digests they had when they came.

use crate::error::{FetchError, Result};
use etcetera::BaseStrategy;
use hdsl::data::OutputFile;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Digests of the files beside it, in the form that `sha256sum -c` reads.
const SUMS: &str = "SHA256SUMS";

/// Where data is kept unless told otherwise: `HDSL_DATA`, or `hdsl` among the user's caches.
pub fn default_folder() -> Result<PathBuf> {
    match std::env::var_os("HDSL_DATA") {
        Some(folder) if !folder.is_empty() => Ok(PathBuf::from(folder)),
        _ => etcetera::choose_base_strategy()
            .map(|dirs| dirs.cache_dir().join("hdsl"))
            .map_err(|_| FetchError::NoFolder),
    }
}

/// The folder of one set. While it is open nobody else fetches the same set.
pub(crate) struct Cache {
    folder: PathBuf,
    _lock: Option<File>,
}

impl Cache {
    /// Waits, after a call of `waiting`, while another process fetches the same set.
    pub(crate) fn open(folder: PathBuf, mut waiting: impl FnMut()) -> Result<Self> {
        // A cache that others filled may be read-only, and serves all the same.
        let lock = fs::create_dir_all(&folder)
            .and_then(|()| File::create(folder.join(".lock")))
            .ok();
        if let Some(lock) = &lock
            && matches!(lock.try_lock(), Err(fs::TryLockError::WouldBlock))
        {
            waiting();
            // File systems without locks say so here; two downloads at once are then the user's affair.
            let _ = lock.lock();
        }
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Whether the file is there. If it is, it has to be what it was when it came; one that was put there by hand is
    /// taken as it is, and remembered.
    pub(crate) fn has(&self, name: &str) -> Result<bool> {
        let path = self.path(name);
        if !path.is_file() {
            return Ok(false);
        }
        let got = digest(&path)?;
        match self.sums()?.get(name) {
            Some(want) if *want != got => Err(FetchError::Changed {
                path,
                want: want.clone(),
                got,
            }),
            Some(_) => Ok(true),
            None => {
                // In a read-only cache there is nowhere to remember it, and nothing to do about that.
                let _ = self.remember(name, got);
                Ok(true)
            }
        }
    }

    /// Keeps the digest a file has now.
    pub(crate) fn remember(&self, name: &str, digest: String) -> Result<()> {
        let mut sums = self.sums()?;
        sums.insert(name.to_owned(), digest);
        self.write_sums(&sums)
    }

    /// Forgets a file that is about to be replaced.
    pub(crate) fn forget(&self, name: &str) -> Result<()> {
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
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(source) => return Err(hdsl::Error::Read { path, source }.into()),
        };
        text.lines()
            .enumerate()
            .map(|(at, line)| match line.split_once("  ") {
                Some((digest, name)) if digest.len() == 64 => {
                    Ok((name.to_owned(), digest.to_lowercase()))
                }
                _ => Err(hdsl::Error::Parse {
                    path: path.clone(),
                    line: at as u64 + 1,
                    reason: format!(
                        "expected a SHA-256, two blanks and a file name, found `{line}`"
                    ),
                }
                .into()),
            })
            .collect()
    }
}

/// The SHA-256 of a file, in hexadecimal.
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
    fn the_digest_is_that_of_the_standard() {
        // FIPS 180-4's example.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("abc");
        fs::write(&path, "abc").unwrap();
        assert_eq!(
            digest(&path).unwrap(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn a_changed_file_is_noticed_and_a_foreign_one_taken() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path().join("set"), || ()).unwrap();
        assert!(!cache.has("a").unwrap());
        fs::write(cache.path("a"), "one").unwrap();
        assert!(cache.has("a").unwrap() && cache.has("a").unwrap());
        fs::write(cache.path("a"), "two").unwrap();
        let error = cache.has("a").unwrap_err();
        assert!(matches!(error, FetchError::Changed { .. }), "{error}");
        cache.forget("a").unwrap();
        assert!(cache.has("a").unwrap());
        fs::write(cache.path(SUMS), "nonsense\n").unwrap();
        let error = cache.has("a").unwrap_err().to_string();
        assert!(
            error.contains("SHA256SUMS:1: expected a SHA-256"),
            "{error}"
        );
    }
}
