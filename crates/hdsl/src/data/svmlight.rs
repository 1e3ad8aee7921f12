//! svmlight and libsvm text: `label [qid:N] index:value … [# comment]`, one row per line.

use super::input::quote;
use super::number::{parse_u64, usual_entry};
use super::text::{TextRows, parse_entry};
use super::{IndexBase, Labels, Rows, decompress};
use crate::error::Parsed;
use std::io::{self, Write};

/// Parses one line. The label is any word; a `#` starts a comment at the start of a line or after the label.
pub(super) fn parse_line(line: &[u8], rows: &mut TextRows) -> Parsed<()> {
    let line = line.trim_ascii();
    if line.is_empty() || line[0] == b'#' {
        return Ok(());
    }
    let label_end = line
        .iter()
        .position(u8::is_ascii_whitespace)
        .unwrap_or(line.len());
    let (label, rest) = line.split_at(label_end);
    if label.contains(&b':') {
        return Err(format!(
            "the line starts with {}, expected a label before the features",
            quote(label)
        ));
    }
    check_label(label)?;
    let mut query = None;
    let mut at = 0;
    let mut first = true;
    // By hand rather than with an iterator over tokens: this loop is where reading spends its time.
    loop {
        while at < rest.len() && rest[at].is_ascii_whitespace() {
            at += 1;
        }
        if at == rest.len() || rest[at] == b'#' {
            break;
        }
        if let Some((index, value, length)) = usual_entry(&rest[at..]) {
            rows.entry(index, value);
            at += length;
            first = false;
            continue;
        }
        let start = at;
        while at < rest.len() && !rest[at].is_ascii_whitespace() && rest[at] != b'#' {
            at += 1;
        }
        let token = &rest[start..at];
        match token.strip_prefix(b"qid:") {
            Some(number) if first => {
                query = Some(parse_u64(number).ok_or_else(|| {
                    format!("query {} is not a whole number from 0", quote(token))
                })?);
            }
            _ => parse_entry(token, rows)?,
        }
        first = false;
    }
    rows.end_row(Some(label), query)
}

/// Refuses a label that is not text: other encodings than UTF-8 would all look alike.
pub(super) fn check_label(label: &[u8]) -> Parsed<()> {
    if label.iter().all(|b| (0x20..0x7f).contains(b)) {
        return Ok(());
    }
    let shown = quote(label);
    match std::str::from_utf8(label) {
        Err(_) => Err(format!(
            "label {shown} is not UTF-8; convert the file first"
        )),
        Ok(text) if text.contains(|c: char| c.is_control()) => Err(format!(
            "label {shown} has a control character, expected text"
        )),
        Ok(_) => Ok(()),
    }
}

/// Writes `label [qid:N] index:value …` lines; rows without labels get 0.
///
/// Numbers are as short as they can be and still read back to the same bits. A label that would not read back (it
/// is empty, has a blank or a colon, starts with `#`, or looks like a compressed file) is an error. The format has no place for the number of
/// features.
///
/// ```
/// use hdsl::data::write_svmlight;
/// use hdsl::{IndexBase, Labels, Rows};
/// let rows = Rows::from_parts(4, vec![0, 2, 3], vec![0, 3, 1], vec![1.0, 0.1, 1e-30])?;
/// let labels = Labels::from_names(["cat", "dog"]);
/// let mut out = Vec::new();
/// write_svmlight(&mut out, &rows, Some(&labels), None, IndexBase::One)?;
/// assert_eq!(out, b"cat 1:1 4:0.1\ndog 2:1e-30\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// If there are not as many labels or queries as rows.
pub fn write_svmlight(
    mut out: impl Write,
    rows: &Rows,
    labels: Option<&Labels>,
    queries: Option<&[u64]>,
    base: IndexBase,
) -> io::Result<()> {
    if let Some(labels) = labels {
        assert_eq!(labels.len(), rows.n_rows(), "one label per row");
        if let Some(name) = labels.names().iter().find(|name| !survives(name)) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "the label {} would not be read back from svmlight, expected one word that has no colon and starts \
                     with no #; npz has its labels in a file of their own",
                    quote(name.as_bytes())
                ),
            ));
        }
    }
    if let Some(queries) = queries {
        assert_eq!(queries.len(), rows.n_rows(), "one query number per row");
    }
    let mut line = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        line.clear();
        line.extend_from_slice(labels.map_or("0", |labels| labels.name(at)).as_bytes());
        if let Some(queries) = queries {
            write!(line, " qid:{}", queries[at])?;
        }
        for (index, value) in row.iter() {
            write!(line, " {}:", index as usize + base.first())?;
            write_number(&mut line, value)?;
        }
        line.push(b'\n');
        out.write_all(&line)?;
    }
    out.flush()
}

/// Whether a label reads back as itself, even at the start of a file, where some bytes have a meaning of their own.
fn survives(label: &str) -> bool {
    !label.is_empty()
        && !label.starts_with(['#', '\u{feff}'])
        && decompress::codec_of(format!("{label} ").as_bytes()).is_none()
        && !label.bytes().any(|b| b == b':' || b.is_ascii_whitespace())
}

/// Writes one label per line, the file of labels beside formats that have none. A label that would not read back (it is empty,
/// begins or ends with a blank, has a control character such as a line break, or looks like a compressed file) is an
/// error.
///
/// ```
/// use hdsl::Labels;
/// use hdsl::data::write_labels;
/// let mut out = Vec::new();
/// write_labels(&mut out, &Labels::from_names(["#x", "a b", "#x"]))?;
/// assert_eq!(out, b"#x\na b\n#x\n");
/// assert!(write_labels(&mut out, &Labels::from_names(["a\nb"])).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write_labels(mut out: impl Write, labels: &Labels) -> io::Result<()> {
    let survives = |label: &String| {
        label.as_bytes().trim_ascii() == label.as_bytes()
            && !label.is_empty()
            && !label.starts_with('\u{feff}')
            && check_label(label.as_bytes()).is_ok()
            && decompress::codec_of(format!("{label}\n").as_bytes()).is_none()
    };
    if let Some(name) = labels.names().iter().find(|name| !survives(name)) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "the label {} would not be read back from a file of labels, expected one line of text",
                quote(name.as_bytes())
            ),
        ));
    }
    (0..labels.len()).try_for_each(|row| writeln!(out, "{}", labels.name(row)))?;
    out.flush()
}

/// The shortest decimal that reads back to the same bits, with an exponent where zeros would pile up.
fn write_number(out: &mut impl Write, value: f64) -> io::Result<()> {
    if value == 0.0 || (1e-5..1e16).contains(&value.abs()) {
        write!(out, "{value}")
    } else {
        write!(out, "{value:e}")
    }
}
