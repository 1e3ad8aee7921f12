//! An index: rows to search under a model, with labels, ids and texts, in memory and in a file.
//!
//! An index contains its model, so that it is all that a search needs. Results are those of [`KnnIndex`](crate::KnnIndex):
//! the same rows in the same order, with the same scores, bit for bit. Rows are numbered in the order in which they were
//! added, and keep their numbers when others are removed.
//!
//! Rows are stored in *segments* that never change. Adding rows appends segments, and removing rows marks them. A file is
//! read only where a search needs it, and [`Index::save`] appends to it, so that it is in the old or in the new state
//! whenever the process ends. Clones share their segments, and a search works on the state that its clone has.
//!
//! ```
//! use hdsl::atoms::Path;
//! use hdsl::index::{Index, NewRows};
//! use hdsl::{Atom, Model, ModelParts, Rows};
//! let path = Path::new(vec![(Atom::plus(0, 1)?, 1.0)], vec![])?;
//! let model = Model::new(ModelParts::new(3, 4.0, path))?;
//! let rows = Rows::from_parts(3, vec![0, 1, 2, 4], vec![0, 2, 0, 1], vec![1.0, 1.0, 1.0, 1.0])?;
//! let ids = ["apple", "bolt", "pear"].map(str::to_owned);
//! let mut index = Index::new(model, None);
//! index.add(&NewRows { ids: Some(&ids), ..NewRows::new(&rows) })?;
//!
//! let near = index.search(&rows, 2)?; // S(x, x') = 4 (x_0 + x_1)(x'_0 + x'_1)
//! assert_eq!((near[0][0].row, near[0][0].score), (2, 8.0));
//! assert_eq!(index.entry(2)?.id.as_deref(), Some("pear"));
//! index.remove(&[2])?;
//! assert_eq!(index.search(&rows, 2)?[0][0].row, 0);
//! # Ok::<(), hdsl::Error>(())
//! ```

mod change;
mod codec;
mod columns;
mod file;
mod mapping;
mod predict;
mod search;
mod segment;
mod source;

pub use change::NewRows;
pub use file::{IndexEdit, is_index};

use crate::cancel::CancelToken;
use crate::data::{Rows, RowsView};
use crate::error::{Error, Result};
use crate::knn::{Neighbor, TopK};
use crate::model::Model;
use crate::parallel;
use crate::similarity::{Explanation, Normalization};
use file::Origin;
use mapping::Mapping;
use search::{Scratch, Search};
use segment::Segment;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// What is wrong with the bytes of an index is text; the caller adds the path.
type Read<T> = std::result::Result<T, String>;

/// Rows to search under a model; see the [module](self).
#[derive(Clone, Debug)]
pub struct Index {
    mapping: Arc<Mapping>,
    parts: Vec<Part>,
    /// The number of the next row that is added.
    next_row: u32,
    /// The file that the index was read from or saved to.
    origin: Option<Arc<Origin>>,
    pool: Arc<Pool>,
}

/// A segment and the rows of it that were removed.
#[derive(Clone, Debug)]
struct Part {
    segment: Arc<Segment>,
    /// The number of its first row.
    first_row: u32,
    removed: Arc<Removed>,
    /// Where the segment is in the file of the index, if it is there.
    saved_at: Option<file::Place>,
}

/// The positions of removed rows.
#[derive(Clone, Debug, Default)]
struct Removed {
    /// One bit per position; nothing if no row is removed.
    bits: Vec<u8>,
    n: usize,
    /// Where this is in the file of the index, if it is there.
    saved_at: Option<file::Place>,
}

impl Removed {
    fn has(&self, position: usize) -> bool {
        let byte = self.bits.get(position / 8);
        byte.is_some_and(|byte| byte >> (position % 8) & 1 == 1)
    }
}

/// Buffers of searches, to be used again.
#[derive(Default)]
struct Pool(Mutex<Vec<Scratch>>);

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pool")
    }
}

impl Pool {
    fn with<T>(&self, work: impl FnOnce(&mut Scratch) -> T) -> T {
        let lock = || self.0.lock().expect("no thread panics with it");
        let known = lock().pop();
        let mut scratch = known.unwrap_or_default();
        let result = work(&mut scratch);
        lock().push(scratch);
        result
    }
}

/// What an index knows about a row beside its features.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexEntry {
    /// The number of the row.
    pub row: u32,
    /// Its id, if the index has ids.
    pub id: Option<String>,
    /// Its class, if it has one.
    pub label: Option<String>,
    /// The text to show for it.
    pub text: Option<String>,
}

impl Index {
    /// An index without rows under a model, which needs no training rows any more, with a normalization other than that of the model's prediction rule if one is
    /// given.
    pub fn new(model: Model, normalization: Option<Normalization>) -> Self {
        let model = model.without_training_rows();
        let normalization = normalization.unwrap_or(model.rule().normalization);
        Self {
            mapping: Arc::new(Mapping::new(model, normalization)),
            parts: Vec::new(),
            next_row: 0,
            origin: None,
            pool: Arc::default(),
        }
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.mapping.model
    }

    /// How scores are normalized.
    pub fn normalization(&self) -> Normalization {
        self.mapping.normalization
    }

    /// How many rows can be found.
    pub fn n_rows(&self) -> usize {
        self.parts.iter().map(Part::n_rows).sum()
    }

    /// How many segments there are.
    pub fn n_segments(&self) -> usize {
        self.parts.len()
    }

    /// Whether rows have ids; none do if there are no rows.
    pub fn has_ids(&self) -> bool {
        self.parts
            .first()
            .is_some_and(|part| part.segment.has_ids())
    }

    /// The numbers of all rows, in increasing order.
    pub fn rows(&self) -> Result<Vec<u32>> {
        let mut rows = Vec::with_capacity(self.n_rows());
        for part in &self.parts {
            let numbers = self.read(part.segment.numbers())?;
            let kept = (0..).zip(numbers).filter(|&(at, _)| !part.removed.has(at));
            rows.extend(kept.map(|(_, &row)| row));
        }
        rows.sort_unstable();
        Ok(rows)
    }

    /// The `k` nearest rows of each raw query, nearest first, or all of them if there are fewer.
    pub fn search<'a>(
        &self,
        queries: impl Into<RowsView<'a>>,
        k: usize,
    ) -> Result<Vec<Vec<Neighbor>>> {
        self.search_where(queries, k, |_, _| true, CancelToken::NEVER)
    }

    /// The `k` nearest rows of each raw query for which `allowed(query, row)` holds. The search ends with
    /// [`Error::Stopped`] when the token is cancelled.
    pub fn search_where<'a>(
        &self,
        queries: impl Into<RowsView<'a>>,
        k: usize,
        allowed: impl Fn(u32, u32) -> bool + Sync,
        cancel: CancelToken<'_>,
    ) -> Result<Vec<Vec<Neighbor>>> {
        if k == 0 {
            return Err(Error::param("k", k, "a whole number above 0"));
        }
        let mapped = self.mapping.map(&self.mapping.prepare(queries.into())?);
        parallel::try_map(mapped.n_rows(), 1, |query| {
            let allowed = |row| allowed(query as u32, row);
            let search = Search {
                mapping: &self.mapping,
                query: mapped.row(query),
                k,
                allowed: &allowed,
                top: Mutex::new(TopK::new(k)),
            };
            let one = |part: &Part| -> Result<()> {
                cancel.check()?;
                let is_removed = |at| part.removed.has(at);
                let segment =
                    |scratch: &mut Scratch| search.segment(&part.segment, is_removed, scratch);
                self.read(self.pool.with(segment))
            };
            parallel::try_map(self.parts.len(), 1, |at| one(&self.parts[at]))?;
            Ok(search.finish())
        })
    }

    /// Id, label and text of a row.
    pub fn entry(&self, row: u32) -> Result<IndexEntry> {
        let (part, position) = self.place(row)?;
        let known = self.read(part.segment.entered(position))?;
        Ok(IndexEntry {
            row,
            id: known.id,
            label: known.label,
            text: known.text,
        })
    }

    /// The number of the row with this id.
    pub fn find(&self, id: &str) -> Result<Option<u32>> {
        for part in &self.parts {
            let found = part.segment.find(id, |at| !part.removed.has(at));
            if let Some(position) = self.read(found)? {
                return Ok(Some(self.read(part.segment.numbers())?[position]));
            }
        }
        Ok(None)
    }

    /// The row as the similarity sees it: preprocessed, without features that it does not use.
    pub fn row(&self, row: u32) -> Result<Rows> {
        let (part, position) = self.place(row)?;
        self.read(part.segment.rows([position], self.model().n_features()))
    }

    /// Why a row has its score with a raw query, which is a matrix of one row. The contributions are those of
    /// [`Normalized::explain_pair`](crate::similarity::Normalized::explain_pair).
    pub fn explain<'a>(&self, query: impl Into<RowsView<'a>>, row: u32) -> Result<Explanation> {
        let query = query.into();
        if query.n_rows() != 1 {
            return Err(Error::Data(format!(
                "there are {} queries to explain, expected one",
                query.n_rows()
            )));
        }
        let query = self.mapping.prepare(query)?;
        Ok(self.mapping.explain(&query, &self.row(row)?))
    }

    /// Reads everything, and compares all checksums.
    pub fn check(&self) -> Result<()> {
        let check = |part: &Part| self.read(part.segment.check(self.model().n_features()));
        self.parts.iter().try_for_each(check)
    }

    /// The part and the position of a row that is there.
    fn place(&self, row: u32) -> Result<(&Part, usize)> {
        let after = self.parts.partition_point(|part| part.first_row <= row);
        if let Some(part) = after.checked_sub(1).map(|at| &self.parts[at]) {
            let numbers = self.read(part.segment.numbers())?;
            let position = numbers.iter().position(|&number| number == row);
            if let Some(position) = position.filter(|&at| !part.removed.has(at)) {
                return Ok((part, position));
            }
        }
        Err(Error::Data(format!("row {row} is not in the index")))
    }

    /// Adds the path to what is wrong with the bytes of the index.
    fn read<T>(&self, read: Read<T>) -> Result<T> {
        read.map_err(|reason| Error::File {
            path: self.path(),
            reason,
        })
    }

    /// The file of the index, for messages.
    fn path(&self) -> PathBuf {
        let path = self.origin.as_ref().map(|origin| origin.path.clone());
        path.unwrap_or_else(|| "index in memory".into())
    }
}

impl Part {
    /// How many rows it has that are not removed.
    fn n_rows(&self) -> usize {
        self.segment.n_rows() - self.removed.n
    }
}
