//! Exact nearest neighbors under any similarity, the classes predicted from them, and their error rates.
//!
//! This is maximum inner product search: rows are ranked by similarity. Unlike with a Euclidean distance, a row need
//! not be its own nearest neighbor.
//!
//! Neighbors are ordered by decreasing score, and rows with equal scores by row number. All rows are ranked: a row
//! without a common feature with the query has score 0 and comes before every row with a negative score.
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
mod on_base;
mod order;
mod predict;
mod query;
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
use crate::parallel;
use crate::similarity::Similarity;
use index::{Index, Request, Scratch};
pub(crate) use on_base::BaseIndex;
pub(crate) use order::similar_together;
use std::borrow::Cow;
pub(crate) use top::TopK;

/// One neighbor of a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbor {
    /// Its row number among the indexed rows.
    pub row: u32,
    /// Its similarity to the query.
    pub score: f64,
}

/// An index of rows for exact nearest-neighbor search under a similarity.
///
/// The rows are mapped by [`Similarity::items`] once, when the index is built. In the worst case, a query reads all
/// stored values in the query's columns and then the score of each row. It is much faster if bounds exclude most rows.
/// Results do not depend on the number of threads.
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
    cancel: CancelToken<'s>,
}

impl<'s, S: Similarity + ?Sized> KnnIndex<'s, S> {
    /// Maps and indexes the rows to search.
    pub fn new(similarity: &'s S, rows: &Rows) -> Self {
        Self::of_items(similarity, similarity.items(rows))
    }

    /// Indexes rows that are mapped already.
    fn of_items(similarity: &'s S, items: Cow<'_, Rows>) -> Self {
        Self {
            similarity,
            index: Index::new(items, None, CancelToken::NEVER).expect("it is never cancelled"),
            cancel: CancelToken::NEVER,
        }
    }

    /// The same index, whose searches end with [`Error::Stopped`] when the token is cancelled.
    pub fn with_cancel(self, cancel: CancelToken<'s>) -> Self {
        Self { cancel, ..self }
    }

    /// The number of indexed rows.
    pub fn n_rows(&self) -> usize {
        self.index.n_rows()
    }

    /// The `k` nearest indexed rows of each query, nearest first.
    pub fn neighbors(&self, queries: &Rows, k: usize) -> Result<Vec<Vec<Neighbor>>> {
        check_k(k, self.n_rows())?;
        self.neighbors_where(queries, k, |_, _| true)
    }

    /// The `k` nearest *other* rows of each query, if the queries are the indexed rows: query `r` is indexed row `r`,
    /// and row `r` is excluded from its neighbors.
    ///
    /// The row is excluded by its number. Dropping the first neighbor would be wrong, because a row need not be its own
    /// nearest neighbor.
    pub fn neighbors_of_others(&self, queries: &Rows, k: usize) -> Result<Vec<Vec<Neighbor>>> {
        check_k(k, self.n_rows().saturating_sub(1))?;
        self.neighbors_where(queries, k, |query, row| query != row)
    }

    /// The `k` nearest rows of each query for which `allowed(query, row)` holds, or all of them if there are fewer than
    /// `k`.
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
        search_all(
            &queries,
            self.cancel,
            &|scratch: &mut Scratch, query, row| {
                let request = Request {
                    k,
                    positions: [0..self.n_rows(), 0..0],
                    allowed: &|row| allowed(query as u32, row),
                };
                self.index.search(scratch, row, &[request]).remove(0)
            },
        )
    }
}

/// Checks that there are at least `k` rows.
fn check_k(k: usize, available: usize) -> Result<()> {
    if k > available {
        return Err(Error::Data(format!(
            "there are fewer rows than neighbors to find: {available}, but k is {k}"
        )));
    }
    Ok(())
}

/// For each row, two lists: its `counts[0]` nearest rows of the same class, without the row itself, and its `counts[1]`
/// nearest rows of other classes. A list is shorter if there are fewer such rows.
pub(crate) fn class_neighbors<S: Similarity + ?Sized>(
    similarity: &S,
    rows: &Rows,
    labels: &Labels,
    counts: [usize; 2],
    cancel: CancelToken<'_>,
) -> Result<Vec<Vec<Vec<Neighbor>>>> {
    let index = Index::new(similarity.items(rows), Some(labels.codes()), cancel)?;
    class_lists(&index, &similarity.queries(rows), labels, counts, cancel)
}

/// [`class_neighbors`], given an index of rows with these labels, and mapped queries.
fn class_lists(
    index: &Index,
    queries: &Rows,
    labels: &Labels,
    [same, other]: [usize; 2],
    cancel: CancelToken<'_>,
) -> Result<Vec<Vec<Vec<Neighbor>>>> {
    let class = labels.codes();
    let starts = group_starts(labels.names().len(), class.iter().copied());
    search_all(queries, cancel, &|scratch: &mut Scratch, query, row| {
        let code = class[query] as usize;
        let (start, end) = (starts[code], starts[code + 1]);
        let same = Request {
            k: same,
            positions: [start..end, 0..0],
            allowed: &|row| row as usize != query,
        };
        let other = Request {
            k: other,
            positions: [0..start, end..index.n_rows()],
            allowed: &|_| true,
        };
        index.search(scratch, row, &[same, other])
    })
}

/// Some of all rows: the rows, the class of each, and the number of the first of them among all.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// Preprocessed rows.
    pub rows: &'a Rows,
    /// The class of each row.
    pub classes: &'a [u32],
    /// The number of the first row.
    pub first: u32,
}

/// For each row of one block, two lists of rows of another block: the `counts[0]` nearest of the same class, without the row
/// itself, and the `counts[1]` nearest of other classes. Rows are numbered among all. The lists of a block of queries for
/// all blocks, merged by [`merge_neighbors`], are those that a search among all rows gives, scores and ties included.
///
/// ```
/// use hdsl::{Dot, Rows, knn::{self, Block}};
/// let rows = Rows::from_parts(1, vec![0, 1, 2, 3], vec![0, 0, 0], vec![1.0, 2.0, 3.0])?;
/// let classes = [0, 0, 1];
/// let blocks = [(0, 2), (2, 3)].map(|(from, to)| (rows.select(&(from..to).collect::<Vec<u32>>()), from));
/// let block = |at: usize| Block { rows: &blocks[at].0, classes: &classes[blocks[at].1 as usize..], first: blocks[at].1 };
/// let near = knn::class_neighbors_between(&Dot, block(0), block(1), [1, 1])?;
/// assert!(near[1][0].is_empty());
/// assert_eq!(near[1][1][0].row, 2);
/// # Ok::<(), hdsl::Error>(())
/// ```
pub fn class_neighbors_between<S: Similarity + ?Sized>(
    similarity: &S,
    queries: Block<'_>,
    items: Block<'_>,
    [same, other]: [usize; 2],
) -> Result<Vec<Vec<Vec<Neighbor>>>> {
    for block in [queries, items] {
        if block.classes.len() < block.rows.n_rows() {
            let (n, rows) = (block.classes.len(), block.rows.n_rows());
            return Err(Error::data(format!("there are {n} labels for {rows} rows")));
        }
    }
    let of_queries = &queries.classes[..queries.rows.n_rows()];
    let of_items = &items.classes[..items.rows.n_rows()];
    let n_classes = of_queries.iter().chain(of_items).max();
    let n_classes = n_classes.map_or(0, |&most| most as usize + 1);
    let starts = group_starts(n_classes, of_items.iter().copied());
    let cancel = CancelToken::NEVER;
    let index = Index::new(similarity.items(items.rows), Some(of_items), cancel)?;
    let mapped = similarity.queries(queries.rows);
    let number = |row: u32| row + items.first;
    search_all(&mapped, cancel, &|scratch: &mut Scratch, query, row| {
        let code = of_queries[query] as usize;
        let (start, end) = (starts[code], starts[code + 1]);
        let itself = queries.first + query as u32;
        let same = Request {
            k: same,
            positions: [start..end, 0..0],
            allowed: &|row| number(row) != itself,
        };
        let other = Request {
            k: other,
            positions: [0..start, end..index.n_rows()],
            allowed: &|_| true,
        };
        let mut found = index.search(scratch, row, &[same, other]);
        for near in found.iter_mut().flatten() {
            near.row = number(near.row);
        }
        found
    })
}

/// The `k` nearest of several lists, nearest first, as one search gives them: equal scores in the order of row numbers.
pub fn merge_neighbors<'a>(
    lists: impl IntoIterator<Item = &'a [Neighbor]>,
    k: usize,
) -> Vec<Neighbor> {
    let mut top = TopK::new(k);
    for near in lists.into_iter().flatten() {
        top.push(near.row, near.score);
    }
    top.into_sorted()
}

/// Runs all queries in parallel.
fn search_all<S: Default + Send, T: Send>(
    queries: &Rows,
    cancel: CancelToken<'_>,
    search: &(dyn Fn(&mut S, usize, SparseRow<'_>) -> T + Sync),
) -> Result<Vec<T>> {
    parallel::try_map_with(queries.n_rows(), 8, |scratch, query| {
        cancel.check()?;
        Ok(search(scratch, query, queries.row(query)))
    })
}
