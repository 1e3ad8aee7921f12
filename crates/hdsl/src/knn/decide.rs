//! Classes from neighbors: the votes, and many ways to decide at the price of one search.

use super::{KnnIndex, Neighbor};
use crate::data::{Columns, Labels, Rows, SparseRow};
use crate::error::{Error, Result};
use crate::knn::{PredictionRule, Vote};
use crate::parallel::prelude::*;
use crate::similarity::Normalization;
use crate::similarity::{Dot, Similarity};

/// The class of each query, decided by labeled training rows, in terms of the names of their labels.
///
/// ```
/// use hdsl::{PredictionRule, Dot, Labels, Rows, Vote, knn};
/// let train = Rows::from_parts(1, vec![0, 1, 2, 3], vec![0, 0, 0], vec![9.0, 2.0, 1.0])?;
/// let labels = Labels::from_names(["gold", "tin", "tin"]);
/// let query = Rows::from_parts(1, vec![0, 1], vec![0], vec![1.0])?;
/// let class = |vote| -> hdsl::Result<String> {
///     let decision = PredictionRule { vote, ..PredictionRule::nearest(3) };
///     Ok(knn::classify(&Dot, &train, &labels, &query, &decision)?.name(0).to_owned())
/// };
/// assert_eq!(class(Vote::Majority)?, "tin"); // 1 vote against 2
/// assert_eq!(class(Vote::Weighted)?, "gold"); // 9 against 2 + 1
/// assert_eq!(class(Vote::ClassMean)?, "gold"); // 9 against (2 + 1) / 2
/// # Ok::<(), hdsl::Error>(())
/// ```
pub fn classify<S: Similarity + ?Sized>(
    similarity: &S,
    train: &Rows,
    labels: &Labels,
    queries: &Rows,
    rule: &PredictionRule,
) -> Result<Labels> {
    let mut all = Jury::new(train, labels, queries)?.predictions(similarity, &[*rule])?;
    Labels::from_codes(labels.names().to_vec(), all.remove(0))
}

/// Labeled rows, and rows whose class they are to decide: under many similarities, and in many ways under each.
///
/// All decisions of one form share one search for the largest k, since the nearest k of a longer list are its first k.
///
/// ```
/// use hdsl::{PredictionRule, Dot, Labels, Rows, knn::Jury};
/// let train = Rows::from_parts(1, vec![0, 1, 2, 3], vec![0, 0, 0], vec![3.0, 2.0, 1.0])?;
/// let labels = Labels::from_names(["a", "b", "b"]);
/// let query = Rows::from_parts(1, vec![0, 1], vec![0], vec![1.0])?;
/// let jury = Jury::new(&train, &labels, &query)?;
/// let codes = jury.predictions(&Dot, &[PredictionRule::nearest(1), PredictionRule::nearest(3)])?;
/// assert_eq!(codes, [[0], [1]]);
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Jury<'a> {
    train: &'a Rows,
    labels: &'a Labels,
    queries: &'a Rows,
}

impl<'a> Jury<'a> {
    /// Training rows, the class of each, and the rows to classify.
    pub fn new(train: &'a Rows, labels: &'a Labels, queries: &'a Rows) -> Result<Self> {
        if labels.len() != train.n_rows() {
            return Err(Error::Data(format!(
                "there are {} labels for {} training rows",
                labels.len(),
                train.n_rows()
            )));
        }
        Ok(Self {
            train,
            labels,
            queries,
        })
    }

    /// The class codes of the queries, for each decision.
    pub fn predictions<S: Similarity + ?Sized>(
        &self,
        similarity: &S,
        rules: &[PredictionRule],
    ) -> Result<Vec<Vec<u32>>> {
        for rule in rules {
            rule.check(self.train.n_rows())?;
        }
        let mut codes = vec![Vec::new(); rules.len()];
        if rules.is_empty() {
            return Ok(codes);
        }
        let items = similarity.items(self.train);
        let queries = similarity.queries(self.queries);
        for normalization in Normalization::ALL {
            let mine = || rules.iter().filter(|d| d.normalization == normalization);
            if mine().next().is_none() {
                continue;
            }
            // Both maps are done, so what is left of the similarity is a dot product.
            let formed = normalization.of(&Dot);
            let (items, queries) = (formed.items(&items), formed.queries(&queries));
            let near = match mine().filter(|d| d.vote.has_k()).map(|d| d.k).max() {
                Some(k) => Some(KnnIndex::new(&Dot, &items).neighbors(&queries, k)?),
                None => None,
            };
            let by_mean = match mine().any(|d| d.vote == Vote::ClassMean) {
                true => Some(ClassMeans::new(&items, self.labels)?.nearest(&queries)?),
                false => None,
            };
            for (rule, codes) in rules.iter().zip(&mut codes) {
                if rule.normalization != normalization {
                    continue;
                }
                *codes = match (rule.vote, &near, &by_mean) {
                    (Vote::ClassMean, _, Some(by_mean)) => by_mean.clone(),
                    (vote, Some(near), _) => (0..near.len())
                        .into_par_iter()
                        .with_min_len(256)
                        .map(|query| elect(vote, &near.get(query)[..rule.k], self.labels))
                        .collect(),
                    _ => unreachable!("whatever a rule needs was found"),
                };
            }
        }
        Ok(codes)
    }
}

/// What a class has of the votes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tally {
    /// The class.
    pub class: u32,
    /// Its part of the votes: neighbors, or their similarities.
    pub weight: f64,
    /// How many of the neighbors it has.
    pub count: usize,
}

/// The votes of the neighbors by class, classes in the order of their nearest member. Neighbors come nearest first,
/// as [`KnnIndex`] gives them. `class-mean` has no neighbors to ask and counts them as `majority` does.
///
/// # Panics
/// If a neighbor has no label.
pub fn tally(vote: Vote, neighbors: &[Neighbor], labels: &Labels) -> Vec<Tally> {
    let mut tally: Vec<Tally> = Vec::new();
    for neighbor in neighbors {
        let class = labels.codes()[neighbor.row as usize];
        let weight = match vote {
            Vote::Weighted => neighbor.score.max(0.0),
            _ => 1.0,
        };
        match tally.iter_mut().find(|t| t.class == class) {
            Some(entry) => {
                entry.weight += weight;
                entry.count += 1;
            }
            None => tally.push(Tally {
                class,
                weight,
                count: 1,
            }),
        }
    }
    tally
}

/// The class that the neighbors elect: the most weight, then the most neighbors, then the nearest member.
///
/// ```
/// use hdsl::{Labels, Neighbor, Vote, knn};
/// let labels = Labels::from_names(["a", "b", "c", "b"]);
/// let near = |scored: &[(u32, f64)]| -> Vec<Neighbor> {
///     scored.iter().map(|&(row, score)| Neighbor { row, score }).collect()
/// };
/// let three = near(&[(0, 5.0), (1, 2.0), (3, 2.0)]);
/// assert_eq!(knn::elect(Vote::Majority, &three, &labels), 1); // two of three
/// assert_eq!(knn::elect(Vote::Weighted, &three, &labels), 0); // 5 against 2 + 2
/// let three = near(&[(2, 0.0), (0, -1.0), (1, -1.0)]);
/// assert_eq!(knn::elect(Vote::Majority, &three, &labels), 2); // one of each: the nearest
/// assert_eq!(knn::elect(Vote::Weighted, &three, &labels), 2); // nobody has any weight: likewise
/// ```
///
/// # Panics
/// If a neighbor has no label, or there is no neighbor.
pub fn elect(vote: Vote, neighbors: &[Neighbor], labels: &Labels) -> u32 {
    tally(vote, neighbors, labels)
        .into_iter()
        // Classes stand in the order of their nearest member, so the first of equals stays.
        .reduce(|best, next| {
            let more = (next.weight, next.count) > (best.weight, best.count);
            if more { next } else { best }
        })
        .expect("a vote needs at least one neighbor")
        .class
}

/// The mean of the mapped rows of each class. A dot product with it is the mean of the dot products with the rows, so
/// that a class is decided without a score for each row.
pub struct ClassMeans {
    /// The classes that have rows.
    classes: Vec<u32>,
    within: f64,
    index: KnnIndex<'static, Dot>,
}

impl ClassMeans {
    /// From rows as [`Similarity::items`] maps them, and their labels.
    pub fn new(items: &Rows, labels: &Labels) -> Result<Self> {
        let mut members = vec![Vec::new(); labels.names().len()];
        for (row, &class) in labels.codes().iter().enumerate() {
            members[class as usize].push(row);
        }
        let classes: Vec<u32> = (0..members.len() as u32)
            .filter(|&class| !members[class as usize].is_empty())
            .collect();
        if classes.is_empty() {
            return Err(Error::data("there are no training rows to decide by"));
        }
        let columns = Columns::of(items);
        let means: Vec<(Vec<u32>, Vec<f64>)> = classes
            .par_iter()
            .map(|&class| mean(items, &members[class as usize], &columns))
            .collect();
        let mut rows = Rows::new(items.n_features());
        for (indices, values) in &means {
            rows.push(SparseRow::new(indices, values));
        }
        let squares: f64 = rows.iter().map(|mean| mean.dot(mean)).sum();
        Ok(Self {
            within: squares / classes.len() as f64,
            classes,
            index: KnnIndex::new(&Dot, &rows),
        })
    }

    /// The class of the highest mean similarity, the first of equals, for queries as [`Similarity::queries`] maps them.
    pub fn nearest(&self, queries: &Rows) -> Result<Vec<u32>> {
        let near = self.index.neighbors(queries, 1)?;
        Ok(near.iter().map(|n| self.class(&n[0])).collect())
    }

    /// The mean similarity of each query to each class that has rows: (class, mean), the highest first.
    pub fn scores(&self, queries: &Rows) -> Result<Vec<Vec<(u32, f64)>>> {
        let near = self.index.neighbors(queries, self.classes.len())?;
        let one = |list: &[Neighbor]| list.iter().map(|n| (self.class(n), n.score)).collect();
        Ok(near.iter().map(one).collect())
    }

    /// What a mean is large against: the mean squared length of the class means. Where queries are mapped as items are,
    /// this is the mean similarity of two rows of one class, over the classes.
    pub fn within(&self) -> f64 {
        self.within
    }

    fn class(&self, mean: &Neighbor) -> u32 {
        self.classes[mean.row as usize]
    }
}

/// The mean of some rows, which are summed in order.
fn mean(rows: &Rows, members: &[usize], columns: &Columns) -> (Vec<u32>, Vec<f64>) {
    let mut sums = vec![0.0; columns.len()];
    for &row in members {
        for (feature, value) in rows.row(row).iter() {
            let number = columns
                .number(feature)
                .expect("stored columns are numbered");
            sums[number as usize] += value;
        }
    }
    let n = members.len() as f64;
    sums.iter()
        .zip(columns.features())
        .filter(|(sum, _)| **sum != 0.0)
        .map(|(sum, &feature)| {
            // Sums beyond the largest number become it; infinities of both signs cancel.
            let known = if sum.is_nan() { 0.0 } else { *sum };
            (feature, known.clamp(f64::MIN, f64::MAX) / n)
        })
        .unzip()
}
