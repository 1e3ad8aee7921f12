//! Rows from entries in any order, as files hold them.

use super::rows::Rows;
use crate::error::{Error, Result};
use std::path::Path;

/// Builds rows entry by entry: sorts each row, refuses repeated indices, drops zeros, and counts what is worth a note.
pub(crate) struct RowBuilder {
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
    /// One more than the last index of the current row, 0 before the first.
    next: u64,
    unsorted: bool,
    has_zeros: bool,
    scratch: Vec<(u32, f64)>,
    pub(super) n_unsorted: usize,
    pub(super) n_empty: usize,
}

impl RowBuilder {
    /// No rows yet, with room for so many entries.
    pub(crate) fn with_capacity(n_entries: usize) -> Self {
        Self {
            starts: vec![0],
            indices: Vec::with_capacity(n_entries),
            values: Vec::with_capacity(n_entries),
            next: 0,
            unsorted: false,
            has_zeros: false,
            scratch: Vec::new(),
            n_unsorted: 0,
            n_empty: 0,
        }
    }

    /// How many rows have ended.
    pub(super) fn n_rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Adds an entry to the current row.
    #[inline]
    pub(crate) fn entry(&mut self, index: u32, value: f64) {
        self.unsorted |= u64::from(index) < self.next;
        self.next = u64::from(index) + 1;
        self.has_zeros |= value == 0.0;
        self.indices.push(index);
        self.values.push(value);
    }

    /// Ends the current row. Gives its lowest and its highest index, or an index that is repeated.
    pub(crate) fn end_row(&mut self) -> std::result::Result<Option<(u32, u32)>, u32> {
        let start = self.starts[self.n_rows()];
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
        self.starts.push(self.indices.len());
        Ok(bounds)
    }

    fn sort_from(&mut self, start: usize) -> std::result::Result<(), u32> {
        let (indices, values) = (&mut self.indices[start..], &mut self.values[start..]);
        self.scratch.clear();
        let entries = indices.iter().copied().zip(values.iter().copied());
        self.scratch.extend(entries);
        self.scratch.sort_unstable_by_key(|&(index, _)| index);
        if let Some(pair) = self.scratch.windows(2).find(|w| w[0].0 == w[1].0) {
            return Err(pair[0].0);
        }
        for (at, &(index, value)) in self.scratch.iter().enumerate() {
            (indices[at], values[at]) = (index, value);
        }
        Ok(())
    }

    /// Row starts, indices and values.
    pub(super) fn into_parts(self) -> (Vec<usize>, Vec<u32>, Vec<f64>) {
        (self.starts, self.indices, self.values)
    }

    /// The rows, and notes about them.
    pub(crate) fn finish(self, path: &Path, n_features: usize) -> Result<(Rows, Vec<String>)> {
        let notes = row_notes(path, self.n_unsorted, self.n_empty);
        let rows = Rows::from_parts(n_features, self.starts, self.indices, self.values);
        Ok((rows.map_err(|error| error.in_file(path))?, notes))
    }
}

/// What to say about rows whose indices had to be sorted, and about rows without features.
pub(super) fn row_notes(path: &Path, n_unsorted: usize, n_empty: usize) -> Vec<String> {
    let counts = [
        (n_unsorted, "unsorted indices (sorted)"),
        (n_empty, "no features"),
    ];
    let note = |(n, what)| {
        let rows = if n == 1 { "row has" } else { "rows have" };
        format!("{}: {n} {rows} {what}", path.display())
    };
    counts
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(note)
        .collect()
}

/// Refuses a declared number of rows that is out of proportion to the entries: it would only cost memory.
pub(super) fn check_row_count(path: &Path, n_rows: usize, n_entries: usize) -> Result<()> {
    if n_rows > (1 << 20) + 64 * n_entries {
        let reason = format!(
            "declares {n_rows} rows for {n_entries} entries, expected at most 64 rows per entry"
        );
        return Err(Error::file(path, reason));
    }
    Ok(())
}
