//! Outputs, opened before any work is done.

use crate::failure::Failure;
use hdsl::data::{
    OutputFile, TableColumn, TableFormat, write_labels, write_npz, write_svmlight, write_table,
};
use hdsl::{Dataset, Format, IndexBase, Labels, Rows};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The formats in which rows can be written.
pub(crate) const WRITABLE: [Format; 2] = [Format::Svmlight, Format::Npz];

/// Opens an output before any work is done. That it cannot be written is then wrong usage, not a failure.
pub(crate) fn create(path: &Path) -> Result<OutputFile, Failure> {
    OutputFile::create(path).map_err(|e| Failure::usage(e.to_string()))
}

/// Creates a folder and those above it, where they are missing.
pub(crate) fn create_folder(path: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(path).map_err(|e| Failure::file(path, format!("cannot write: {e}")))
}

/// The output of a command that prints lines: a file, or standard output unless `--json` uses it.
pub(crate) fn create_unless_json(
    json: bool,
    output: Option<&Path>,
) -> Result<Option<OutputFile>, Failure> {
    refuse_stdout_with_json(json, output)?;
    match (json, output) {
        (true, None) => Ok(None),
        _ => create(output.unwrap_or(Path::new("-"))).map(Some),
    }
}

/// `--json` and `-o -` both need standard output.
pub(crate) fn refuse_stdout_with_json(json: bool, output: Option<&Path>) -> Result<(), Failure> {
    match output {
        Some(path) if json && path == Path::new("-") => Err(Failure::usage(
            "--json and `-o -` both write to standard output; name a file after -o",
        )),
        _ => Ok(()),
    }
}

/// Fills an output and gives it its name.
pub(crate) fn write(
    mut out: OutputFile,
    fill: impl FnOnce(&mut OutputFile) -> std::io::Result<()>,
) -> Result<(), Failure> {
    out.fill(fill)?;
    out.commit()?;
    Ok(())
}

/// The file beside an output with this ending added, such as a journal; none beside standard output, pipes and devices.
pub(crate) fn beside(output: &Path, ending: &str) -> Option<PathBuf> {
    if output.as_os_str() == "-" || (output.exists() && !output.is_file()) {
        return None;
    }
    let mut name = OsString::from(output.as_os_str());
    name.push(ending);
    Some(PathBuf::from(name))
}

/// Writes a model. If that fails after all the work, it is saved in the folder for temporary files. `stays` is the
/// file by which the same command does not start again, if there is one.
pub(crate) fn write_model(
    out: OutputFile,
    bytes: &[u8],
    stays: Option<&Path>,
) -> Result<(), Failure> {
    let path = out.path().to_owned();
    let failure = match write(out, |out| out.write_all(bytes)) {
        Err(Failure::Running(failure)) => failure,
        other => return other,
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".hdsl").unwrap_or(&name);
    let id = std::process::id();
    let other = std::env::temp_dir().join(format!("{name}-{id}.hdsl"));
    let saved = OutputFile::create(&other).map_err(Failure::from);
    let saved = saved.and_then(|out| write(out, |out| out.write_all(bytes)));
    let other = other.display();
    let stays = stays.filter(|path| path.exists());
    Err(Failure::Running(match (saved, stays) {
        (Ok(()), _) => format!("{failure}; the model is saved as {other} instead"),
        (Err(_), Some(stays)) => format!(
            "{failure}, nor can {other}; {} stays, and the same command goes on from there",
            stays.display()
        ),
        (Err(_), None) => format!("{failure}, nor can {other}"),
    }))
}

/// Writes a table in the format of the file's name, or else lines of text.
pub(crate) fn write_results(
    out: OutputFile,
    table: impl FnOnce() -> Vec<(&'static str, TableColumn)>,
    lines: impl FnOnce(&mut OutputFile) -> std::io::Result<()>,
) -> Result<(), Failure> {
    match TableFormat::of_name(out.path()) {
        None => write(out, lines),
        Some(format) => {
            let table = table();
            write(out, |out| {
                write_table(out, format, &table).map_err(std::io::Error::other)
            })
        }
    }
}

/// A file of rows that is being written, and a file of labels beside it where the format has none.
pub(crate) struct RowsOutput {
    format: Format,
    rows: OutputFile,
    labels: Option<OutputFile>,
}

impl RowsOutput {
    /// Opens the file of rows. The format is that of the flag, or that of the file's name.
    pub(crate) fn create(path: &Path, format: Option<Format>) -> Result<Self, Failure> {
        let format = format.map_or_else(|| format_of_name(path), Ok)?;
        Ok(Self {
            format,
            rows: create(path)?,
            labels: None,
        })
    }

    /// Opens the file of labels as well, if the format needs one: that of the flag, or the same name ending in `.labels`.
    pub(crate) fn with_labels(mut self, labels: Option<&PathBuf>) -> Result<Self, Failure> {
        let path = self.rows.path();
        self.labels = match (self.format, labels) {
            (Format::Npz, Some(labels)) => Some(create(labels)?),
            // Not beside a pipe or a device.
            (Format::Npz, None) if path != Path::new("-") && (path.is_file() || !path.exists()) => {
                Some(create(&path.with_extension("labels"))?)
            }
            (Format::Npz, None) | (_, None) => None,
            (_, Some(_)) => {
                return Err(Failure::usage(
                    "--save-labels is for npz only: an svmlight file contains the labels",
                ));
            }
        };
        Ok(self)
    }

    /// Writes rows with the labels and query numbers of the data they come from, and returns the names of the files.
    pub(crate) fn write(
        self,
        rows: &Rows,
        labels: Option<&Labels>,
        queries: Option<&[u64]>,
        base: IndexBase,
    ) -> Result<Vec<String>, Failure> {
        self.write_with(None, rows, labels, queries, base)
    }

    /// The same together with another file, which is filled already.
    pub(crate) fn write_with(
        self,
        other: Option<OutputFile>,
        rows: &Rows,
        labels: Option<&Labels>,
        queries: Option<&[u64]>,
        base: IndexBase,
    ) -> Result<Vec<String>, Failure> {
        let mut files = vec![self.rows];
        match self.format {
            Format::Npz => {
                files[0].fill(|out| write_npz(out, rows))?;
                if let (Some(mut out), Some(labels)) = (self.labels, labels) {
                    out.fill(|out| write_labels(out, labels))?;
                    files.push(out);
                }
            }
            _ => files[0].fill(|out| write_svmlight(out, rows, labels, queries, base))?,
        }
        let names = files.iter().map(|file| file.path().display().to_string());
        let names = names.collect();
        files.extend(other);
        OutputFile::commit_all(files)?;
        Ok(names)
    }

    /// Writes a data set as it is.
    pub(crate) fn write_data(
        self,
        data: &Dataset,
        base: IndexBase,
    ) -> Result<Vec<String>, Failure> {
        let (labels, queries) = (data.labels.as_ref(), data.queries.as_deref());
        self.write(&data.rows, labels, queries, base)
    }
}

fn format_of_name(path: &Path) -> Result<Format, Failure> {
    let extension = path
        .extension()
        .map(|e| e.to_string_lossy().to_ascii_lowercase());
    match extension.as_deref() {
        Some("npz") => Ok(Format::Npz),
        Some("svm" | "svmlight" | "libsvm" | "txt" | "dat") => Ok(Format::Svmlight),
        _ => Err(Failure::file(
            path,
            "the name ends neither in .svm nor in .npz; pass the format with --to",
        )),
    }
}
