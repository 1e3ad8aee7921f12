//! Exact nearest neighbours under any similarity, the vote among them, and how often it is wrong.
//!
//! Neighbours are ordered by score, the larger first, and rows of equal score by row number. *All* rows take part:
//! one that shares nothing with the query has score 0 and comes before every row of negative score.
//!
//! ```
//! use hdsl::{Dot, Labels, Rows, knn};
//! let train = Rows::from_parts(2, vec![0, 1, 2, 4], vec![0, 1, 0, 1], vec![1.0, 1.0, 2.0, 1.0])?;
//! let labels = Labels::from_names(["fruit", "metal", "fruit"]);
//! let test = Rows::from_parts(2, vec![0, 1, 2], vec![0, 1], vec![1.0, 1.0])?;
//! let truth = Labels::from_names(["fruit", "metal"]);
//! let evaluation = knn::evaluate_similarity(&Dot, &train, &labels, &test, &truth, 1)?;
//! assert_eq!(evaluation.error, 0.0);
//! # Ok::<(), hdsl::Error>(())
//! ```

use crate::data::{ColumnLists, Columns, Labels, Rows, SparseRow};
use crate::error::{Error, Result};
use crate::model::Similarity;
use rayon::prelude::*;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

/// Up to this many neighbours are kept in order by insertion; more are selected from a full list.
const INSERTION_K: usize = 32;

/// One neighbour of a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbor {
    /// Its row number among the indexed rows.
    pub row: u32,
    /// Its similarity to the query.
    pub score: f64,
}

/// The neighbours of many queries, in one block of memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbors {
    starts: Vec<usize>,
    list: Vec<Neighbor>,
}

impl Neighbors {
    /// How many queries were asked.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The neighbours of one query, nearest first.
    ///
    /// # Panics
    /// If `query` is not below [`Neighbors::len`].
    pub fn get(&self, query: usize) -> &[Neighbor] {
        &self.list[self.starts[query]..self.starts[query + 1]]
    }

    /// The neighbours of each query in turn.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[Neighbor]> {
        (0..self.len()).map(|query| self.get(query))
    }
}

/// Rows ready to be searched: an inverted index over the columns of their mapped form.
///
/// Building costs one map of the rows; a query costs the stored values it shares columns with, and a pass over the
/// rows only when it meets most of them. Answers do not depend on the number of threads.
///
/// ```
/// use hdsl::{Dot, KnnIndex, Rows};
/// let rows = Rows::from_parts(2, vec![0, 1, 2, 3], vec![0, 1, 0], vec![1.0, 1.0, -1.0])?;
/// let index = KnnIndex::new(&Dot, &rows);
/// let near: Vec<u32> = index.neighbors(&rows, 3)?.get(0).iter().map(|n| n.row).collect();
/// assert_eq!(near, [0, 1, 2]); // scores 1, 0 and -1
/// assert!(index.neighbors(&rows, 4).is_err()); // there are only three rows
/// # Ok::<(), hdsl::Error>(())
/// ```
pub struct KnnIndex<'s, S: ?Sized> {
    similarity: &'s S,
    n_rows: usize,
    columns: Columns,
    lists: ColumnLists,
}

impl<'s, S: Similarity + ?Sized> KnnIndex<'s, S> {
    /// Maps the rows to be ranked and sorts them by column.
    pub fn new(similarity: &'s S, rows: &Rows) -> Self {
        let items = similarity.items(rows);
        let columns = Columns::of(&items);
        let lists = ColumnLists::of(&columns.compact(&items));
        Self {
            similarity,
            n_rows: rows.n_rows(),
            columns,
            lists,
        }
    }

    /// How many rows are indexed.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The `k` nearest of all indexed rows, for each query.
    pub fn neighbors(&self, queries: &Rows, k: usize) -> Result<Neighbors> {
        self.enough(k, self.n_rows)?;
        Ok(self.search(queries, k, &|_, _| true))
    }

    /// The `k` nearest for each query, where query `r` *is* indexed row `r` and is not its own neighbour.
    ///
    /// A row is left out by its number and not by its rank: under a dot product it need not come first.
    pub fn neighbors_of_others(&self, queries: &Rows, k: usize) -> Result<Neighbors> {
        self.enough(k, self.n_rows.saturating_sub(1))?;
        Ok(self.search(queries, k, &|query, row| query != row))
    }

    /// The nearest among the rows that may stand beside the query, `k` of them or as many as there are.
    ///
    /// ```
    /// use hdsl::{Dot, KnnIndex, Rows};
    /// let rows = Rows::from_parts(1, vec![0, 1, 2, 3], vec![0, 0, 0], vec![1.0, 2.0, 3.0])?;
    /// let class = [0, 1, 0];
    /// let near = KnnIndex::new(&Dot, &rows).neighbors_where(&rows, 2, |query, row| {
    ///     query != row && class[query as usize] == class[row as usize]
    /// })?;
    /// assert_eq!(near.get(0)[0].row, 2);
    /// assert!(near.get(1).is_empty()); // row 1 is alone in its class
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn neighbors_where(
        &self,
        queries: &Rows,
        k: usize,
        allowed: impl Fn(u32, u32) -> bool + Sync,
    ) -> Result<Neighbors> {
        if k == 0 {
            return Err(Error::param("k", k, "at least 1"));
        }
        Ok(self.search(queries, k, &allowed))
    }

    /// The class of each query by [`vote`] among its `k` nearest, in terms of the names of `labels`, which are the
    /// labels of the indexed rows.
    pub fn classify(&self, queries: &Rows, labels: &Labels, k: usize) -> Result<Labels> {
        if labels.len() != self.n_rows {
            return Err(Error::Data(format!(
                "there are {} labels for {} training rows",
                labels.len(),
                self.n_rows
            )));
        }
        let codes = self
            .neighbors(queries, k)?
            .iter()
            .map(|near| vote(near, labels))
            .collect();
        Labels::from_codes(labels.names().to_vec(), codes)
    }

    fn enough(&self, k: usize, available: usize) -> Result<()> {
        if k == 0 {
            return Err(Error::param("k", k, "at least 1"));
        }
        if k > available {
            return Err(Error::Data(format!(
                "fewer rows than neighbours asked for: {available} to choose from, k is {k}"
            )));
        }
        Ok(())
    }

    fn search(
        &self,
        queries: &Rows,
        k: usize,
        allowed: &(impl Fn(u32, u32) -> bool + Sync),
    ) -> Neighbors {
        let queries = self.similarity.queries(queries);
        let n = queries.n_rows();
        let block = n.div_ceil(64).clamp(8, 1024);
        let parts: Vec<(Vec<usize>, Vec<Neighbor>)> = (0..n.div_ceil(block))
            .into_par_iter()
            .map_init(
                || Scratch::new(self.n_rows, k),
                |scratch, b| {
                    let (mut lengths, mut list) = (Vec::new(), Vec::new());
                    for query in b * block..((b + 1) * block).min(n) {
                        let near = self.one(scratch, queries.row(query), |row| {
                            allowed(query as u32, row)
                        });
                        lengths.push(near.len());
                        list.extend_from_slice(near);
                    }
                    (lengths, list)
                },
            )
            .collect();
        let mut starts = Vec::with_capacity(n + 1);
        let mut list = Vec::with_capacity(parts.iter().map(|p| p.1.len()).sum());
        let mut end = 0;
        starts.push(0);
        for (lengths, part) in parts {
            for length in lengths {
                end += length;
                starts.push(end);
            }
            list.extend_from_slice(&part);
        }
        Neighbors { starts, list }
    }

    /// The nearest rows of one mapped query. Scores are summed by increasing column, as [`SparseRow::dot`] does.
    fn one<'b>(
        &self,
        scratch: &'b mut Scratch,
        query: SparseRow<'_>,
        allowed: impl Fn(u32) -> bool,
    ) -> &'b [Neighbor] {
        scratch.met.clear();
        let mut work = 0;
        for (feature, value) in query.iter() {
            if let Some(column) = self.columns.number(feature) {
                scratch.met.push((column, value));
                work += self.lists.column(column).0.len();
            }
        }
        scratch.top.clear();
        // Both ways give the same scores and the same order; the first touches only what the query meets.
        if work < self.n_rows / 8 {
            self.few(scratch, allowed);
        } else {
            self.many(scratch, allowed);
        }
        scratch.top.finish()
    }

    fn few(&self, scratch: &mut Scratch, allowed: impl Fn(u32) -> bool) {
        let Scratch {
            scores,
            marked,
            touched,
            met,
            top,
        } = scratch;
        for &(column, x) in met.iter() {
            let (rows, values) = self.lists.column(column);
            for (&row, &y) in rows.iter().zip(values) {
                if !marked[row as usize] {
                    marked[row as usize] = true;
                    touched.push(row);
                }
                scores[row as usize] += x * y;
            }
        }
        for &row in touched.iter().filter(|&&row| allowed(row)) {
            top.offer(row, scores[row as usize]);
        }
        // Untouched rows have score 0: the lowest-numbered ones come next, as long as they can still enter.
        for row in 0..self.n_rows as u32 {
            if !top.would_take(row, 0.0) {
                break;
            }
            if !marked[row as usize] && allowed(row) {
                top.offer(row, 0.0);
            }
        }
        for row in touched.drain(..) {
            scores[row as usize] = 0.0;
            marked[row as usize] = false;
        }
    }

    fn many(&self, scratch: &mut Scratch, allowed: impl Fn(u32) -> bool) {
        let Scratch {
            scores, met, top, ..
        } = scratch;
        for &(column, x) in met.iter() {
            let (rows, values) = self.lists.column(column);
            for (&row, &y) in rows.iter().zip(values) {
                scores[row as usize] += x * y;
            }
        }
        for (row, score) in scores.iter_mut().enumerate() {
            // Rows come in order, so one that only equals the last of the top cannot enter.
            if top.would_take(row as u32, *score) && allowed(row as u32) {
                top.offer(row as u32, *score);
            }
            *score = 0.0;
        }
    }
}

/// Buffers of one thread, all zero between queries.
struct Scratch {
    scores: Vec<f64>,
    marked: Vec<bool>,
    touched: Vec<u32>,
    met: Vec<(u32, f64)>,
    top: Top,
}

impl Scratch {
    fn new(n_rows: usize, k: usize) -> Self {
        Self {
            scores: vec![0.0; n_rows],
            marked: vec![false; n_rows],
            touched: Vec::new(),
            met: Vec::new(),
            top: Top {
                k,
                list: Vec::new(),
            },
        }
    }
}

/// The best `k` seen so far. For small `k` the list is always in order; otherwise it is cut down when it has
/// twice the length it needs.
struct Top {
    k: usize,
    list: Vec<Neighbor>,
}

impl Top {
    fn clear(&mut self) {
        self.list.clear();
    }

    fn sorted(&self) -> bool {
        self.k <= INSERTION_K
    }

    /// Whether a row of this score may enter. Cheap, and exact for small `k`; "maybe" counts as yes.
    #[inline]
    fn would_take(&self, row: u32, score: f64) -> bool {
        if !self.sorted() || self.list.len() < self.k {
            return true;
        }
        let last = self.list[self.k - 1];
        score > last.score || (score == last.score && row < last.row)
    }

    fn offer(&mut self, row: u32, score: f64) {
        // Not-a-number can only come from values near the limits of f64; it ranks last.
        let score = if score.is_nan() {
            f64::NEG_INFINITY
        } else {
            score
        };
        let new = Neighbor { row, score };
        if self.sorted() {
            if !self.would_take(row, score) {
                return;
            }
            let at = self.list.partition_point(|n| order(n, &new).is_lt());
            self.list.truncate(self.k - 1);
            self.list.insert(at, new);
        } else {
            self.list.push(new);
            if self.list.len() >= self.k.saturating_mul(2) {
                self.cut();
            }
        }
    }

    fn cut(&mut self) {
        if self.list.len() > self.k {
            self.list.select_nth_unstable_by(self.k - 1, order);
            self.list.truncate(self.k);
        }
    }

    fn finish(&mut self) -> &[Neighbor] {
        if !self.sorted() {
            self.cut();
            self.list.sort_unstable_by(order);
        }
        &self.list
    }
}

/// The larger score first, then the lower row.
fn order(a: &Neighbor, b: &Neighbor) -> Ordering {
    b.score
        .partial_cmp(&a.score)
        .expect("scores that are not numbers were replaced")
        .then(a.row.cmp(&b.row))
}

/// The class most of the neighbours have; if several classes tie, the one among them whose nearest member is
/// nearest. Neighbours come nearest first, as [`KnnIndex`] gives them.
///
/// ```
/// use hdsl::{Labels, knn::{self, Neighbor}};
/// let labels = Labels::from_names(["a", "b", "c", "b"]);
/// let near = |rows: &[u32]| -> Vec<Neighbor> {
///     rows.iter().map(|&row| Neighbor { row, score: 0.0 }).collect()
/// };
/// assert_eq!(knn::vote(&near(&[0, 1, 3]), &labels), 1); // two of three
/// assert_eq!(knn::vote(&near(&[2, 0, 1]), &labels), 2); // three of one each: the nearest
/// ```
///
/// # Panics
/// If a neighbour has no label, or there is no neighbour.
pub fn vote(neighbors: &[Neighbor], labels: &Labels) -> u32 {
    let mut tally: Vec<(u32, usize)> = Vec::with_capacity(neighbors.len());
    for neighbor in neighbors {
        let code = labels.codes()[neighbor.row as usize];
        match tally.iter_mut().find(|t| t.0 == code) {
            Some(entry) => entry.1 += 1,
            None => tally.push((code, 1)),
        }
    }
    // Classes stand in the order of their nearest member, so the first of the largest wins.
    let most = tally.iter().map(|t| t.1).max();
    tally
        .iter()
        .find(|t| Some(t.1) == most)
        .expect("a vote needs at least one neighbour")
        .0
}

/// How often predicted classes are wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// How many rows were judged.
    pub n_test: usize,
    /// How many of them were given a wrong class.
    pub n_wrong: usize,
    /// `n_wrong / n_test`.
    pub error: f64,
    /// The mean, over the classes that occur in the truth, of the share of each class that was given a wrong
    /// class. Large and small classes count the same.
    pub balanced_error: f64,
    /// The classes that can be predicted, then those that only occur in the truth.
    pub classes: Vec<String>,
    /// Counts of (true class, predicted class), numbers into `classes`, in increasing order and without zeros.
    pub cells: Vec<(u32, u32, usize)>,
}

impl Evaluation {
    /// How often a row of one class was given another (or the same).
    pub fn count(&self, truth: u32, predicted: u32) -> usize {
        self.cells
            .binary_search_by_key(&(truth, predicted), |c| (c.0, c.1))
            .map_or(0, |at| self.cells[at].2)
    }

    /// The whole confusion matrix: a row per true class, a column per predicted class.
    pub fn confusion(&self) -> Vec<Vec<usize>> {
        let mut matrix = vec![vec![0; self.classes.len()]; self.classes.len()];
        for &(truth, predicted, count) in &self.cells {
            matrix[truth as usize][predicted as usize] = count;
        }
        matrix
    }
}

/// Compares predicted with true classes, matched by name: a true class that cannot be predicted is always wrong.
///
/// ```
/// use hdsl::{Labels, knn};
/// let predicted = Labels::from_names(["a", "b", "b", "b"]);
/// let truth = Labels::from_names(["a", "a", "b", "new"]);
/// let evaluation = knn::evaluate(&predicted, &truth)?;
/// assert_eq!(evaluation.error, 0.5);
/// assert_eq!(evaluation.balanced_error, 0.5); // (1/2 + 0 + 1) / 3
/// assert_eq!(evaluation.classes, ["a", "b", "new"]);
/// assert_eq!(evaluation.confusion(), [[1, 1, 0], [0, 1, 0], [0, 1, 0]]);
/// # Ok::<(), hdsl::Error>(())
/// ```
pub fn evaluate(predicted: &Labels, truth: &Labels) -> Result<Evaluation> {
    if predicted.len() != truth.len() {
        return Err(Error::Data(format!(
            "{} predictions for {} labelled rows",
            predicted.len(),
            truth.len()
        )));
    }
    if truth.is_empty() {
        return Err(Error::data("there are no rows to judge"));
    }
    let mut classes = predicted.names().to_vec();
    let known: HashMap<&str, u32> = predicted
        .names()
        .iter()
        .enumerate()
        .map(|(code, name)| (name.as_str(), code as u32))
        .collect();
    let occurring = truth.counts();
    let translate: Vec<u32> = truth
        .names()
        .iter()
        .zip(&occurring)
        .map(|(name, &count)| match known.get(name.as_str()) {
            Some(&code) => code,
            None if count == 0 => u32::MAX,
            None => {
                classes.push(name.clone());
                classes.len() as u32 - 1
            }
        })
        .collect();
    let mut counts = BTreeMap::new();
    for (&right, &guess) in truth.codes().iter().zip(predicted.codes()) {
        *counts
            .entry((translate[right as usize], guess))
            .or_insert(0usize) += 1;
    }
    let cells: Vec<_> = counts.into_iter().map(|((t, p), n)| (t, p, n)).collect();
    let mut by_class: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    for &(right, guess, count) in &cells {
        let (wrong, all) = by_class.entry(right).or_default();
        *wrong += if right == guess { 0 } else { count };
        *all += count;
    }
    let n_wrong = by_class.values().map(|c| c.0).sum();
    let rates = by_class
        .values()
        .map(|&(wrong, all)| wrong as f64 / all as f64);
    Ok(Evaluation {
        n_test: truth.len(),
        n_wrong,
        error: n_wrong as f64 / truth.len() as f64,
        balanced_error: rates.sum::<f64>() / by_class.len() as f64,
        classes,
        cells,
    })
}

/// The k-NN error of a similarity in one call: classifies test rows by training rows and compares.
pub fn evaluate_similarity<S: Similarity + ?Sized>(
    similarity: &S,
    train: &Rows,
    labels: &Labels,
    test: &Rows,
    truth: &Labels,
    k: usize,
) -> Result<Evaluation> {
    let predicted = KnnIndex::new(similarity, train).classify(test, labels, k)?;
    evaluate(&predicted, truth)
}
