//! Entries in any order, put into rows.

use crate::data::text::parse_error;
use crate::data::{Groups, IndexBase, Rows};
use crate::error::{Error, Result};
use std::path::Path;

/// (row, column, value) entries, with the lines they come from.
#[derive(Default)]
pub(crate) struct Triples {
    rows: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f64>,
    /// Entries come mostly on consecutive lines, so only the first of each run is kept: (entry, line).
    runs: Vec<(usize, u64)>,
    last_line: u64,
}

impl Triples {
    /// Adds an entry that stands on a line.
    pub(crate) fn push(&mut self, row: u32, column: u32, value: f64, line: u64) {
        if line != self.last_line + 1 || self.rows.is_empty() {
            self.runs.push((self.rows.len(), line));
        }
        self.last_line = line;
        self.rows.push(row);
        self.columns.push(column);
        self.values.push(value);
    }

    /// Bucket-sorts the entries by row. Repeated entries are an error, zeros are dropped.
    ///
    /// Memory follows the entries and not the declared number of rows, unless that is modest.
    pub(crate) fn into_rows(
        self,
        path: &Path,
        n_rows: usize,
        n_features: usize,
        base: IndexBase,
    ) -> Result<(Rows, Vec<String>)> {
        check_row_count(path, n_rows, self.rows.len())?;
        let (starts, mut order) =
            Groups::new(n_rows, self.rows.iter().copied().zip(0usize..)).into_parts();
        let mut indices = Vec::with_capacity(self.rows.len());
        let mut values = Vec::with_capacity(self.rows.len());
        let mut ends = Vec::with_capacity(n_rows + 1);
        ends.push(0);
        let mut n_empty = 0;
        for row in 0..n_rows {
            let entries = &mut order[starts[row]..starts[row + 1]];
            entries.sort_by_key(|&entry| self.columns[entry]);
            if let Some(pair) = entries
                .windows(2)
                .find(|w| self.columns[w[0]] == self.columns[w[1]])
            {
                return Err(parse_error(
                    path,
                    self.line_of(pair[1]),
                    format!(
                        "row {} has column {} a second time (first on line {})",
                        row + base.first(),
                        self.columns[pair[1]] as usize + base.first(),
                        self.line_of(pair[0])
                    ),
                ));
            }
            for &entry in entries.iter() {
                if self.values[entry] != 0.0 {
                    indices.push(self.columns[entry]);
                    values.push(self.values[entry]);
                }
            }
            n_empty += usize::from(ends.last() == Some(&indices.len()));
            ends.push(indices.len());
        }
        let notes = empty_rows_note(path, n_empty);
        Ok((Rows::from_parts(n_features, ends, indices, values)?, notes))
    }

    fn line_of(&self, entry: usize) -> u64 {
        let run = self.runs.partition_point(|&(first, _)| first <= entry) - 1;
        let (first, line) = self.runs[run];
        line + (entry - first) as u64
    }
}

/// Refuses a declared number of rows that the entries do not bear out: it would cost memory for nothing.
pub(crate) fn check_row_count(path: &Path, n_rows: usize, n_entries: usize) -> Result<()> {
    if n_rows > (1 << 20) + 64 * n_entries {
        return Err(Error::File {
            path: path.to_owned(),
            reason: format!(
                "declares {n_rows} rows for {n_entries} entries, expected at most 64 rows an entry"
            ),
        });
    }
    Ok(())
}

/// What to say about rows without features.
pub(crate) fn empty_rows_note(path: &Path, n_empty: usize) -> Vec<String> {
    match n_empty {
        0 => Vec::new(),
        1 => vec![format!("{}: 1 row has no features", path.display())],
        n => vec![format!("{}: {n} rows have no features", path.display())],
    }
}
