//! Search under many similarities β <x, x'> + xᵀ M x' of the same rows and queries, which differ in β and M.
//!
//! The mapped rows [√β x, learned coordinates] of two such similarities differ in a factor and in the few learned
//! coordinates. So <x, x'> is computed once in single precision, and the learned coordinates are indexed for each similarity;
//! mapped rows are not stored. Sums in single precision serve both normalizations. The scores are the double-precision sums
//! that [`Index`](super::index::Index) computes, bit for bit.

use super::inverted::{InvertedIndex, select};
use super::query::{ColumnMaxima, Query, slack};
use super::{Neighbor, index::Request, search_all};
use crate::cancel::CancelToken;
use crate::data::{Columns, Rows};
use crate::error::Result;
use crate::parallel;
use crate::similarity::BilinearModel;
use std::ops::Range;

/// The lengths of rows and queries and √β are in this range (or 0), and the lengths of mapped rows in the square of it. Products are then
/// far within the range of single precision.
const RANGE: Range<f64> = 1e-5..1e5;

/// A bound of the underflow in one term of a score in single precision, given values in these ranges.
const UNDERFLOW: f64 = 1e-28;

/// Products are stored up to this number, 16 MB: five folds of 5,000 rows have as many each. With more, the sums are computed
/// again for each similarity.
const MOST_PRODUCTS: usize = 1 << 22;

/// An index of rows and queries that are not mapped.
pub(crate) struct BaseIndex {
    scores: BaseScores,
    maxima: ColumnMaxima,
    /// Those of the rows divided by their lengths.
    unit_maxima: ColumnMaxima,
}

impl BaseIndex {
    /// None if rows or queries are out of range, or the features too many to have a number each.
    pub(crate) fn new(rows: &Rows, queries: &Rows) -> Option<Self> {
        Self::with_products(rows, queries, MOST_PRODUCTS)
    }

    /// [`BaseIndex::new`], where at most so many products are stored.
    pub(super) fn with_products(rows: &Rows, queries: &Rows, most: usize) -> Option<Self> {
        let lengths: Vec<f64> = rows.iter().map(|row| row.norm()).collect();
        let in_range = |length: f64| length == 0.0 || RANGE.contains(&length);
        let suits = Columns::have_table(rows)
            && lengths.iter().copied().all(in_range)
            && queries.iter().all(|row| in_range(row.norm()))
            && queries.n_features() <= rows.n_features();
        suits.then(|| Self {
            scores: BaseScores::new(rows, queries, most),
            maxima: ColumnMaxima::of(rows),
            unit_maxima: ColumnMaxima::scaled(rows, |row| 1.0 / not_zero(lengths[row])),
        })
    }
}

/// <x, x'> of queries and rows, in single precision.
enum BaseScores {
    /// One per query and row.
    Products(Vec<f32>),
    /// Of the rows.
    Inverted(InvertedIndex),
}

impl BaseScores {
    fn new(rows: &Rows, queries: &Rows, most: usize) -> Self {
        let inverted = InvertedIndex::new(rows);
        let n = rows.n_rows();
        if n == 0 || queries.n_rows().saturating_mul(n) > most {
            return Self::Inverted(inverted);
        }
        let mut products = vec![0.0; queries.n_rows() * n];
        let each = products.chunks_mut(n).enumerate().collect();
        parallel::map_each(each, |(query, scores): (usize, &mut [f32])| {
            let columns = queries.row(query).iter();
            inverted.add_scores(scores, columns.map(|(column, x)| (column, x as f32)));
        });
        Self::Products(products)
    }

    /// The scores of a query of this number, whose columns are √β x, with all rows.
    fn of(&self, scores: &mut Vec<f32>, query: usize, columns: &[(u32, f64)], root: f64, n: usize) {
        scores.clear();
        match self {
            Self::Products(products) => {
                let base = (root * root) as f32;
                let products = &products[query * n..(query + 1) * n];
                scores.extend(products.iter().map(|product| base * product));
            }
            Self::Inverted(inverted) => {
                scores.resize(n, 0.0);
                let columns = columns.iter().map(|&(c, x)| (c, (root * x) as f32));
                inverted.add_scores(scores, columns);
            }
        }
    }
}

/// A length to divide by: a row of zeros stays as it is.
fn not_zero(length: f64) -> f64 {
    if length == 0.0 { 1.0 } else { length }
}

/// The rows under one similarity.
pub(super) struct OnBase<'a> {
    index: &'a BaseIndex,
    rows: &'a Rows,
    /// √β.
    root: f64,
    learned: Rows,
    learned_index: InvertedIndex,
    /// The largest learned coordinates, and those of mapped rows divided by their lengths.
    learned_maxima: [ColumnMaxima; 2],
    /// Those of mapped rows; 1 for rows of zeros.
    lengths: Vec<f64>,
    inverse_lengths: Vec<f32>,
    /// The shortest length, but at most 1.
    shortest: f64,
}

/// Buffers of one thread.
#[derive(Default)]
struct Scratch {
    query: Query,
    scores: Vec<f32>,
}

impl<'a> OnBase<'a> {
    /// The rows of an index under a similarity with a base. None if they are out of range.
    pub(super) fn new(index: &'a BaseIndex, rows: &'a Rows, model: &BilinearModel) -> Option<Self> {
        let root = model.base().sqrt();
        if !RANGE.contains(&root) || model.n_features() != rows.n_features() {
            return None;
        }
        let learned = model.learned_rows(rows);
        let mut mapped = Self {
            index,
            rows,
            root,
            learned_index: InvertedIndex::new(&learned),
            learned_maxima: [(); 2].map(|()| ColumnMaxima::of(&learned)),
            learned,
            lengths: Vec::new(),
            inverse_lengths: Vec::new(),
            shortest: 1.0,
        };
        // As rows are made unit vectors.
        let length = |row| (mapped.row(row).map(|(_, y)| y * y).sum::<f64>()).sqrt();
        let lengths = (0..rows.n_rows()).map(|row| not_zero(length(row)));
        mapped.lengths = lengths.collect();
        mapped.shortest = mapped.lengths.iter().copied().fold(1.0, f64::min);
        let all_in_range = (mapped.lengths.iter()).all(|y| RANGE.contains(&y.sqrt()));
        mapped.inverse_lengths = mapped.lengths.iter().map(|y| (1.0 / y) as f32).collect();
        mapped.learned_maxima[1] =
            ColumnMaxima::scaled(&mapped.learned, |row| 1.0 / mapped.lengths[row]);
        all_in_range.then_some(mapped)
    }

    /// The number of coordinates.
    pub(super) fn n_columns(&self) -> usize {
        self.rows.n_features() + self.learned.n_features()
    }

    /// A mapped row. Values of rows are too small to overflow.
    fn row(&self, row: usize) -> impl Iterator<Item = (u32, f64)> + use<'_> {
        let first = self.rows.n_features() as u32;
        let base = self.rows.row(row).iter();
        let learned = self.learned.row(row).iter();
        base.map(|(column, x)| (column, self.root * x))
            .chain(learned.map(move |(column, y)| (first + column, y)))
    }

    /// A mapped row divided by its length, or not.
    pub(super) fn normalized(
        &self,
        row: usize,
        is_cosine: bool,
    ) -> impl Iterator<Item = (u32, f64)> + use<'_> {
        let length = if is_cosine { self.lengths[row] } else { 1.0 };
        self.row(row).map(move |(column, y)| (column, y / length))
    }

    /// For each query the `k[0]` nearest rows by the dot product and the `k[1]` nearest by the cosine. The queries are those of
    /// the index, mapped; and the same divided by their lengths.
    pub(super) fn neighbors(
        &self,
        [queries, unit_queries]: [&Rows; 2],
        k: [usize; 2],
        cancel: CancelToken<'_>,
    ) -> Result<Vec<[Vec<Neighbor>; 2]>> {
        search_all(queries, cancel, &|scratch: &mut Scratch, number, row| {
            let Scratch { query, scores } = scratch;
            query.set(row.iter(), self.n_columns());
            self.score_all(scores, number, query);
            // Without a slack single precision says nothing, and all rows remain.
            let slacks = self.slacks(query).unwrap_or_else(|| {
                scores.fill(0.0);
                [f64::INFINITY; 2]
            });
            let by_dot = self.select(query, scores, slacks[0], k[0], false);
            for (score, inverse) in scores.iter_mut().zip(&self.inverse_lengths) {
                *score *= inverse;
            }
            query.set(unit_queries.row(number).iter(), self.n_columns());
            let by_cosine = self.select(query, scores, slacks[1], k[1], true);
            [by_dot, by_cosine]
        })
    }

    /// The score of every row in single precision.
    fn score_all(&self, scores: &mut Vec<f32>, number: usize, query: &Query) {
        let first = self.rows.n_features() as u32;
        let split = query.columns.partition_point(|entry| entry.0 < first);
        let (base, learned) = query.columns.split_at(split);
        let n_rows = self.rows.n_rows();
        (self.index.scores).of(scores, number, base, self.root, n_rows);
        let learned = learned.iter().map(|&(c, x)| (c - first, x as f32));
        self.learned_index.add_scores(scores, learned);
    }

    /// For scores by the dot product, and for those divided by the lengths of the rows: the largest difference to the score in
    /// double precision. None if single precision does not have the range.
    fn slacks(&self, query: &Query) -> Option<[f64; 2]> {
        let first = self.rows.n_features() as u32;
        let of = |base: &ColumnMaxima, root: f64, learned: &ColumnMaxima| {
            let largest = |column: u32| match column < first {
                true => root * base.of_column(column),
                false => learned.of_column(column - first),
            };
            slack(query.columns.iter().map(|&(c, x)| (x, largest(c))))
        };
        let [learned, unit_learned] = &self.learned_maxima;
        let by_dot = of(&self.index.maxima, self.root, learned)?;
        // √β x is at most as large a part of a mapped row as x is of the row.
        let by_cosine = of(&self.index.unit_maxima, 1.0, unit_learned)?;
        let underflow = query.columns.len() as f64 * UNDERFLOW;
        Some([by_dot + underflow, by_cosine + underflow / self.shortest])
    }

    /// The nearest rows, given their scores in single precision.
    fn select(
        &self,
        query: &Query,
        scores: &[f32],
        slack: f64,
        k: usize,
        is_cosine: bool,
    ) -> Vec<Neighbor> {
        if k == 0 {
            return Vec::new();
        }
        let request = Request {
            k,
            positions: [0..self.rows.n_rows(), 0..0],
            allowed: &|_| true,
        };
        let exact = |row| query.add_dot(0.0, self.normalized(row, is_cosine));
        select(scores, slack, &request, |row| row as u32, exact)
    }
}
