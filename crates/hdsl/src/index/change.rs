//! Adding and removing rows.

use super::segment::{self, Contents, Entered, MAX_ROWS, Segment};
use super::source::Source;
use super::{Index, Part, Read};
use crate::data::{Labels, Rows, RowsView};
use crate::error::{Error, Result};
use crate::parallel;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// This many small segments of similar sizes become one.
const MERGED: usize = 8;

/// Adding rows does not make larger segments than this from small ones, so that it never takes long.
const MAX_MERGED_ROWS: usize = 4096;

/// Raw rows to add to an index, and what is known about them.
#[derive(Clone, Copy, Debug)]
pub struct NewRows<'a> {
    /// The rows.
    pub rows: RowsView<'a>,
    /// The class of each row.
    pub labels: Option<&'a Labels>,
    /// The id of each row. Either all rows of an index have ids, or none.
    pub ids: Option<&'a [String]>,
    /// The text to show for each row.
    pub texts: Option<&'a [String]>,
    /// Whether a row replaces one with the same id. Otherwise such a row is an error.
    pub replace: bool,
}

impl<'a> NewRows<'a> {
    /// Rows alone.
    pub fn new(rows: impl Into<RowsView<'a>>) -> Self {
        Self {
            rows: rows.into(),
            labels: None,
            ids: None,
            texts: None,
            replace: false,
        }
    }

    /// Checks that there is one label, id and text per row, and that no id repeats.
    fn check(&self) -> Result<()> {
        let n = self.rows.n_rows();
        let lengths = [
            (self.labels.map(Labels::len), "labels"),
            (self.ids.map(<[String]>::len), "ids"),
            (self.texts.map(<[String]>::len), "texts"),
        ];
        for (length, what) in lengths {
            if let Some(length) = length.filter(|&length| length != n) {
                return Err(Error::Data(format!(
                    "there are {length} {what} for {n} rows"
                )));
            }
        }
        let mut first = HashMap::new();
        for (row, id) in self.ids.into_iter().flatten().enumerate() {
            if id.is_empty() {
                return Err(Error::Data(format!("row {row} has an empty id")));
            }
            if let Some(before) = first.insert(id, row) {
                return Err(Error::Data(format!(
                    "rows {before} and {row} have the same id `{id}`, expected different ids"
                )));
            }
        }
        Ok(())
    }

    /// What is known about one row.
    fn entered(&self, row: usize) -> Entered {
        Entered {
            id: self.ids.map(|ids| ids[row].clone()),
            label: self.labels.map(|labels| labels.name(row).to_owned()),
            text: self.texts.map(|texts| texts[row].clone()),
        }
    }
}

impl Index {
    /// Adds raw rows behind the others. If there is an error, the index is as it was.
    pub fn add(&mut self, new: &NewRows<'_>) -> Result<()> {
        new.check()?;
        let n = new.rows.n_rows();
        if n == 0 {
            return Ok(());
        }
        self.model().preprocess().check(new.rows)?;
        if !self.parts.is_empty() && new.ids.is_some() != self.has_ids() {
            let (have, given) = match self.has_ids() {
                true => ("have ids", "none are given"),
                false => ("have no ids", "some are given"),
            };
            return Err(Error::Data(format!(
                "the rows of the index {have}, but {given} for the new ones"
            )));
        }
        let Some(next_row) = u32::try_from(n)
            .ok()
            .and_then(|n| self.next_row.checked_add(n))
        else {
            return Err(Error::Data(format!(
                "the index would have more than {} rows",
                u32::MAX
            )));
        };
        let replaced = self.known(new)?;
        let made = parallel::map(n.div_ceil(MAX_ROWS), |chunk| {
            self.chunk(new, chunk * MAX_ROWS..n.min((chunk + 1) * MAX_ROWS))
        });
        let made = made.into_iter().collect::<Result<Vec<Part>>>()?;
        let mut changed = self.clone();
        changed.remove(&replaced)?;
        changed.parts.extend(made);
        changed.next_row = next_row;
        changed.merge_small()?;
        *self = changed;
        Ok(())
    }

    /// The rows that have the same ids as new ones, which is an error unless they are replaced.
    fn known(&self, new: &NewRows<'_>) -> Result<Vec<u32>> {
        let mut known = Vec::new();
        for id in new.ids.into_iter().flatten() {
            if let Some(row) = self.find(id)? {
                if !new.replace {
                    return Err(Error::Data(format!(
                        "row {row} of the index has the id `{id}` already; pass --replace to replace it"
                    )));
                }
                known.push(row);
            }
        }
        Ok(known)
    }

    /// A part of some of the new rows.
    fn chunk(&self, new: &NewRows<'_>, range: std::ops::Range<usize>) -> Result<Part> {
        let which: Vec<u32> = (range.start as u32..range.end as u32).collect();
        let rows = self.mapping.prepare(new.rows.select(&which).view())?;
        let contents = Contents {
            numbers: which.iter().map(|row| self.next_row + row).collect(),
            rows: Some(rows),
            extras: range.map(|row| new.entered(row)).collect(),
        };
        self.read(self.part(contents))
    }

    /// A part of these contents, in memory.
    fn part(&self, contents: Contents) -> Read<Part> {
        let first_row = contents.numbers[0];
        let bytes = segment::encode(contents, &self.mapping);
        Ok(Part {
            segment: Arc::new(Segment::open(Source::Memory(bytes.into()))?),
            first_row,
            removed: Arc::default(),
            saved_at: None,
        })
    }

    /// Removes rows by number. If there is an error, the index is as it was.
    pub fn remove(&mut self, rows: &[u32]) -> Result<()> {
        let mut parts = self.parts.clone();
        let mut places: HashMap<usize, HashSet<u32>> = HashMap::new();
        for &row in rows {
            let after = parts.partition_point(|part| part.first_row <= row);
            let wanted = places.entry(after.wrapping_sub(1)).or_default();
            if !wanted.insert(row) {
                return Err(Error::Data(format!("row {row} is to be removed twice")));
            }
        }
        for (at, mut wanted) in places {
            if let Some(part) = parts.get_mut(at) {
                let mut removed = (*part.removed).clone();
                removed.bits.resize(part.segment.n_rows().div_ceil(8), 0);
                let numbers = self.read(part.segment.numbers())?;
                for (position, number) in numbers.iter().enumerate() {
                    if !part.removed.has(position) && wanted.remove(number) {
                        removed.bits[position / 8] |= 1 << (position % 8);
                        removed.n += 1;
                    }
                }
                removed.saved_at = None;
                part.removed = Arc::new(removed);
            }
            if let Some(row) = wanted.iter().min() {
                return Err(Error::Data(format!("row {row} is not in the index")));
            }
        }
        parts.retain(|part| part.n_rows() > 0);
        self.parts = parts;
        Ok(())
    }

    /// Merges the last segments if there are many small ones of similar sizes.
    fn merge_small(&mut self) -> Result<()> {
        let size = |part: &Part| part.segment.n_rows().ilog(MERGED);
        while let Some(last) = self.parts.last() {
            let largest = size(last);
            let small = self
                .parts
                .iter()
                .rev()
                .take_while(|part| size(part) <= largest);
            let n = small.count();
            let first = self.parts.len() - n;
            let total: usize = self.parts[first..].iter().map(Part::n_rows).sum();
            if n < MERGED || total > MAX_MERGED_ROWS {
                return Ok(());
            }
            let merged = self.contents(first..self.parts.len())?;
            let merged = self.read(self.part(merged))?;
            self.parts.truncate(first);
            self.parts.push(merged);
        }
        Ok(())
    }

    /// The contents of some parts, without removed rows.
    pub(super) fn contents(&self, parts: std::ops::Range<usize>) -> Result<Contents> {
        let n_features = self.model().n_features();
        let mut all = Contents {
            rows: Some(Rows::new(n_features)),
            ..Contents::default()
        };
        for part in &self.parts[parts] {
            let contents = part
                .segment
                .contents(|at| !part.removed.has(at), n_features);
            let contents = self.read(contents)?;
            all.numbers.extend(contents.numbers);
            all.extras.extend(contents.extras);
            if let (Some(rows), Some(more)) = (&mut all.rows, &contents.rows) {
                rows.append(more.view());
            }
        }
        Ok(all)
    }

    /// The same rows in as few segments as possible, without anything of removed rows. Row numbers stay.
    pub fn compacted(&self) -> Result<Self> {
        let mut compact = self.clone();
        compact.parts.clear();
        let mut start = 0;
        while start < self.parts.len() {
            let (mut end, mut total) = (start, 0);
            while end < self.parts.len()
                && (end == start || total + self.parts[end].n_rows() <= MAX_ROWS)
            {
                total += self.parts[end].n_rows();
                end += 1;
            }
            let part = match end - start == 1 && self.parts[start].removed.n == 0 {
                true => self.parts[start].clone(),
                false => self.read(self.part(self.contents(start..end)?))?,
            };
            compact.parts.push(part);
            start = end;
        }
        compact.forget_origin();
        Ok(compact)
    }
}
