//! One call to read a data set, whatever its format and compression.

use super::input::{self, Input};
use super::{Dataset, IndexBase, Labels, matrix_market, nips, npz, svmlight, text};
use crate::error::{Error, Result};
use crate::named::named_enum;
use std::path::{Path, PathBuf};

const WANT: &str = "rows of sparse data";

named_enum! {
    /// The file formats that can be read.
    ///
    /// A new format takes a variant here, a line in each of the methods below, and a file with its reader.
    #[non_exhaustive]
    pub enum Format as "format" = "svmlight" | "nips" | "mtx" | "npz" {
        /// Svmlight or libsvm text: lines `label [qid:q] index:value ...  # comment`.
        Svmlight,
        /// NIPS 2003 challenge: lines of `index:value` or of bare indices; labels in a separate file.
        Nips,
        /// Matrix Market coordinate file; labels in a separate file.
        MatrixMarket,
        /// Sparse matrix of scipy.sparse.save_npz, CSR or CSC; labels in a separate file.
        Npz,
    }
}

impl Format {
    /// Reads a file whose first line with any content is `start`.
    fn read(self, input: Input<'_>, start: &[u8], options: &ReadOptions) -> Result<Dataset> {
        let (base, n_features) = (options.index_base, options.n_features);
        match self {
            Self::Svmlight => text::read(input, svmlight::parse_line, base, n_features),
            Self::Nips => text::read(input, nips::parser(start), base, n_features),
            Self::MatrixMarket => matrix_market::read(input, n_features),
            Self::Npz => npz::read(input, n_features),
        }
    }

    /// The format of a file, by the first line with any content, or else by the extension of its name.
    fn guess(line: &[u8], extension: Option<&str>) -> Self {
        if line.starts_with(b"PK\x03\x04") || line.starts_with(b"PK\x05\x06") {
            return Self::Npz;
        }
        let start = line.get(..14).unwrap_or_default();
        if start.eq_ignore_ascii_case(b"%%MatrixMarket") {
            return Self::MatrixMarket;
        }
        match extension {
            Some("npz") => return Self::Npz,
            Some("mtx") => return Self::MatrixMarket,
            _ => {}
        }
        let tokens: Vec<&[u8]> = text::tokens(line)
            .take_while(|t| !t.starts_with(b"#"))
            .collect();
        let has_colon = |token: &&[u8]| token.contains(&b':');
        let is_bare = |token: &&[u8]| token.iter().all(u8::is_ascii_digit);
        match tokens[..] {
            [first, ..] if has_colon(&first) => Self::Nips,
            _ if tokens.iter().any(has_colon) => Self::Svmlight,
            _ if extension == Some("data") => Self::Nips,
            [_, _, ..] if tokens.iter().all(is_bare) => Self::Nips,
            _ => Self::Svmlight,
        }
    }
}

/// How to read a data set. By default everything is detected from content and name.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The format; by default, what the content and the file name suggest.
    pub format: Option<Format>,
    /// A file of labels, one per line. It takes precedence over labels in the data file itself.
    pub labels: Option<PathBuf>,
    /// The index of the first feature in svmlight and NIPS files; by default 1, or 0 if an index 0 occurs.
    pub index_base: Option<IndexBase>,
    /// The number of features; by default as many as the file names. More in the file is an error.
    pub n_features: Option<usize>,
}

/// Reads a data set from a file, or from standard input if the path is `-`.
///
/// Compression (gzip, bzip2, xz, zstd) is recognized by content. So is the format, helped by the file name
/// where the content could be either: `.data` means NIPS. A file of a format without labels takes them from
/// [`ReadOptions::labels`], or else from the file of the same name that ends in `.labels`, if there is one.
///
/// ```
/// use hdsl::{ReadOptions, read_dataset};
/// # let folder = std::env::temp_dir().join(format!("hdsl-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let path = folder.join("animals.svm");
/// std::fs::write(&path, "cat 1:0.5 3:2\ndog 2:1 # a comment\n").unwrap();
/// let data = read_dataset(&path, &ReadOptions::default())?;
/// assert_eq!((data.rows.n_rows(), data.rows.n_features()), (2, 3));
/// assert_eq!(data.labels.unwrap().names(), ["cat", "dog"]);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), hdsl::Error>(())
/// ```
pub fn read_dataset(path: &Path, options: &ReadOptions) -> Result<Dataset> {
    let (mut dataset, format) = read_input(Input::open(path, WANT)?, options)?;
    if options.labels.is_none()
        && format != Format::Svmlight
        && let Some(labels) = sibling_labels(path)
    {
        attach_labels(&mut dataset, &labels)?;
        let (path, labels) = (path.display(), labels.display());
        dataset
            .notes
            .push(format!("{path}: labels taken from {labels}"));
    }
    Ok(dataset)
}

/// Reads a data set that is already in memory, compressed or not; `name` is used in messages and for its extension.
///
/// No file is looked for beside `name`, but [`ReadOptions::labels`] is read if given.
///
/// ```
/// use hdsl::{ReadOptions, parse_dataset};
/// let bytes = b"%%MatrixMarket matrix coordinate real general\n2 3 1\n2 3 0.5\n";
/// let data = parse_dataset("inline".as_ref(), bytes, &ReadOptions::default())?;
/// assert_eq!(data.rows.row(1).get(2), 0.5);
/// # Ok::<(), hdsl::Error>(())
/// ```
pub fn parse_dataset(name: &Path, bytes: &[u8], options: &ReadOptions) -> Result<Dataset> {
    Ok(read_input(Input::new(name, bytes, WANT)?, options)?.0)
}

fn read_input(mut input: Input<'_>, options: &ReadOptions) -> Result<(Dataset, Format)> {
    let start = first_content(&mut input)?;
    let name = without_compression(input.path());
    let extension = name.extension().and_then(|extension| extension.to_str());
    let extension = extension.map(str::to_ascii_lowercase);
    let guess = || Format::guess(&start, extension.as_deref());
    let format = options.format.unwrap_or_else(guess);
    let mut dataset = format.read(input, &start, options)?;
    if let Some(labels) = &options.labels {
        attach_labels(&mut dataset, labels)?;
    }
    Ok((dataset, format))
}

/// The first line that says anything (or enough of it to tell the format).
fn first_content(input: &mut Input<'_>) -> Result<Vec<u8>> {
    let mut wanted = 1 << 16;
    loop {
        let start = input.peek(wanted)?;
        let line = input::lines(start)
            .map(<[u8]>::trim_ascii)
            .find(|line| !line.is_empty() && line[0] != b'#');
        match line {
            Some(line) => return Ok(line.to_owned()),
            None if start.len() < wanted => return Ok(Vec::new()),
            None => wanted = wanted.saturating_mul(4),
        }
    }
}

/// The path without the extension of a compressed file.
fn without_compression(path: &Path) -> PathBuf {
    match path.extension().and_then(|e| e.to_str()) {
        Some(e) if COMPRESSIONS.contains(&e.to_ascii_lowercase().as_str()) => {
            path.with_extension("")
        }
        _ => path.to_owned(),
    }
}

const COMPRESSIONS: [&str; 4] = ["gz", "bz2", "xz", "zst"];

fn sibling_labels(path: &Path) -> Option<PathBuf> {
    let labels = without_compression(path).with_extension("labels");
    let compressed = COMPRESSIONS.map(|e| labels.with_extension(format!("labels.{e}")));
    std::iter::once(labels)
        .chain(compressed)
        .find(|candidate| candidate != path && candidate.is_file())
}

fn attach_labels(dataset: &mut Dataset, path: &Path) -> Result<()> {
    let mut labels = Vec::new();
    Input::open(path, "one label per line")?.each_line(|_, line| {
        let label = line.trim_ascii();
        if !label.is_empty() {
            labels.push(String::from_utf8_lossy(label).into_owned());
        }
        Ok(())
    })?;
    let (n, n_rows) = (labels.len(), dataset.rows.n_rows());
    if n != n_rows {
        let reason = format!("has {n} labels, but the data have {n_rows} rows");
        return Err(Error::file(path, reason));
    }
    dataset.labels = Some(Labels::from_names(labels));
    Ok(())
}
