//! What is said and where: results on standard output, everything else on standard error.

use crate::args::Global;
use crate::failure::Failure;
use anstyle::{AnsiColor, Style};
pub(crate) use hdsl_report::format::{count, percent, short, thousands};
use serde_json::Value;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

const ERROR: Style = AnsiColor::Red.on_default().bold();
const NOTE: Style = AnsiColor::Yellow.on_default();

/// How much is said on standard error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Talk {
    verbose: bool,
    quiet: bool,
}

impl Talk {
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

    /// Whether a progress bar makes sense: someone is looking and did not ask for silence.
    pub(crate) fn shows_progress(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Said unless `-q`: what the user should know besides the result.
    pub(crate) fn note(&self, message: impl Display) {
        if !self.quiet {
            styled_stderr(&format!("hdsl: {NOTE}{message}{NOTE:#}\n"));
        }
    }

    /// Said under `-v` only.
    pub(crate) fn detail(&self, message: impl Display) {
        if self.verbose {
            styled_stderr(&format!("hdsl: {message}\n"));
        }
    }

    /// What a reader accepted but thought worth saying, under `-v` only.
    pub(crate) fn details<S: Display>(&self, messages: &[S]) {
        for message in messages {
            self.detail(message);
        }
    }
}

/// `hdsl: error: ...` on one line of standard error.
pub(crate) fn error(message: &str) {
    // Names of files may hold anything; a message stays one line all the same.
    let message = message.replace(['\n', '\r'], " ");
    styled_stderr(&format!("hdsl: {ERROR}error:{ERROR:#} {message}\n"));
}

/// Text with colors, which are left out where standard error is no terminal.
pub(crate) fn styled_stderr(text: &str) {
    // Nothing can be done, nor said, if standard error itself cannot be written.
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
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|e| Failure::stdout(&e))
}

/// One JSON object on standard output.
pub(crate) fn json(value: &Value) -> Result<(), Failure> {
    stdout(&format!("{value:#}\n"))
}

/// A table with columns as wide as they need to be: columns of numbers to the right, others to the left.
pub(crate) fn table(indent: &str, rows: &[Vec<String>]) -> String {
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
    for row in rows {
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
