//! Labeled texts and lists of names.

use super::documents::{self, Document};
use super::input::{Input, quote};
use super::{records, vocabulary};
use crate::error::{Error, Result};
use std::path::Path;

const WANT_TEXT: &str = "`label<TAB>text`";

/// Reads lines of `label<TAB>text`. Blank lines are skipped; what is not UTF-8 is replaced. Of documents in the SMART format or
/// as JSON lines, see [`read_documents`](super::read_documents), the id is the label.
pub fn read_texts(path: &Path) -> Result<Vec<(String, String)>> {
    let mut texts = Vec::new();
    let mut input = Input::open(path, WANT_TEXT)?;
    if documents::has_marks(&mut input)? {
        let text = |document: Document| (document.id.clone(), document.whole().into_owned());
        return Ok(documents::parse(input)?.into_iter().map(text).collect());
    }
    input.each_line(|_, line| {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let Some(tab) = memchr::memchr(b'\t', line) else {
            return Err(format!("{} has no tab, expected {WANT_TEXT}", quote(line)));
        };
        let label = String::from_utf8_lossy(line[..tab].trim_ascii()).into_owned();
        if label.is_empty() {
            return Err(format!("no label before the tab, expected {WANT_TEXT}"));
        }
        let text = String::from_utf8_lossy(&line[tab + 1..]).into_owned();
        texts.push((label, text));
        Ok(())
    })?;
    match texts.is_empty() {
        true => Err(Error::file(path, "has no texts, only blank lines")),
        false => Ok(texts),
    }
}

/// Reads the lines of a text file, such as ids or texts, one per row. Line ends are not part of them.
pub fn read_lines(path: &Path) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    Input::open(path, "one entry per line")?.each_line(|_, line| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text =
            std::str::from_utf8(line).map_err(|_| format!("{} is not UTF-8", quote(line)))?;
        lines.push(text.to_owned());
        Ok(())
    })?;
    Ok(lines)
}

/// Reads the names of features, one per line in the order of the features: a vocabulary file, a vectorizer of
/// records, or any plain list.
///
/// A name ends at a tab. Names may repeat or be empty: they are only displayed.
pub fn read_names(path: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut input = Input::open(path, "one name per line")?;
    if records::is_stored(&mut input)? {
        return Ok(records::RecordVectorizer::read(path)?.feature_names());
    }
    input.each_line(|number, line| {
        if !vocabulary::is_header(number, line) {
            let name = line.split(|&b| b == b'\t').next().unwrap_or(line);
            names.push(String::from_utf8_lossy(name.trim_ascii()).into_owned());
        }
        Ok(())
    })?;
    Ok(names)
}
