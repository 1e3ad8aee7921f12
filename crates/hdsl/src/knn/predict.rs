//! Class predictions from labeled rows, by many prediction rules at the price of one search.

use super::on_base::{BaseIndex, OnBase};
use super::{KnnIndex, Neighbor, PredictionRule, TopK, Vote};
use crate::cancel::CancelToken;
use crate::data::{Columns, Groups, Labels, Rows, SparseRow};
use crate::error::{Error, Result};
use crate::parallel;
use crate::similarity::{BilinearModel, Dot, Normalization, Similarity};
use std::borrow::Cow;

/// The predicted class of each query, in terms of the names of the training rows' labels.
///
/// ```
/// use hdsl::{PredictionRule, Dot, Labels, Rows, Vote, knn};
/// let train = Rows::from_parts(1, vec![0, 1, 2, 3], vec![0, 0, 0], vec![9.0, 2.0, 1.0])?;
/// let labels = Labels::from_names(["gold", "tin", "tin"]);
/// let query = Rows::from_parts(1, vec![0, 1], vec![0], vec![1.0])?;
/// let class = |vote| -> hdsl::Result<String> {
///     let rule = PredictionRule { vote, ..PredictionRule::nearest(3) };
///     Ok(knn::classify(&Dot, &train, &labels, &query, &rule)?.name(0).to_owned())
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
    let mut all = Predictor::new(train, labels, queries)?.predictions(similarity, &[*rule])?;
    Labels::from_codes(labels.names().to_vec(), all.remove(0))
}

/// Predicts the classes of queries from labeled rows, under many similarities and by many rules under each.
///
/// All rules of one normalization share one search for the largest k, since the nearest k of a longer list are its
/// first k.
///
/// ```
/// use hdsl::{PredictionRule, Dot, Labels, Rows, knn::Predictor};
/// let train = Rows::from_parts(1, vec![0, 1, 2, 3], vec![0, 0, 0], vec![3.0, 2.0, 1.0])?;
/// let labels = Labels::from_names(["a", "b", "b"]);
/// let query = Rows::from_parts(1, vec![0, 1], vec![0], vec![1.0])?;
/// let predictor = Predictor::new(&train, &labels, &query)?;
/// let codes = predictor.predictions(&Dot, &[PredictionRule::nearest(1), PredictionRule::nearest(3)])?;
/// assert_eq!(codes, [[0], [1]]);
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Predictor<'a> {
    train: &'a Rows,
    labels: &'a Labels,
    queries: &'a Rows,
    cancel: CancelToken<'a>,
}

impl<'a> Predictor<'a> {
    /// From training rows, the class of each, and the rows to classify.
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
            cancel: CancelToken::NEVER,
        })
    }

    /// The same predictor, which ends with [`Error::Stopped`] when the token is cancelled.
    pub fn with_cancel(self, cancel: CancelToken<'a>) -> Self {
        Self { cancel, ..self }
    }

    /// The class codes of the queries, for each rule.
    pub fn predictions<S: Similarity + ?Sized>(
        &self,
        similarity: &S,
        rules: &[PredictionRule],
    ) -> Result<Vec<Vec<u32>>> {
        for rule in rules {
            rule.check(self.train.n_rows())?;
        }
        let mut codes = vec![Vec::new(); rules.len()];
        let items = similarity.items(self.train);
        let queries = similarity.queries(self.queries);
        let (cosine, dot): (Vec<_>, Vec<_>) = rules
            .iter()
            .zip(&mut codes)
            .partition(|(rule, _)| rule.normalization == Normalization::Cosine);
        if !dot.is_empty() {
            self.predict(Cow::Borrowed(&*items), &queries, dot)?;
        }
        if !cosine.is_empty() {
            let [items, queries] = [items, queries].map(|rows| Normalization::Cosine.apply(rows));
            self.predict(items, &queries, cosine)?;
        }
        Ok(codes)
    }

    /// [`Predictor::predictions`] under a similarity with a base, given an index of the training rows and queries.
    pub(crate) fn predictions_on_base(
        &self,
        index: &BaseIndex,
        similarity: &BilinearModel,
        rules: &[PredictionRule],
    ) -> Result<Vec<Vec<u32>>> {
        let Some(items) = OnBase::new(index, self.train, similarity) else {
            return self.predictions(similarity, rules);
        };
        for rule in rules {
            rule.check(self.train.n_rows())?;
        }
        let queries = similarity.queries(self.queries);
        let unit_queries = Normalization::Cosine.apply(Cow::Borrowed(&*queries));
        let queries = [&*queries, &*unit_queries];
        let place =
            |rule: &PredictionRule| usize::from(rule.normalization == Normalization::Cosine);
        let mut k = [0; 2];
        for rule in rules.iter().filter(|rule| rule.vote.has_k()) {
            k[place(rule)] = k[place(rule)].max(rule.k);
        }
        let near = items.neighbors(queries, k, self.cancel)?;
        let predicted = |rule: &PredictionRule| {
            let at = place(rule);
            if rule.vote.has_k() {
                return Ok(self.votes(rule, |query| &near[query][at]));
            }
            let values = |row| items.normalized(row, at == 1);
            let (n, labels) = (items.n_columns(), self.labels);
            ClassMeans::of_values(n, labels, n, values, |column| column as u32)?
                .nearest(queries[at])
        };
        rules.iter().map(predicted).collect()
    }

    /// The classes that the neighbors of each query vote for.
    fn votes<'n>(
        &self,
        rule: &PredictionRule,
        near: impl Fn(usize) -> &'n [Neighbor] + Sync,
    ) -> Vec<u32> {
        parallel::map_blocks(self.queries.n_rows(), 256, |query| {
            predict_class(rule.vote, &near(query)[..rule.k], self.labels)
        })
    }

    /// The class codes by rules of one normalization. All maps are done, so what is left of the similarity is a dot product.
    fn predict(
        &self,
        items: Cow<'_, Rows>,
        queries: &Rows,
        rules: Vec<(&PredictionRule, &mut Vec<u32>)>,
    ) -> Result<()> {
        let (by_neighbors, by_means): (Vec<_>, Vec<_>) =
            rules.into_iter().partition(|(rule, _)| rule.vote.has_k());
        for (_, codes) in by_means {
            *codes = ClassMeans::new(&items, self.labels)?.nearest(queries)?;
        }
        let Some(k) = by_neighbors.iter().map(|(rule, _)| rule.k).max() else {
            return Ok(());
        };
        let index = KnnIndex::of_items(&Dot, items).with_cancel(self.cancel);
        let near = index.neighbors(queries, k)?;
        for (rule, codes) in by_neighbors {
            *codes = self.votes(rule, |query| &near[query]);
        }
        Ok(())
    }
}

/// The votes for a class.
struct ClassVotes {
    class: u32,
    /// The sum of the weights of its neighbors.
    weight: f64,
    /// How many neighbors are of the class.
    count: usize,
}

/// The class with the most votes: the most weight, then the most neighbors, then the nearest member. Neighbors come
/// nearest first, as [`KnnIndex`] gives them.
///
/// ```
/// use hdsl::{Labels, Neighbor, Vote, knn};
/// let labels = Labels::from_names(["a", "b", "c", "b"]);
/// let near = |scored: &[(u32, f64)]| -> Vec<Neighbor> {
///     scored.iter().map(|&(row, score)| Neighbor { row, score }).collect()
/// };
/// let three = near(&[(0, 5.0), (1, 2.0), (3, 2.0)]);
/// assert_eq!(knn::predict_class(Vote::Majority, &three, &labels), 1); // two of three
/// assert_eq!(knn::predict_class(Vote::Weighted, &three, &labels), 0); // 5 against 2 + 2
/// let three = near(&[(2, 0.0), (0, -1.0), (1, -1.0)]);
/// assert_eq!(knn::predict_class(Vote::Majority, &three, &labels), 2); // one of each: the nearest
/// assert_eq!(knn::predict_class(Vote::Weighted, &three, &labels), 2); // no weights above 0: likewise
/// ```
///
/// # Panics
/// If a neighbor has no label, or there is no neighbor.
pub fn predict_class(vote: Vote, neighbors: &[Neighbor], labels: &Labels) -> u32 {
    let mut classes: Vec<ClassVotes> = Vec::new();
    for neighbor in neighbors {
        let class = labels.codes()[neighbor.row as usize];
        let weight = vote.weight(neighbor.score, neighbors[0].score);
        match classes.iter_mut().find(|votes| votes.class == class) {
            Some(votes) => {
                votes.weight += weight;
                votes.count += 1;
            }
            None => classes.push(ClassVotes {
                class,
                weight,
                count: 1,
            }),
        }
    }
    classes
        .into_iter()
        // Classes are in the order of their nearest member, so the first of equals stays.
        .reduce(|best, next| {
            let more = (next.weight, next.count) > (best.weight, best.count);
            if more { next } else { best }
        })
        .expect("a vote needs at least one neighbor")
        .class
}

/// The mean of the mapped rows of each class. Its dot product with a query is the mean of the dot products with the
/// rows, so that a class is predicted without a score for each row.
pub struct ClassMeans {
    /// The classes that have rows.
    classes: Vec<u32>,
    within: f64,
    /// The features in which a mean is not 0.
    columns: Columns,
    /// For each of them, the classes, as places in `classes`, and their means.
    means: Groups<(u32, f64)>,
}

impl ClassMeans {
    /// From rows as [`Similarity::items`] maps them, and their labels.
    pub fn new(items: &Rows, labels: &Labels) -> Result<Self> {
        let columns = Columns::of(items);
        let number = |feature| {
            columns
                .number(feature)
                .expect("stored columns are numbered")
        };
        let values = |row| (items.row(row).iter()).map(|(feature, y)| (number(feature), y));
        let feature = |column: usize| columns.features()[column];
        Self::of_values(items.n_features(), labels, columns.len(), values, feature)
    }

    /// The same, given the values of each row by the numbers of their columns, and the feature of each column.
    fn of_values<I: Iterator<Item = (u32, f64)>>(
        n_features: usize,
        labels: &Labels,
        n_columns: usize,
        values: impl Fn(usize) -> I + Sync,
        feature: impl Fn(usize) -> u32 + Sync,
    ) -> Result<Self> {
        let n_classes = labels.names().len();
        let members = Groups::new(n_classes, labels.codes().iter().copied().zip(0u32..));
        let mut classes: Vec<u32> = (0..n_classes as u32).collect();
        classes.retain(|&class| !members.of(class as usize).is_empty());
        if classes.is_empty() {
            return Err(Error::data("there are no training rows to predict from"));
        }
        let means: Vec<(Vec<u32>, Vec<f64>)> = parallel::map(classes.len(), |at| {
            mean(
                members.of(classes[at] as usize),
                n_columns,
                &values,
                &feature,
            )
        });
        let rows = means.iter().map(|mean| SparseRow::new(&mean.0, &mean.1));
        let squares: f64 = rows.clone().map(|mean| mean.dot(mean)).sum();
        let features = rows.clone().flat_map(|mean| mean.indices()).copied();
        let columns = Columns::from_features(n_features, features.collect());
        let number = |feature| columns.number(feature).expect("all features are numbered");
        let entries = (0u32..).zip(rows).flat_map(|(place, mean)| {
            let values = mean.indices().iter().zip(mean.values());
            values.map(move |(&feature, &y)| (feature, (place, y)))
        });
        let entries = entries.map(|(feature, entry)| (number(feature), entry));
        Ok(Self {
            within: squares / classes.len() as f64,
            means: Groups::new(columns.len(), entries),
            columns,
            classes,
        })
    }

    /// The class of the highest mean similarity, the first of equals, for queries as [`Similarity::queries`] maps them.
    pub fn nearest(&self, queries: &Rows) -> Result<Vec<u32>> {
        let class = |near: Vec<Neighbor>| self.class(&near[0]);
        Ok(self.ranked(queries, 1, class))
    }

    /// The mean similarity of each query to each class that has rows: (class, mean), the highest first.
    pub fn scores(&self, queries: &Rows) -> Result<Vec<Vec<(u32, f64)>>> {
        let one = |near: Vec<Neighbor>| near.iter().map(|n| (self.class(n), n.score)).collect();
        Ok(self.ranked(queries, self.classes.len(), one))
    }

    /// The `k` classes of the highest mean similarity to each query.
    fn ranked<T: Send>(
        &self,
        queries: &Rows,
        k: usize,
        of: impl Fn(Vec<Neighbor>) -> T + Sync,
    ) -> Vec<T> {
        let rank = |query| {
            let mut top = TopK::new(k);
            let scores = (0..).zip(self.products(queries.row(query)));
            scores.for_each(|(place, score)| top.push(place, score));
            of(top.into_sorted())
        };
        parallel::map_blocks(queries.n_rows(), 64, rank)
    }

    /// The dot product of a query with the mean of each class, summed by increasing column.
    fn products(&self, query: SparseRow<'_>) -> Vec<f64> {
        let mut sums = vec![0.0; self.classes.len()];
        for (feature, x) in query.iter() {
            let column = self.columns.number(feature);
            for &(place, y) in column.map_or(&[][..], |column| self.means.of(column as usize)) {
                sums[place as usize] += x * y;
            }
        }
        sums
    }

    /// The mean squared norm of the class means, which is the scale of their scores. Where queries are mapped as items
    /// are, this is the mean similarity of two rows of one class, averaged over the classes.
    pub fn within(&self) -> f64 {
        self.within
    }

    fn class(&self, mean: &Neighbor) -> u32 {
        self.classes[mean.row as usize]
    }
}

/// The mean of some rows, which are summed in order.
fn mean<I: Iterator<Item = (u32, f64)>>(
    members: &[u32],
    n_columns: usize,
    values: impl Fn(usize) -> I,
    feature: impl Fn(usize) -> u32,
) -> (Vec<u32>, Vec<f64>) {
    let mut sums = vec![0.0; n_columns];
    for &row in members {
        values(row as usize).for_each(|(column, value)| sums[column as usize] += value);
    }
    let n = members.len() as f64;
    sums.iter()
        .enumerate()
        .filter(|(_, sum)| **sum != 0.0)
        .map(|(column, sum)| {
            // Sums beyond the largest number become it; infinities of both signs cancel.
            let known = if sum.is_nan() { 0.0 } else { *sum };
            (feature(column), known.clamp(f64::MIN, f64::MAX) / n)
        })
        .unzip()
}
