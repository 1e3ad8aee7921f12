//! Exact nearest neighbors under any similarity, the classes they decide, and how often these are wrong.
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

mod decide;
mod engine;
mod order;
mod rule;
mod single;
#[cfg(test)]
mod tests;
mod top;
mod tree;

use crate::cancel::CancelToken;
use crate::data::{Labels, Rows, SparseRow};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::similarity::Similarity;
pub use decide::{ClassMeans, Jury, Tally, classify, elect, tally};
use engine::{Engine, Scratch, Tuning, Wanted};
pub use rule::{PredictionRule, Vote};
use std::collections::{BTreeMap, HashMap};

/// One neighbor of a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbor {
    /// Its row number among the indexed rows.
    pub row: u32,
    /// Its similarity to the query.
    pub score: f64,
}

/// The neighbors of many queries, in one block of memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbors {
    starts: Vec<usize>,
    list: Vec<Neighbor>,
}

impl Neighbors {
    fn new() -> Self {
        Self {
            starts: vec![0],
            list: Vec::new(),
        }
    }

    fn push(&mut self, near: &[Neighbor]) {
        self.list.extend_from_slice(near);
        self.starts.push(self.list.len());
    }

    /// How many queries were asked.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The neighbors of one query, nearest first.
    ///
    /// # Panics
    /// If `query` is not below [`Neighbors::len`].
    pub fn get(&self, query: usize) -> &[Neighbor] {
        &self.list[self.starts[query]..self.starts[query + 1]]
    }

    /// The neighbors of each query in turn.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[Neighbor]> {
        (0..self.len()).map(|query| self.get(query))
    }
}

/// Rows ready to be searched: an inverted index over the columns of their mapped form.
///
/// Building costs one map of the rows. A query costs at most the stored values it shares columns with and a pass over
/// the rows, and much less where bounds settle early who cannot be near. Answers are exact all the same, and do not
/// depend on the number of threads.
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
    engine: Engine,
}

impl<'s, S: Similarity + ?Sized> KnnIndex<'s, S> {
    /// Maps the rows to be ranked and sorts them by column.
    pub fn new(similarity: &'s S, rows: &Rows) -> Self {
        Self {
            similarity,
            engine: Engine::new(&similarity.items(rows), None, Tuning::default()),
        }
    }

    /// How many rows are indexed.
    pub fn n_rows(&self) -> usize {
        self.engine.n_rows()
    }

    /// The `k` nearest of all indexed rows, for each query.
    pub fn neighbors(&self, queries: &Rows, k: usize) -> Result<Neighbors> {
        self.enough(k, self.n_rows())?;
        Ok(self.search(queries, k, &|_, _| true))
    }

    /// The `k` nearest for each query, where query `r` *is* indexed row `r` and is not its own neighbor.
    ///
    /// A row is left out by its number and not by its rank: under a dot product it need not come first.
    pub fn neighbors_of_others(&self, queries: &Rows, k: usize) -> Result<Neighbors> {
        self.enough(k, self.n_rows().saturating_sub(1))?;
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

    fn enough(&self, k: usize, available: usize) -> Result<()> {
        if k == 0 {
            return Err(Error::param("k", k, "at least 1"));
        }
        if k > available {
            return Err(Error::Data(format!(
                "fewer rows than neighbors asked for: {available} to choose from, k is {k}"
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
        let found = search_all(
            &self.engine,
            &queries,
            CancelToken::NEVER,
            |scratch, query, row| {
                let wanted = Wanted {
                    k,
                    places: [0..self.engine.n_rows(), 0..0],
                    allowed: &|row| allowed(query as u32, row),
                };
                self.engine.search(scratch, row, &[wanted]);
            },
        );
        let [near] = found.expect("nobody stops this");
        near
    }
}

/// Runs all queries in parallel blocks and puts their lists together in order, unless somebody wants to stop first.
fn search_all<const LISTS: usize>(
    engine: &Engine,
    queries: &Rows,
    cancel: CancelToken<'_>,
    one: impl Fn(&mut Scratch, usize, SparseRow<'_>) + Sync,
) -> Result<[Neighbors; LISTS]> {
    let n = queries.n_rows();
    let block = n.div_ceil(64).clamp(8, 1024);
    let parts: Vec<[Neighbors; LISTS]> = (0..n.div_ceil(block))
        .into_par_iter()
        .map_init(
            || engine.scratch(),
            |scratch, b| {
                let mut part = std::array::from_fn(|_| Neighbors::new());
                for query in b * block..((b + 1) * block).min(n) {
                    cancel.check()?;
                    one(scratch, query, queries.row(query));
                    for (part, top) in part.iter_mut().zip(&mut scratch.tops) {
                        part.push(top.finish());
                    }
                }
                Ok(part)
            },
        )
        .collect::<Result<_>>()?;
    Ok(std::array::from_fn(|which| {
        let mut all = Neighbors::new();
        for part in &parts {
            part[which].iter().for_each(|list| all.push(list));
        }
        all
    }))
}

/// Each row's nearest of its own class and its nearest of the others, see [`class_neighbors`].
#[derive(Clone, Debug, PartialEq)]
pub struct ClassNeighbors {
    /// The nearest rows of the same class, the row itself left out.
    pub same: Neighbors,
    /// The nearest rows of other classes.
    pub other: Neighbors,
}

/// The nearest rows of the same class (`same` of them) and of other classes (`other` of them), for each row; or as
/// many as there are. Both lists come from one pass, so this costs half of two searches with
/// [`KnnIndex::neighbors_where`]. A row is left out of its own neighbors by number.
///
/// ```
/// use hdsl::{Dot, Labels, Rows, knn};
/// let rows = Rows::from_parts(1, vec![0, 1, 2, 3], vec![0, 0, 0], vec![1.0, 2.0, 3.0])?;
/// let near = knn::class_neighbors(&Dot, &rows, &Labels::from_names(["a", "b", "a"]), 1, 1)?;
/// assert_eq!(near.same.get(0)[0].row, 2);
/// assert_eq!(near.other.get(0)[0].row, 1);
/// assert!(near.same.get(1).is_empty()); // row 1 is alone in its class
/// # Ok::<(), hdsl::Error>(())
/// ```
pub fn class_neighbors<S: Similarity + ?Sized>(
    similarity: &S,
    rows: &Rows,
    labels: &Labels,
    same: usize,
    other: usize,
) -> Result<ClassNeighbors> {
    class_neighbors_until(similarity, rows, labels, (same, other), CancelToken::NEVER)
}

/// [`class_neighbors`] unless somebody wants to stop first.
pub fn class_neighbors_until<S: Similarity + ?Sized>(
    similarity: &S,
    rows: &Rows,
    labels: &Labels,
    wanted: (usize, usize),
    cancel: CancelToken<'_>,
) -> Result<ClassNeighbors> {
    class_neighbors_tuned(similarity, rows, labels, wanted, Tuning::default(), cancel)
}

fn class_neighbors_tuned<S: Similarity + ?Sized>(
    similarity: &S,
    rows: &Rows,
    labels: &Labels,
    (same, other): (usize, usize),
    tuning: Tuning,
    cancel: CancelToken<'_>,
) -> Result<ClassNeighbors> {
    if labels.len() != rows.n_rows() {
        return Err(Error::Data(format!(
            "there are {} labels for {} rows",
            labels.len(),
            rows.n_rows()
        )));
    }
    for k in [same, other] {
        if k == 0 {
            return Err(Error::param("k", k, "at least 1"));
        }
    }
    let n = rows.n_rows();
    let class = labels.codes();
    let mut ends = vec![0];
    ends.extend(labels.counts().iter().scan(0, |end, count| {
        *end += count;
        Some(*end)
    }));
    let engine = Engine::new_until(&similarity.items(rows), Some(class), tuning, cancel)?;
    let queries = similarity.queries(rows);
    let [same, other] = search_all(&engine, &queries, cancel, |scratch, query, row| {
        let code = class[query] as usize;
        let mine = ends[code]..ends[code + 1];
        let wanted = [
            Wanted {
                k: same,
                places: [mine.clone(), 0..0],
                allowed: &|row| row as usize != query,
            },
            Wanted {
                k: other,
                places: [0..mine.start, mine.end..n],
                allowed: &|_| true,
            },
        ];
        engine.search(scratch, row, &wanted);
    })?;
    Ok(ClassNeighbors { same, other })
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
            "{} predictions for {} labeled rows",
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

/// The error of a similarity in one call: classifies test rows by training rows and compares.
pub fn evaluate_similarity<S: Similarity + ?Sized>(
    similarity: &S,
    train: &Rows,
    labels: &Labels,
    test: &Rows,
    truth: &Labels,
    rule: &PredictionRule,
) -> Result<Evaluation> {
    let predicted = classify(similarity, train, labels, test, rule)?;
    evaluate(&predicted, truth)
}
