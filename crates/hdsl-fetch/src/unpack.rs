//! Files out of a zip.

use crate::error::{FetchError, Result};
use hdsl::data::OutputFile;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use zip::ZipArchive;

/// More than any file in the catalogue unpacks to. A zip that claims or holds more is broken or hostile.
const MOST: u64 = 4 << 30;

/// Writes the members of these names, wherever in the archive they lie, to the folder. Each is complete or not there.
pub(crate) fn unpack(archive: &Path, names: &[&str], folder: &Path) -> Result<()> {
    let broken = |reason: String| FetchError::Broken {
        path: archive.to_owned(),
        reason,
    };
    let file = File::open(archive).map_err(|source| hdsl::Error::Read {
        path: archive.to_owned(),
        source,
    })?;
    let mut zip =
        ZipArchive::new(BufReader::new(file)).map_err(|e| broken(format!("is no zip: {e}")))?;
    for name in names {
        // By the last piece of the path: where a file lies in the archive has changed before.
        let inside = zip
            .file_names()
            .flatten()
            .find(|path| path.rsplit('/').next() == Some(name))
            .map(|path| path.into_owned())
            .ok_or_else(|| broken(format!("has no `{name}`")))?;
        let member = zip
            .by_name(&inside)
            .map_err(|e| broken(format!("cannot unpack `{inside}`: {e}")))?;
        let mut out = OutputFile::create(&folder.join(name))?;
        let mut limited = io::Read::take(member, MOST + 1);
        let mut wrong = None;
        out.fill(|out| {
            let mut from = Noting(&mut limited, &mut wrong);
            io::copy(&mut from, out).map(|_| ())
        })
        .map_err(|error| match wrong {
            Some(wrong) => broken(format!("cannot unpack `{inside}`: {wrong}")),
            None => error.into(),
        })?;
        if limited.limit() == 0 {
            return Err(broken(format!("`{inside}` is over {MOST} bytes large")));
        }
        out.commit()?;
    }
    Ok(())
}

/// Tells a fault of the archive from one of the disk we write to.
struct Noting<'a, R>(&'a mut R, &'a mut Option<String>);

impl<R: io::Read> io::Read for Noting<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0
            .read(buffer)
            .inspect_err(|error| *self.1 = Some(error.to_string()))
    }
}
