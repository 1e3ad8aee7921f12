//! svmlight and libsvm text: `label [qid:N] index:value … [# comment]`, one row per line.

use super::input::quote;
use super::number::{parse_u64, usual_entry};
use super::text::{Parsed, TextRows, parse_entry};

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
