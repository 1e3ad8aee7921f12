//! What is printed and where: results on standard output, everything else on standard error.

use crate::cli::Global;
use crate::failure::Failure;
use anstyle::{AnsiColor, Style};
use hdsl::Model;
pub(crate) use hdsl_report::format::{count, percent, short, thousands};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// The most characters of a name in a table, and of a line of other text. Labels may have a hundred million.
const LONGEST_CELL: usize = 120;
const LONGEST_LINE: usize = 4000;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const NOTE: Style = AnsiColor::Yellow.on_default();

/// Messages on standard error, as many as `-v` and `-q` allow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log {
    verbose: bool,
    quiet: bool,
}

impl Log {
    pub(crate) fn new(global: &Global) -> Self {
        Self {
            verbose: global.verbose,
            quiet: global.quiet,
        }
    }

    /// Whether `-v` was given.
    pub(crate) fn is_verbose(&self) -> bool {
        self.verbose
    }

    /// Whether progress bars are shown: standard error is a terminal, and `-q` was not given.
    pub(crate) fn shows_progress(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// A message, unless `-q` was given.
    pub(crate) fn note(&self, message: impl Display) {
        if !self.quiet {
            let message = message.to_string();
            let message = shortened(escaped(&message), LONGEST_LINE);
            styled_stderr(&format!("hdsl: {NOTE}{message}{NOTE:#}\n"));
        }
    }

    /// A message under `-v` only.
    pub(crate) fn detail(&self, message: impl Display) {
        if self.verbose {
            let message = message.to_string();
            let message = shortened(escaped(&message), LONGEST_LINE);
            styled_stderr(&format!("hdsl: {message}\n"));
        }
    }
}

/// `hdsl: error: ...` on one line of standard error.
pub(crate) fn error(message: &str) {
    // Names of files may contain line breaks; a message stays one line all the same.
    let message = message.replace(['\n', '\r'], " ");
    let message = shortened(escaped(&message), LONGEST_LINE);
    styled_stderr(&format!("hdsl: {ERROR}error:{ERROR:#} {message}\n"));
}

/// Text in which control characters, which could clear a terminal or forge a line, are written as escapes.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c.is_control() {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// A name or label as it may stand in a line of text.
pub(crate) fn short_name(name: &str) -> Cow<'_, str> {
    shortened(Cow::Borrowed(name), LONGEST_CELL)
}

/// Text of at most so many characters: from a longer one, the middle is left out.
fn shortened(text: Cow<'_, str>, longest: usize) -> Cow<'_, str> {
    // There are no more characters than bytes.
    if text.len() <= longest || text.chars().nth(longest).is_none() {
        return text;
    }
    let n_end = longest / 3;
    let start: String = text.chars().take(longest - n_end - 1).collect();
    let end: String = text.chars().rev().take(n_end).collect();
    Cow::Owned(format!("{start}…{}", end.chars().rev().collect::<String>()))
}

/// [`escaped`] for text of several lines, whose ends and tabs stay.
fn escaped_lines(text: &str) -> Cow<'_, str> {
    let is_ours = |c: char| matches!(c, '\n' | '\t');
    if !text.contains(|c: char| c.is_control() && !is_ours(c)) {
        return Cow::Borrowed(text);
    }
    let line = |line: &str| line.split('\t').map(escaped).collect::<Vec<_>>().join("\t");
    Cow::Owned(text.split('\n').map(line).collect::<Vec<_>>().join("\n"))
}

/// Text with colors, which are left out where standard error is no terminal.
pub(crate) fn styled_stderr(text: &str) {
    // There is no place left to report that standard error cannot be written.
    let _ = anstream::stderr().write_all(text.as_bytes());
}

/// Text with colors, which are left out where standard output is no terminal.
pub(crate) fn styled_stdout(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|e| Failure::stdout(&e))
}

/// Plain text on standard output.
pub(crate) fn stdout(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let text = match out.is_terminal() {
        true => escaped_lines(text),
        false => Cow::Borrowed(text),
    };
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|e| Failure::stdout(&e))
}

/// Writes what is left in the buffer of standard output.
pub(crate) fn flush_stdout() -> Result<(), Failure> {
    io::stdout().flush().map_err(|e| Failure::stdout(&e))
}

/// One JSON object on standard output.
pub(crate) fn json(value: &Value) -> Result<(), Failure> {
    stdout(&format!("{value:#}\n"))
}

/// Reports the result of a command that writes a file: as JSON, as text, or not at all if standard output is that file.
pub(crate) fn result(
    json_asked: bool,
    output: Option<&Path>,
    value: impl FnOnce() -> Value,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    match output {
        _ if json_asked => json(&value()),
        Some(path) if path == Path::new("-") => Ok(()),
        _ => stdout(&text()),
    }
}

/// Lines of a name and a value, the values below each other.
pub(crate) fn fields(lines: &[(&str, String)]) -> String {
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, value): &(&str, String)| {
        let value = shortened(escaped(value), LONGEST_LINE);
        format!("{name:<width$}  {value}\n")
    };
    lines.iter().map(line).collect()
}

/// The head of a table: one cell per word.
pub(crate) fn head<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// What a model uses, such as `12 of 5,000 features in 30 atoms`. A base uses all features, so the figures are those of the
/// learned part, which is said then.
pub(crate) fn usage_of(model: &Model) -> String {
    let learned = model.similarity();
    let place = match model.base() > 0.0 {
        true => " of the learned part",
        false => "",
    };
    format!(
        "{} of {} in {}{place}",
        thousands(learned.n_features_used()),
        count(model.n_features(), "feature"),
        count(learned.atoms().len(), "atom")
    )
}

/// A file that was written and its size.
pub(crate) fn saved(path: &Path, n_bytes: usize) -> String {
    format!("{} ({} bytes)", path.display(), thousands(n_bytes))
}

/// A table with columns as wide as they need to be: columns of numbers to the right, others to the left.
pub(crate) fn table(indent: &str, rows: &[Vec<String>]) -> String {
    let shown = |cell: &String| shortened(escaped(cell), LONGEST_CELL).into_owned();
    let shown = |row: &Vec<String>| row.iter().map(shown).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(shown).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let layout: Vec<(usize, bool)> = (0..columns)
        .map(|column| {
            let cells = || rows.iter().filter_map(|row| row.get(column));
            let width = cells().map(|cell| cell.chars().count()).max().unwrap_or(0);
            let numbers = cells().filter(|cell| is_number(cell)).count();
            (width, 2 * numbers > cells().count())
        })
        .collect();
    let mut out = String::new();
    for row in &rows {
        let mut line = indent.to_owned();
        for (cell, &(width, right)) in row.iter().zip(&layout) {
            let pad = " ".repeat(width - cell.chars().count());
            line += &match right {
                true => format!("{pad}{cell}  "),
                false => format!("{cell}{pad}  "),
            };
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

fn is_number(cell: &str) -> bool {
    let digits = cell.trim_end_matches('%').replace(',', "");
    digits.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escaped("a\u{1b}[2J\nb\u{9b}é"), "a\\u{1b}[2J\\nb\\u{9b}é");
        assert_eq!(escaped_lines("a\tb\n\u{7}c\n"), "a\tb\n\\u{7}c\n");
        let rows = [head(["name", "x"]), head(["evil\n99  row", "1"])];
        let table = table("", &rows);
        assert_eq!(table.lines().count(), 2, "{table}");
        let long = "é".repeat(10_000);
        let table = self::table("", &[vec![long.clone(), "b".into()]]);
        assert_eq!(table.chars().count(), LONGEST_CELL + 4, "{table}");
        assert_eq!(shortened(Cow::Borrowed("abcdefg"), 7), "abcdefg");
        assert_eq!(shortened(Cow::Borrowed("abcdefgh"), 7), "abcd…gh");
        assert!(fields(&[("class", long)]).chars().count() < LONGEST_LINE + 10);
        assert_eq!(
            fields(&[("file", "a\nb  c".to_owned())]),
            "file  a\\nb  c\n"
        );
    }
}
