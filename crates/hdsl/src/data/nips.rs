//! The NIPS 2003 challenge's text: features only, one row per line, labels in another file.
//!
//! A blank line is a row without features: to skip it would shift every label after it.

use super::text::{ParseLine, TextRows, parse_entry, parse_index, tokens};
use crate::error::Parsed;

/// The parser for a file that starts like this: `index:value` entries, or bare indices of features that are 1.
pub(super) fn parser(first_line: &[u8]) -> ParseLine {
    if first_line.contains(&b':') {
        parse_pairs
    } else {
        parse_bare
    }
}

fn parse_pairs(line: &[u8], rows: &mut TextRows) -> Parsed<()> {
    for token in tokens(line) {
        parse_entry(token, rows)?;
    }
    rows.end_row(None, None)
}

fn parse_bare(line: &[u8], rows: &mut TextRows) -> Parsed<()> {
    for token in tokens(line) {
        rows.entry(parse_index(token)?, 1.0);
    }
    rows.end_row(None, None)
}
