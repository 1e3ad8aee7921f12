//! Exact nearest neighbors under any similarity, the classes predicted from them, and their error rates.
//!
//! This is inner product search: the score of a row is the similarity itself, which need not be largest between a row
//! and itself, so the ranking differs from that of a Euclidean distance.
//!
//! Neighbors are ordered by score, the larger first, and rows of equal score by row number. *All* rows take part:
//! one that shares nothing with the query has score 0 and comes before every row of negative score.
//!
//! ```
//! use hdsl::{PredictionRule, Dot, Labels, Rows, knn};
//! let train = Rows::from_parts(2, vec![0, 1, 2, 4], vec![0, 1, 0, 1], vec![1.0, 1.0, 2.0, 1.0])?;
//! let labels = Labels::from_names(["fruit", "metal", "fruit"]);
//! let test = Rows::from_parts(2, vec![0, 1, 2], vec![0, 1], vec![1.0, 1.0])?;
//! let truth = Labels::from_names(["fruit", "metal"]);
//! let evaluation = knn::evaluate_similarity(&Dot, &train, &labels, &test, &truth, &PredictionRule::nearest(1))?;
//! assert_eq!(evaluation.error, 0.0);
//! # Ok::<(), hdsl::Error>(())
//! ```

mod evaluation;
mod index;
mod inverted;
mod order;
mod predict;
mod rule;
#[cfg(test)]
mod tests;
mod top;
mod tree;

pub use evaluation::{Evaluation, evaluate, evaluate_similarity};
pub use predict::{ClassMeans, Predictor, classify, predict_class};
pub use rule::{PredictionRule, Vote};

use crate::cancel::CancelToken;
use crate::data::{Labels, Rows, SparseRow, group_starts};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::similarity::Similarity;
use index::{Index, List, Scratch};

/// One neighbor of a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbor {
    /// Its row number among the indexed rows.
    pub row: u32,
    /// Its similarity to the query.
    pub score: f64,
}

/// Rows indexed for exact inner product search in their mapped form.
///
/// Building costs one map of the rows. A query costs at most the stored values it shares columns with and a pass over
/// the rows, and much less where bounds exclude most rows. Results do not depend on the number of threads.
///
/// ```
/// use hdsl::{Dot, KnnIndex, Rows};
/// let rows = Rows::from_parts(2, vec![0, 1, 2, 3], vec![0, 1, 0], vec![1.0, 1.0, -1.0])?;
/// let index = KnnIndex::new(&Dot, &rows);
/// let near: Vec<u32> = index.neighbors(&rows, 3)?[0].iter().map(|n| n.row).collect();
/// assert_eq!(near, [0, 1, 2]); // scores 1, 0 and -1
/// assert!(index.neighbors(&rows, 4).is_err()); // there are only three rows
/// # Ok::<(), hdsl::Error>(())
/// ```
pub struct KnnIndex<'s, S: ?Sized> {
    similarity: &'s S,
    index: Index,
}

impl<'s, S: Similarity + ?Sized> KnnIndex<'s, S> {
    /// Maps and indexes the rows to be ranked.
    pub fn new(similarity: &'s S, rows: &Rows) -> Self {
        Self {
            similarity,
            index: Index::new(&similarity.items(rows), None, CancelToken::NEVER)
                .expect("it is never cancelled"),
        }
    }

    /// How many rows are indexed.
    pub fn n_rows(&self) -> usize {
        self.index.n_rows()
    }

    /// The `k` nearest of all indexed rows for each query, nearest first.
    pub fn neighbors(&self, queries: &Rows, k: usize) -> Result<Vec<Vec<Neighbor>>> {
        self.enough(k, self.n_rows())?;
        self.neighbors_where(queries, k, |_, _| true)
    }

    /// The `k` nearest for each query, where query `r` *is* indexed row `r` and is not its own neighbor.
    ///
    /// A row is left out by its number and not by its rank: under a dot product it need not come first.
    pub fn neighbors_of_others(&self, queries: &Rows, k: usize) -> Result<Vec<Vec<Neighbor>>> {
        self.enough(k, self.n_rows().saturating_sub(1))?;
        self.neighbors_where(queries, k, |query, row| query != row)
    }

    /// The nearest among the rows that are allowed for the query, `k` of them or as many as there are.
    ///
    /// ```
    /// use hdsl::{Dot, KnnIndex, Rows};
    /// let rows = Rows::from_parts(1, vec![0, 1, 2, 3], vec![0, 0, 0], vec![1.0, 2.0, 3.0])?;
    /// let class = [0, 1, 0];
    /// let near = KnnIndex::new(&Dot, &rows).neighbors_where(&rows, 2, |query, row| {
    ///     query != row && class[query as usize] == class[row as usize]
    /// })?;
    /// assert_eq!(near[0][0].row, 2);
    /// assert!(near[1].is_empty()); // row 1 is alone in its class
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn neighbors_where(
        &self,
        queries: &Rows,
        k: usize,
        allowed: impl Fn(u32, u32) -> bool + Sync,
    ) -> Result<Vec<Vec<Neighbor>>> {
        if k == 0 {
            return Err(Error::param("k", k, "a whole number above 0"));
        }
        let queries = self.similarity.queries(queries);
        search_all(&queries, CancelToken::NEVER, |scratch, query, row| {
            let list = List {
                k,
                places: [0..self.n_rows(), 0..0],
                allowed: &|row| allowed(query as u32, row),
            };
            self.index.search(scratch, row, &[list]).remove(0)
        })
    }

    fn enough(&self, k: usize, available: usize) -> Result<()> {
        if k > available {
            return Err(Error::Data(format!(
                "fewer rows than neighbors asked for: {available} to choose from, k is {k}"
            )));
        }
        Ok(())
    }
}

/// The nearest rows of the same class and of other classes for each row, so many of each or as many as there are, from
/// one search. A row is left out of its own neighbors by number.
pub(crate) fn class_neighbors<S: Similarity + ?Sized>(
    similarity: &S,
    rows: &Rows,
    labels: &Labels,
    counts: [usize; 2],
    cancel: CancelToken<'_>,
) -> Result<Vec<Vec<Vec<Neighbor>>>> {
    let index = Index::new(&similarity.items(rows), Some(labels.codes()), cancel)?;
    class_lists(&index, &similarity.queries(rows), labels, counts, cancel)
}

/// [`class_neighbors`] in an index of rows with these labels, whose queries are mapped.
fn class_lists(
    index: &Index,
    queries: &Rows,
    labels: &Labels,
    [same, other]: [usize; 2],
    cancel: CancelToken<'_>,
) -> Result<Vec<Vec<Vec<Neighbor>>>> {
    let class = labels.codes();
    let starts = group_starts(labels.names().len(), class.iter().copied());
    search_all(queries, cancel, |scratch, query, row| {
        let code = class[query] as usize;
        let (start, end) = (starts[code], starts[code + 1]);
        let same = List {
            k: same,
            places: [start..end, 0..0],
            allowed: &|row| row as usize != query,
        };
        let other = List {
            k: other,
            places: [0..start, end..index.n_rows()],
            allowed: &|_| true,
        };
        index.search(scratch, row, &[same, other])
    })
}

/// Runs all queries in parallel.
fn search_all<T: Send>(
    queries: &Rows,
    cancel: CancelToken<'_>,
    search: impl Fn(&mut Scratch, usize, SparseRow<'_>) -> T + Sync,
) -> Result<Vec<T>> {
    (0..queries.n_rows())
        .into_par_iter()
        .with_min_len(8)
        .map_init(Scratch::default, |scratch, query| {
            cancel.check()?;
            Ok(search(scratch, query, queries.row(query)))
        })
        .collect()
}
