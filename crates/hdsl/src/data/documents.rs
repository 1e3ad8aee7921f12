//! Documents and queries with ids: the formats of test collections.

use super::input::{Input, lines, quote};
use crate::error::{Error, Parsed, Result};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

const WANT: &str =
    "lines `id<TAB>text`, JSON lines with `_id` and `text`, or SMART's `.I`, `.T` and `.W`";

/// A document or a query of a test collection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// What judgments call it.
    pub id: String,
    /// The title; empty if there is none.
    pub title: String,
    /// The text. It may begin with the title.
    pub text: String,
}

impl Document {
    /// Title and text, the title once.
    ///
    /// ```
    /// use hdsl::data::Document;
    /// let [id, title] = ["7".to_owned(), "thin wings".to_owned()];
    /// let document = Document { id, title, text: "thin wings in slow flow".into() };
    /// assert_eq!((document.whole().as_ref(), document.body()), ("thin wings in slow flow", " in slow flow"));
    /// ```
    pub fn whole(&self) -> Cow<'_, str> {
        match self.text.starts_with(&self.title) {
            true => Cow::Borrowed(&self.text),
            false => Cow::Owned(format!("{} {}", self.title, self.text)),
        }
    }

    /// The text without the title.
    pub fn body(&self) -> &str {
        self.text.strip_prefix(&self.title).unwrap_or(&self.text)
    }
}

/// How documents are written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Style {
    /// `.I id`, then fields such as `.T` (title) and `.W` (text), each followed by lines of text.
    Smart,
    /// One JSON object per line, as BEIR and Anserini have them.
    JsonLines,
    /// Lines `id<TAB>text`.
    Tabbed,
}

/// Reads documents or queries: lines `id<TAB>text`, JSON lines with `_id` (or `id`), `title` and `text` (or `contents`), or
/// the SMART format of the classic test collections. What is not UTF-8 is replaced.
pub fn read_documents(path: &Path) -> Result<Vec<Document>> {
    parse(Input::open(path, WANT)?)
}

/// Reads documents from memory. `name` stands for a path in errors.
///
/// ```
/// use hdsl::data::parse_documents;
/// let smart = b".I 1\n.T\nthin wings\n.A\nnobody\n.W\nthin wings\nin slow flow\n.I 2\n.W\nheat\n";
/// let documents = parse_documents("cran".as_ref(), smart)?;
/// assert_eq!((documents[0].title.as_str(), documents[1].id.as_str()), ("thin wings", "2"));
/// let lines = parse_documents("q.tsv".as_ref(), b"q1\theat transfer\n")?;
/// assert_eq!(lines[0].text, "heat transfer");
/// let json = parse_documents("c.jsonl".as_ref(), br#"{"_id": "d9", "title": "Heat", "text": "flow"}"#)?;
/// assert_eq!(json[0].whole(), "Heat flow");
/// # Ok::<(), hdsl::Error>(())
/// ```
pub fn parse_documents(name: &Path, bytes: &[u8]) -> Result<Vec<Document>> {
    parse(Input::new(name, bytes, WANT)?)
}

/// Whether a file contains documents in the SMART format or as JSON lines, or is named `.tsv` or `.txt`, perhaps compressed.
/// Standard input and files that cannot be read are not looked into.
pub fn is_documents(path: &Path) -> bool {
    let name = path.to_string_lossy().to_ascii_lowercase();
    let stem = [".gz", ".bz2", ".xz", ".zst"];
    let stem = stem
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(&name);
    if stem.ends_with(".tsv") || stem.ends_with(".txt") {
        return true;
    }
    let is_file = path != Path::new("-") && std::fs::metadata(path).is_ok_and(|m| m.is_file());
    let open = || Input::open(path, WANT).and_then(|mut input| has_marks(&mut input));
    is_file && open().unwrap_or(false)
}

/// Whether a file is in the SMART format of the classic test collections.
pub fn is_smart(path: &Path) -> bool {
    let is_file = path != Path::new("-") && std::fs::metadata(path).is_ok_and(|m| m.is_file());
    let style = || -> Result<Style> { Ok(style_of(Input::open(path, WANT)?.peek(1 << 12)?)) };
    is_file && style().is_ok_and(|style| style == Style::Smart)
}

/// Whether the input is in the SMART format or has JSON lines, which are seen at the first line.
pub(super) fn has_marks(input: &mut Input<'_>) -> Result<bool> {
    Ok(style_of(input.peek(1 << 12)?) != Style::Tabbed)
}

/// By the first line that is not blank.
fn style_of(start: &[u8]) -> Style {
    let mut lines = lines(start).map(<[u8]>::trim_ascii);
    match lines.find(|line| !line.is_empty()) {
        Some(line) if smart_mark(line).is_some_and(|mark| mark.0 == b'I') => Style::Smart,
        Some(line) if line.starts_with(b"{") => Style::JsonLines,
        _ => Style::Tabbed,
    }
}

pub(super) fn parse(mut input: Input<'_>) -> Result<Vec<Document>> {
    let path = input.path().to_owned();
    let style = style_of(input.peek(1 << 12)?);
    let mut found = Found::default();
    input.each_line(|number, line| match style {
        Style::Smart => found.smart_line(number, line),
        _ if line.trim_ascii().is_empty() => Ok(()),
        Style::JsonLines => found.add(number, json_document(line)?),
        Style::Tabbed => found.add(number, tabbed_document(line)?),
    })?;
    match found.documents.is_empty() {
        true => Err(Error::file(
            &path,
            format!("has no documents, expected {WANT}"),
        )),
        false => Ok(found.documents),
    }
}

/// The documents so far, and where they begin.
#[derive(Default)]
struct Found {
    documents: Vec<Document>,
    lines: HashMap<String, u64>,
    /// The SMART field that lines belong to.
    field: u8,
}

impl Found {
    fn add(&mut self, number: u64, document: Document) -> Parsed<()> {
        if document.id.is_empty() {
            return Err("the id is empty, expected one for each document".into());
        }
        if let Some(before) = self.lines.insert(document.id.clone(), number) {
            let id = quote(document.id.as_bytes());
            return Err(format!("id {id} is repeated, line {before} has it, too"));
        }
        self.documents.push(document);
        Ok(())
    }

    fn smart_line(&mut self, number: u64, line: &[u8]) -> Parsed<()> {
        if let Some((field, rest)) = smart_mark(line) {
            self.field = field;
            if field == b'I' {
                let id = String::from_utf8_lossy(rest).into_owned();
                return self.add(
                    number,
                    Document {
                        id,
                        ..Document::default()
                    },
                );
            }
            return Ok(());
        }
        let text = match (self.field, self.documents.last_mut()) {
            (b'T', Some(document)) => &mut document.title,
            (b'W', Some(document)) => &mut document.text,
            (_, Some(_)) => return Ok(()),
            (_, None) if line.trim_ascii().is_empty() => return Ok(()),
            (_, None) => return Err(format!("{} before the first `.I`", quote(line))),
        };
        // Blanks and line ends are equal, so that a text is seen to begin with its title.
        for word in String::from_utf8_lossy(line).split_whitespace() {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(word);
        }
        Ok(())
    }
}

/// The letter of a line such as `.W`, and what follows it: only `.I` may be followed by anything.
fn smart_mark(line: &[u8]) -> Option<(u8, &[u8])> {
    match line.trim_ascii_end() {
        [b'.', b'I', b' ' | b'\t', rest @ ..] => Some((b'I', rest.trim_ascii())),
        [b'.', field @ b'A'..=b'Z'] => Some((*field, &[])),
        _ => None,
    }
}

fn tabbed_document(line: &[u8]) -> Parsed<Document> {
    let Some(tab) = memchr::memchr(b'\t', line) else {
        return Err(format!(
            "{} has no tab, expected `id<TAB>text`",
            quote(line)
        ));
    };
    Ok(Document {
        id: String::from_utf8_lossy(line[..tab].trim_ascii()).into_owned(),
        title: String::new(),
        text: String::from_utf8_lossy(&line[tab + 1..]).into_owned(),
    })
}

fn json_document(line: &[u8]) -> Parsed<Document> {
    let value: Value = serde_json::from_slice(line)
        .map_err(|error| format!("{} is not JSON: {error}", quote(line)))?;
    let field = |names: [&str; 2]| names.iter().find_map(|name| value.get(name));
    let text_of = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let wanted = |names: [&str; 2]| {
        field(names).and_then(text_of).ok_or_else(|| {
            let [first, second] = names;
            format!("{} has no text `{first}` (or `{second}`)", quote(line))
        })
    };
    Ok(Document {
        id: wanted(["_id", "id"])?,
        title: field(["title", "title"])
            .and_then(text_of)
            .unwrap_or_default(),
        text: wanted(["text", "contents"])?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(bytes: &[u8]) -> String {
        parse_documents("docs".as_ref(), bytes)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn bad_documents_are_named_by_line_and_value() {
        assert_eq!(
            error(b"a\tx\nb y\n"),
            "docs:2: `b y` has no tab, expected `id<TAB>text`"
        );
        assert_eq!(
            error(b"a\tx\na\ty\n"),
            "docs:2: id `a` is repeated, line 1 has it, too"
        );
        assert_eq!(
            error(b"\tx\n"),
            "docs:1: the id is empty, expected one for each document"
        );
        assert!(
            error(b".I \n.W\nx\n").starts_with("docs:1: the id is empty"),
            "{}",
            error(b".I \n")
        );
        assert!(error(b".I 1\n.W\nx\n.I 1\n").starts_with("docs:4: id `1` is repeated"));
        assert!(error(b"{\"_id\": 1}\n").contains("has no text `text` (or `contents`)"));
        assert!(error(b"{\"_id\": 1\n").contains("is not JSON"));
        assert!(error(b"\n \n").contains("has no documents"));
        assert!(error(b"").contains("is empty"));
    }

    #[test]
    fn smart_fields_other_than_title_and_text_are_ignored() {
        let bytes = b".I 3\n.T\na  b\n.A\nsomeone\n.B\nj. 5\n.X\n1 2 3\n.W\na b\nc . d\n.5 e\n";
        let found = parse_documents("docs".as_ref(), bytes).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].title.as_str(), found[0].text.as_str()),
            ("a b", "a b c . d .5 e")
        );
        assert_eq!(
            (found[0].body(), found[0].id.as_str()),
            (" c . d .5 e", "3")
        );
    }
}
