//! Extraction of files from zip archives.

use crate::error::{FetchError, Result};
use hdsl::data::OutputFile;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use zip::ZipArchive;

/// A limit on the size of an extracted file, above that of every file in the catalogue.
const MAX_BYTES: u64 = 4 << 30;

/// Extracts the members with these file names, in any folder of the archive. Each file is written completely or not at all.
pub(crate) fn unpack(archive: &Path, names: &[&str], folder: &Path) -> Result<()> {
    let corrupt = |reason: String| FetchError::Corrupt {
        path: archive.to_owned(),
        reason,
    };
    let file = File::open(archive).map_err(|source| hdsl::Error::Read {
        path: archive.to_owned(),
        source,
    })?;
    let mut zip = ZipArchive::new(BufReader::new(file))
        .map_err(|e| corrupt(format!("not a zip file: {e}")))?;
    for name in names {
        // Only the file name is compared: the folders in the archive have changed before.
        let inside = zip
            .file_names()
            .flatten()
            .find(|path| path.rsplit('/').next() == Some(name))
            .map(|path| path.into_owned())
            .ok_or_else(|| corrupt(format!("has no file `{name}`")))?;
        let member = zip
            .by_name(&inside)
            .map_err(|e| corrupt(format!("cannot extract `{inside}`: {e}")))?;
        let mut out = OutputFile::create(&folder.join(name))?;
        let mut limited = io::Read::take(member, MAX_BYTES + 1);
        let mut read_error = None;
        out.fill(|out| {
            let mut reader = ErrorRecorder(&mut limited, &mut read_error);
            io::copy(&mut reader, out).map(|_| ())
        })
        .map_err(|error| match read_error {
            Some(reason) => corrupt(format!("cannot extract `{inside}`: {reason}")),
            None => error.into(),
        })?;
        if limited.limit() == 0 {
            return Err(corrupt(format!(
                "`{inside}` is larger than {MAX_BYTES} bytes"
            )));
        }
        out.commit()?;
    }
    Ok(())
}

/// Records read errors, to distinguish them from write errors.
struct ErrorRecorder<'a, R>(&'a mut R, &'a mut Option<String>);

impl<R: io::Read> io::Read for ErrorRecorder<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0
            .read(buffer)
            .inspect_err(|error| *self.1 = Some(error.to_string()))
    }
}
