//! CSV and its relatives: delimiter and header are guessed unless they are given.

use super::batch::{Batch, MAX_CELL, NOT_UTF8, Place, cell_error};
use super::roles::is_usual_name;
use super::{Dialect, Source, repeated};
use crate::data::input::{Input, quote};
use crate::data::number::parse_f64;
use crate::data::vectorize::PIECE;
use crate::error::{Error, Result};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use std::path::PathBuf;

/// How much of a file delimiter and header are guessed from.
const SAMPLE: usize = 1 << 16;

/// How much is read at a time.
const CHUNK: usize = 1 << 18;

/// How many pieces are read at a time, at most: the work of one parallel step.
const PIECES: usize = 32;

/// The most columns a file may have.
const MAX_COLUMNS: usize = 100_000;

/// A CSV file that is being read.
pub(super) struct Csv<'a> {
    path: PathBuf,
    input: Input<'a>,
    reader: Reader,
    dialect: Dialect,
    columns: Vec<String>,
    /// Columns to keep, by increasing number.
    wanted: Option<Vec<usize>>,
    /// What is read and not parsed yet: `chunk[at..]`.
    chunk: Vec<u8>,
    at: usize,
    n_rows: u64,
    record: Record,
    ended: bool,
    /// Whether the last record was ended by a line end of ours.
    closed: bool,
}

/// One record as the parser gives it.
#[derive(Default)]
struct Record {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    n_bytes: usize,
    n_ends: usize,
    /// The line it starts at.
    line: u64,
}

impl Record {
    fn field(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start..self.ends[at]]
    }

    fn fields(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.n_ends).map(|at| self.field(at))
    }
}

fn reader(delimiter: u8) -> Reader {
    ReaderBuilder::new().delimiter(delimiter).build()
}

impl<'a> Csv<'a> {
    pub(super) fn open(
        mut input: Input<'a>,
        given: &Dialect,
        extension: Option<&str>,
    ) -> Result<Self> {
        let path = input.path().to_owned();
        let sample = input.peek(SAMPLE)?;
        let whole = sample.len() < SAMPLE;
        let sample = &sample[..sample.len().min(SAMPLE)];
        let delimiter = match (given.delimiter, extension) {
            (Some(delimiter), _) => delimiter,
            (None, Some("tsv" | "tab")) => b'\t',
            (None, _) => guess_delimiter(sample, whole).unwrap_or(b','),
        };
        let records = sample_records(sample, delimiter, whole);
        let header = given
            .header
            .unwrap_or_else(|| guess_header(&records, delimiter));
        let mut csv = Self {
            path,
            input,
            reader: reader(delimiter),
            dialect: Dialect {
                delimiter: Some(delimiter),
                header: Some(header),
            },
            columns: Vec::new(),
            wanted: None,
            chunk: Vec::new(),
            at: 0,
            n_rows: 0,
            record: Record::default(),
            ended: false,
            closed: false,
        };
        csv.columns = match header {
            true => csv.read_header()?,
            false => {
                let n = records.first().map_or(0, Vec::len);
                (1..=n).map(|number| number.to_string()).collect()
            }
        };
        match csv.columns.is_empty() {
            true => Err(csv.only_blank_lines()),
            false => Ok(csv),
        }
    }

    fn only_blank_lines(&self) -> Error {
        Error::file(&self.path, "has no records, only blank lines")
    }

    fn read_header(&mut self) -> Result<Vec<String>> {
        if !self.next_record()? {
            return Err(self.only_blank_lines());
        }
        let line = self.record.line;
        let mut columns: Vec<String> = Vec::new();
        for (number, name) in (1..).zip(self.record.fields()) {
            let Ok(name) = std::str::from_utf8(name) else {
                return Err(Error::parse(
                    &self.path,
                    line,
                    format!("the header {NOT_UTF8}"),
                ));
            };
            columns.push(match name.trim() {
                "" => number.to_string(),
                name => name.to_owned(),
            });
        }
        match repeated(&columns) {
            None => Ok(columns),
            Some(name) => {
                let name = quote(name.as_bytes());
                let reason = format!(
                    "two columns are called {name}, expected distinct names; pass --no-header if this is a record"
                );
                Err(Error::parse(&self.path, line, reason))
            }
        }
    }

    /// Reads the next record into `self.record`; false at the end.
    fn next_record(&mut self) -> Result<bool> {
        let record = &mut self.record;
        (record.n_bytes, record.n_ends) = (0, 0);
        record.line = self.reader.line();
        let mut started = false;
        loop {
            if self.at == self.chunk.len() && !self.ended {
                (self.chunk, self.at) = (self.input.next_chunk(CHUNK)?, 0);
                self.ended = self.chunk.is_empty();
            }
            if record.bytes.len() < record.n_bytes + (1 << 10) {
                record
                    .bytes
                    .resize((2 * record.bytes.len()).max(1 << 14), 0);
            }
            if record.ends.len() < record.n_ends + 64 {
                record.ends.resize((2 * record.ends.len()).max(256), 0);
            }
            // After the end comes a line end, which ends the last record, unless it is within quotes.
            let is_end = self.ended && self.at == self.chunk.len();
            let input = match is_end && !std::mem::replace(&mut self.closed, is_end) {
                true => &b"\n"[..],
                false => &self.chunk[self.at..],
            };
            let (result, n_in, n_out, n_ends) = self.reader.read_record(
                input,
                &mut record.bytes[record.n_bytes..],
                &mut record.ends[record.n_ends..],
            );
            if !started {
                // Blank lines before the record are not part of it.
                let blank = input[..n_in]
                    .iter()
                    .take_while(|b| matches!(b, b'\n' | b'\r'));
                let blank = &input[..blank.count()];
                record.line += memchr::memchr_iter(b'\n', blank).count() as u64;
                started = blank.len() < n_in;
            }
            if !is_end {
                self.at += n_in;
            }
            record.n_bytes += n_out;
            record.n_ends += n_ends;
            let cell_start = match record.n_ends {
                0 => 0,
                n => record.ends[n - 1],
            };
            if record.n_bytes.saturating_sub(cell_start) > MAX_CELL {
                return Err(self.too_long());
            }
            match result {
                ReadRecordResult::InputEmpty if is_end && started => {
                    let reason = "a quote is opened in this record and not closed before the end of the file";
                    return Err(Error::parse(&self.path, record.line, reason));
                }
                ReadRecordResult::InputEmpty
                | ReadRecordResult::OutputFull
                | ReadRecordResult::OutputEndsFull => {
                    if record.n_ends > MAX_COLUMNS {
                        let reason = format!("has more than {MAX_COLUMNS} columns");
                        return Err(Error::parse(&self.path, record.line, reason));
                    }
                }
                ReadRecordResult::Record => {
                    self.check_cells()?;
                    return Ok(true);
                }
                ReadRecordResult::End => return Ok(false),
            }
        }
    }

    /// Refuses long cells.
    fn check_cells(&self) -> Result<()> {
        let record = &self.record;
        if record.n_bytes > MAX_CELL && record.fields().any(|field| field.len() > MAX_CELL) {
            return Err(self.too_long());
        }
        Ok(())
    }

    fn too_long(&self) -> Error {
        let fields = self.record.fields();
        let column = fields.take_while(|field| field.len() <= MAX_CELL).count();
        let number = (column + 1).to_string();
        let name = self.columns.get(column).unwrap_or(&number);
        let reason = format!(
            "the cell is longer than {} MB; is a closing quote missing?",
            MAX_CELL >> 20
        );
        cell_error(&self.path, Place::Line(self.record.line), name, &reason)
    }

    fn add_record(&self, batch: &mut Batch) -> Result<()> {
        let (record, n_columns) = (&self.record, self.columns.len());
        if record.n_ends != n_columns {
            let first = match self.dialect.header {
                Some(true) => "header",
                _ => "first record",
            };
            let reason = format!(
                "has {} fields, expected {n_columns}, as in the {first}",
                record.n_ends
            );
            return Err(Error::parse(&self.path, record.line, reason));
        }
        let mut add = |column: usize| {
            let field = record.field(column);
            let place = Place::Line(record.line);
            let Ok(text) = std::str::from_utf8(field) else {
                let reason = format!("{} {NOT_UTF8}", quote(field));
                return Err(cell_error(
                    &self.path,
                    place,
                    &self.columns[column],
                    &reason,
                ));
            };
            batch.push(text);
            batch.end_cell();
            Ok(())
        };
        match &self.wanted {
            None => (0..n_columns).try_for_each(add)?,
            Some(wanted) => wanted.iter().try_for_each(|&column| add(column))?,
        }
        batch.end_record(Some(record.line));
        Ok(())
    }
}

impl Source for Csv<'_> {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn select(&mut self, columns: &[usize]) {
        self.wanted = Some(columns.to_vec());
    }

    fn next(&mut self) -> Result<Vec<Batch>> {
        let n_columns = self.wanted.as_ref().map_or(self.columns.len(), Vec::len);
        let mut batches = Vec::new();
        while batches.len() < PIECES {
            let mut batch = Batch::new(n_columns, self.n_rows);
            while batch.size() < PIECE && self.next_record()? {
                self.add_record(&mut batch)?;
                self.n_rows += 1;
            }
            if batch.n_rows() == 0 {
                break;
            }
            batches.push(batch);
        }
        Ok(batches)
    }
}

/// The records at the start of a file; the last is left out if it may be cut.
fn sample_records(sample: &[u8], delimiter: u8, whole: bool) -> Vec<Vec<String>> {
    let mut reader = reader(delimiter);
    let (mut bytes, mut ends) = (vec![0; sample.len() + 1], vec![0; sample.len() + 1]);
    let mut records = Vec::new();
    let (mut at, mut n_bytes, mut n_ends) = (0, 0, 0);
    loop {
        let (result, n_in, n_out, more) =
            reader.read_record(&sample[at..], &mut bytes[n_bytes..], &mut ends[n_ends..]);
        at += n_in;
        n_bytes += n_out;
        n_ends += more;
        match result {
            ReadRecordResult::Record => {}
            // The end of the sample is the end of the record if it is the end of the file.
            ReadRecordResult::InputEmpty if whole => continue,
            _ => break,
        }
        let mut start = 0;
        let field = |&end: &usize| {
            let field = String::from_utf8_lossy(&bytes[start..end]).into_owned();
            start = end;
            field
        };
        records.push(ends[..n_ends].iter().map(field).collect());
        (n_bytes, n_ends) = (0, 0);
    }
    records
}

/// The delimiter that gives all records of the sample the same number of fields, more than one; of several, the one with
/// most.
fn guess_delimiter(sample: &[u8], whole: bool) -> Option<u8> {
    let mut best = None;
    for delimiter in *b",\t;|" {
        let records = sample_records(sample, delimiter, whole);
        let n = records.first().map_or(0, Vec::len);
        let same = records.iter().filter(|record| record.len() == n).count();
        // A few ragged records are an error later, with their lines.
        let agree = n > 1 && 10 * same >= 9 * records.len();
        if agree && best.is_none_or(|(most, _)| n > most) {
            best = Some((n, delimiter));
        }
    }
    best.map(|(_, delimiter)| delimiter)
}

/// Whether the first record names columns: no number, and nothing that its column contains again. Names are short, too, where
/// the column has sentences. Two columns with a tab between them are labels and texts without names, as a rule; there, one
/// of the names must be a usual one.
fn guess_header(records: &[Vec<String>], delimiter: u8) -> bool {
    let Some((first, rest)) = records.split_first() else {
        return false;
    };
    let names: Vec<&str> = first.iter().map(|name| name.trim()).collect();
    if delimiter == b'\t' && names.len() == 2 && !names.iter().any(|name| is_usual_name(name)) {
        return false;
    }
    let is_number = |name: &&str| parse_f64(name.as_bytes()).is_some();
    if names.iter().any(is_number) {
        return false;
    }
    if rest.is_empty() {
        return true;
    }
    let is_value = |(column, name): (usize, &&str)| {
        let mut cells = rest.iter().filter_map(|record| record.get(column));
        !name.is_empty() && cells.any(|cell| cell.trim() == *name)
    };
    let n_words = |text: &str| text.split_whitespace().count();
    let is_sentence = |name: &&str| n_words(name) > 3;
    !names.iter().any(is_sentence) && !names.iter().enumerate().any(is_value)
}

/// Whether the start of a file could be CSV: some delimiter gives records of one length.
pub(in crate::data) fn looks_like_csv(sample: &[u8], whole: bool) -> bool {
    guess_delimiter(sample, whole).is_some()
}
