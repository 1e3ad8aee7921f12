//! Rows from entries in any order, as files hold them.

use super::rows::Rows;
use super::{Dataset, Groups, IndexBase};
use crate::error::{Error, Parsed, Result};
use std::path::Path;

/// Builds rows entry by entry: sorts each row, refuses repeated indices, drops zeros, and counts what is worth a note.
#[derive(Default)]
pub(super) struct RowBuilder {
    /// Where each row ends.
    ends: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
    /// One more than the last index of the current row, 0 before the first.
    next: u64,
    unsorted: bool,
    has_zeros: bool,
    n_unsorted: usize,
    n_empty: usize,
}

impl RowBuilder {
    /// Bytes of memory.
    pub(super) fn size(&self) -> usize {
        12 * self.indices.len() + 8 * self.ends.len()
    }

    /// Adds an entry to the current row.
    #[inline]
    pub(super) fn entry(&mut self, index: u32, value: f64) {
        self.unsorted |= u64::from(index) < self.next;
        self.next = u64::from(index) + 1;
        self.has_zeros |= value == 0.0;
        self.indices.push(index);
        self.values.push(value);
    }

    /// Ends the current row. Gives its lowest and its highest index, or an index that is repeated.
    pub(super) fn end_row(&mut self) -> std::result::Result<Option<(u32, u32)>, u32> {
        let start = self.ends.last().copied().unwrap_or(0);
        self.next = 0;
        if std::mem::take(&mut self.unsorted) {
            self.sort_from(start)?;
            self.n_unsorted += 1;
        }
        let row = &self.indices[start..];
        let bounds = row.first().copied().zip(row.last().copied());
        if std::mem::take(&mut self.has_zeros) {
            let mut to = start;
            for from in start..self.indices.len() {
                if self.values[from] != 0.0 {
                    self.indices[to] = self.indices[from];
                    self.values[to] = self.values[from];
                    to += 1;
                }
            }
            self.indices.truncate(to);
            self.values.truncate(to);
        }
        self.n_empty += usize::from(self.indices.len() == start);
        self.ends.push(self.indices.len());
        Ok(bounds)
    }

    fn sort_from(&mut self, start: usize) -> std::result::Result<(), u32> {
        let (indices, values) = (&mut self.indices[start..], &mut self.values[start..]);
        let entries = indices.iter().copied().zip(values.iter().copied());
        let mut entries: Vec<(u32, f64)> = entries.collect();
        entries.sort_unstable_by_key(|&(index, _)| index);
        if let Some(pair) = entries.windows(2).find(|w| w[0].0 == w[1].0) {
            return Err(pair[0].0);
        }
        for (at, (index, value)) in entries.into_iter().enumerate() {
            (indices[at], values[at]) = (index, value);
        }
        Ok(())
    }

    /// Adds the rows of other builders below each other.
    pub(super) fn concat(parts: Vec<Self>) -> Self {
        let mut all = Self::default();
        all.ends
            .reserve(parts.iter().map(|part| part.ends.len()).sum());
        let n = parts.iter().map(|part| part.indices.len()).sum();
        all.indices.reserve(n);
        all.values.reserve(n);
        for part in parts {
            let before = all.indices.len();
            all.ends.extend(part.ends.iter().map(|end| before + end));
            all.indices.extend_from_slice(&part.indices);
            all.values.extend_from_slice(&part.values);
            all.n_unsorted += part.n_unsorted;
            all.n_empty += part.n_empty;
        }
        all
    }

    /// The rows as a data set without labels, with notes about them. Indices count from `base`.
    pub(super) fn finish(
        mut self,
        path: &Path,
        base: IndexBase,
        n_features: usize,
    ) -> Result<Dataset> {
        let counts = [
            (self.n_unsorted, "unsorted indices (sorted)"),
            (self.n_empty, "no features"),
        ];
        let note = |(n, what)| {
            let rows = if n == 1 { "row has" } else { "rows have" };
            format!("{}: {n} {rows} {what}", path.display())
        };
        let notes = counts.into_iter().filter(|(n, _)| *n > 0).map(note);
        for index in &mut self.indices {
            *index -= base.first() as u32;
        }
        self.ends.insert(0, 0);
        let rows = Rows::from_parts(n_features, self.ends, self.indices, self.values);
        let rows = rows.map_err(|error| error.in_file(path))?;
        Ok(Dataset::unlabeled(rows, base, notes.collect()))
    }
}

/// The size of a matrix as its file declares it.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) n_rows: usize,
    pub(super) n_columns: usize,
}

impl Shape {
    /// Refuses sizes that rows cannot have.
    pub(super) fn new(n_rows: usize, n_columns: usize) -> Parsed<Self> {
        let want = match () {
            _ if n_rows.max(n_columns) > u32::MAX as usize => "at most 2^32 - 1 of each",
            _ if n_rows == 0 => "at least 1 row",
            _ => return Ok(Self { n_rows, n_columns }),
        };
        Err(format!(
            "{n_rows} rows and {n_columns} columns, expected {want}"
        ))
    }

    /// Refuses a number of rows that is out of proportion to the entries: it would only cost memory.
    pub(super) fn check_rows(self, n_entries: usize) -> Parsed<()> {
        let n_rows = self.n_rows;
        match n_rows > (1 << 20) + 64 * n_entries {
            true => Err(format!(
                "declares {n_rows} rows for {n_entries} entries, expected at most 64 rows per entry"
            )),
            false => Ok(()),
        }
    }
}

/// The data set of a matrix, given the (column, value) entries of each row in any order. `wanted` is the number of features
/// that the caller asked for; `repeated` is the error about a column that a row has twice.
pub(super) fn read_entries(
    path: &Path,
    shape: Shape,
    wanted: Option<usize>,
    by_row: &Groups<(u32, f64)>,
    repeated: impl FnOnce(u32, u32) -> Error,
) -> Result<Dataset> {
    let n_columns = shape.n_columns;
    let n_features = wanted.unwrap_or(n_columns);
    if n_features < n_columns {
        let reason = format!("has {n_columns} columns, but there are {n_features} features");
        return Err(Error::file(path, reason));
    }
    let mut rows = RowBuilder::default();
    for row in 0..shape.n_rows {
        for &(column, value) in by_row.of(row) {
            rows.entry(column, value);
        }
        if let Err(column) = rows.end_row() {
            return Err(repeated(row as u32, column));
        }
    }
    rows.finish(path, IndexBase::Zero, n_features)
}
