//! One call to read a data set, whatever its format and compression.

use super::input::{self, Input};
use super::records::{self, RecordOptions};
use super::{Dataset, IndexBase, Labels, matrix_market, nips, npz, number, svmlight, text};
use crate::error::{Error, Result};
use crate::named::named_enum;
use std::path::{Path, PathBuf};

const WANT: &str = "rows or records";

named_enum! {
    /// The file formats that can be read.
    ///
    /// A new format takes a variant here, a line in each of the methods below, and a file with its reader.
    #[non_exhaustive]
    pub enum Format as "format" = "svmlight" | "nips" | "mtx" | "npz" | "csv" | "tsv" | "jsonl" | "parquet" | "arrow" | "text" {
        /// Svmlight or libsvm text: lines `label [qid:q] index:value ...  # comment`.
        Svmlight,
        /// NIPS 2003 challenge: lines of `index:value` or of bare indices; labels in a separate file.
        Nips,
        /// Matrix Market coordinate file; labels in a separate file.
        MatrixMarket,
        /// Sparse matrix of scipy.sparse.save_npz, CSR or CSC; labels in a separate file.
        Npz,
        /// Records of separated values: commas, semicolons, tabs or others, with or without a header.
        Csv,
        /// Records separated by tabs.
        Tsv,
        /// Records as JSON lines: one object per line.
        JsonLines,
        /// Records as a Parquet file.
        Parquet,
        /// Records as an Arrow IPC file (Feather) or stream.
        Arrow,
        /// Plain text, one document per line; labels, if any, as `__label__NAME` at the start of lines.
        Text,
    }
}

impl Format {
    /// Whether files of this format have records, which become rows by a vectorizer.
    pub fn has_records(self) -> bool {
        use Format::{Arrow, Csv, JsonLines, Parquet, Text, Tsv};
        matches!(self, Csv | Tsv | JsonLines | Parquet | Arrow | Text)
    }

    /// Reads a file whose first line with any content is `start`.
    fn read(
        self,
        input: Input<'_>,
        start: &[u8],
        extension: Option<&str>,
        options: &ReadOptions,
    ) -> Result<Dataset> {
        let (base, n_features) = (options.index_base, options.n_features);
        match self {
            Self::Svmlight => {
                let path = input.path().to_owned();
                let data = text::read(input, svmlight::parse_line, base, n_features)?;
                // Any line is a label without features, so a file of something else would be read as such.
                match data.rows.n_features() == 0 {
                    true => Err(Error::file(
                        &path,
                        "has no `index:value` in any row, expected svmlight rows",
                    )),
                    false => Ok(data),
                }
            }
            Self::Nips => text::read(input, nips::parser(start), base, n_features),
            Self::MatrixMarket => matrix_market::read(input, n_features),
            Self::Npz => npz::read(input, n_features),
            _ => records::read(input, self, extension, &options.records),
        }
    }

    /// The format of a file by its start and the extension of its name. `line` is the first line with any content.
    fn guess(sample: &Sample<'_>, line: &[u8], extension: Option<&str>) -> Option<Self> {
        let starts: [(&[u8], Self); 5] = [
            (b"PK\x03\x04", Self::Npz),
            (b"PK\x05\x06", Self::Npz),
            (b"PAR1", Self::Parquet),
            (b"ARROW1", Self::Arrow),
            (b"\xff\xff\xff\xff", Self::Arrow),
        ];
        let known = starts
            .iter()
            .find(|(start, _)| sample.bytes.starts_with(start));
        if let Some(&(_, format)) = known {
            return Some(format);
        }
        let start = line.get(..14).unwrap_or_default();
        if start.eq_ignore_ascii_case(b"%%MatrixMarket") {
            return Some(Self::MatrixMarket);
        }
        match extension {
            Some("npz") => return Some(Self::Npz),
            Some("mtx") => return Some(Self::MatrixMarket),
            Some("parquet" | "pq") => return Some(Self::Parquet),
            Some("arrow" | "feather" | "ipc" | "arrows") => return Some(Self::Arrow),
            _ => {}
        }
        // Rows of numbered features are seen whatever the name is.
        let (mut entries, mut others) = (0, 0);
        for line in sample.lines().take(SAMPLE_LINES) {
            match Line::of(line) {
                Line::Blank | Line::Label => {}
                Line::Entries => entries += 1,
                Line::Other => others += 1,
            }
        }
        let is_bare = |token: &[u8]| token.iter().all(u8::is_ascii_digit);
        let tokens: Vec<&[u8]> = text::tokens(line)
            .take_while(|t| !t.starts_with(b"#"))
            .collect();
        let first_is_entry = || tokens.first().is_some_and(|token| token.contains(&b':'));
        match () {
            // One bad line is an error of that line.
            _ if entries > 9 * others && first_is_entry() => return Some(Self::Nips),
            _ if entries > 9 * others => return Some(Self::Svmlight),
            _ if extension == Some("data") => return Some(Self::Nips),
            _ if matches!(extension, Some("svm" | "svmlight" | "libsvm")) => {
                return Some(Self::Svmlight);
            }
            _ => {}
        }
        if let Some(format) = records::sniff(sample.bytes, sample.whole, extension) {
            return Some(format);
        }
        match &tokens[..] {
            [first, ..] if first.contains(&b':') => Some(Self::Nips),
            _ if tokens.iter().any(|token| token.contains(&b':')) => Some(Self::Svmlight),
            [_, _, ..] if tokens.iter().all(|token| is_bare(token)) => Some(Self::Nips),
            _ => None,
        }
    }
}

/// How many lines at the start of a file tell what it is.
const SAMPLE_LINES: usize = 50;

/// The start of a file.
struct Sample<'a> {
    bytes: &'a [u8],
    /// Whether this is all of it.
    whole: bool,
}

impl<'a> Sample<'a> {
    fn lines(&self) -> impl Iterator<Item = &'a [u8]> {
        let end = match self.whole {
            true => self.bytes.len(),
            // The last line may be cut.
            false => memchr::memrchr(b'\n', self.bytes).unwrap_or(self.bytes.len()),
        };
        input::lines(&self.bytes[..end]).map(<[u8]>::trim_ascii)
    }

    /// Text of another encoding than UTF-8, in words.
    fn foreign(&self) -> Option<&'static str> {
        match self.bytes {
            [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("UTF-32"),
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
            [a, 0, b, 0, c, 0, ..] if *a != 0 && *b != 0 && *c != 0 => Some("UTF-16"),
            [0, a, 0, b, 0, c, ..] if *a != 0 && *b != 0 && *c != 0 => Some("UTF-16"),
            _ => None,
        }
    }
}

/// What a line of text looks like.
enum Line {
    /// Nothing, or a comment.
    Blank,
    /// One word: a row without features.
    Label,
    /// Words `index:value` after a label or without one.
    Entries,
    Other,
}

impl Line {
    fn of(line: &[u8]) -> Self {
        let mut tokens = text::tokens(line).take_while(|token| !token.starts_with(b"#"));
        let Some(first) = tokens.next() else {
            return Self::Blank;
        };
        let is_entry = |token: &[u8]| {
            let mut parts = token.splitn(2, |&b| b == b':');
            let (index, value) = (parts.next(), parts.next());
            let is_number = |text: &[u8]| number::parse_f64(text).is_some();
            let is_index = |text: &[u8]| number::parse_u64(text).is_some() || text == b"qid";
            index.is_some_and(is_index) && value.is_some_and(is_number)
        };
        match tokens.next() {
            None if is_entry(first) => Self::Entries,
            None if first.contains(&b',') || first.contains(&b';') => Self::Other,
            None => Self::Label,
            // A few tell what the others are.
            Some(second) if is_entry(second) && tokens.take(2).all(is_entry) => Self::Entries,
            Some(_) => Self::Other,
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
    /// How records become rows.
    pub records: RecordOptions,
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
        && dataset.labels.is_none()
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
    let (format, extension) = format_of(&mut input, &start, options.format)?;
    let mut dataset = format.read(input, &start, extension.as_deref(), options)?;
    if let Some(labels) = &options.labels {
        attach_labels(&mut dataset, labels)?;
    }
    Ok((dataset, format))
}

/// The format of an input, given or guessed, and the extension of its name.
fn format_of(
    input: &mut Input<'_>,
    start: &[u8],
    given: Option<Format>,
) -> Result<(Format, Option<String>)> {
    let path = input.path().to_owned();
    let name = without_compression(&path);
    let extension = name.extension().and_then(|extension| extension.to_str());
    let extension = extension.map(str::to_ascii_lowercase);
    let bytes = input.peek(SAMPLE)?;
    let sample = Sample {
        bytes: &bytes[..bytes.len().min(SAMPLE)],
        whole: bytes.len() <= SAMPLE,
    };
    let guess = || Format::guess(&sample, start, extension.as_deref());
    if bytes.starts_with(&INDEX_MAGIC) {
        return Err(Error::file(
            &path,
            "is an index of hdsl, expected rows or records",
        ));
    }
    let format = given.or_else(guess);
    let is_text = |format: Format| {
        use Format::{Arrow, Npz, Parquet};
        !matches!(format, Npz | Parquet | Arrow)
    };
    if format.is_none_or(is_text)
        && let Some(encoding) = sample.foreign()
    {
        let reason = format!(
            "is {encoding}, expected UTF-8; convert it, for example with `iconv -f {encoding} -t UTF-8`"
        );
        return Err(Error::file(&path, reason));
    }
    let is_blank = sample.whole && sample.bytes.trim_ascii().is_empty();
    match format {
        Some(format) if is_blank && format.has_records() => {
            Err(Error::file(&path, "has no records, only blank lines"))
        }
        Some(format) => Ok((format, extension)),
        None if start.is_empty() => Err(Error::file(
            &path,
            "has no rows, only blank lines and comments",
        )),
        None => Err(Error::file(
            &path,
            format!(
                "is of no known format: it starts with {}; pass --format if it is {}",
                input::quote(start),
                Format::ALL.map(Format::name).join(", ")
            ),
        )),
    }
}

/// The first bytes of an index, which is not a file of rows.
pub(crate) const INDEX_MAGIC: [u8; 8] = *b"hdslindx";

/// How much of a file tells its format.
const SAMPLE: usize = 1 << 16;

/// The format of a file, without reading all of it.
pub fn detect_format(path: &Path) -> Result<Format> {
    let mut input = Input::open(path, WANT)?;
    let start = first_content(&mut input)?;
    Ok(format_of(&mut input, &start, None)?.0)
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
            None => {}
        }
        let read = start.len() as u64;
        input::check_size(input.path(), read)?;
        let most = usize::try_from(input::reading_limit()).unwrap_or(usize::MAX);
        wanted = wanted.saturating_mul(4).min(most.saturating_add(1));
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
            svmlight::check_label(label)?;
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
