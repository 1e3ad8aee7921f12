//! Section 7: the nearest training rows of single test rows under both similarities, with the contributions to each score.

use crate::classes::Classes;
use crate::errors::Misclassified;
use crate::input::Input;
use crate::names::Names;
use crate::ranking::{Ranked, Rankings, voting_neighbors};
use crate::sample::thinned;
use crate::texts::Texts;
use hdsl::ranking::Judged;
use hdsl::{BilinearModel, Labels, Normalization, SparseRow};
use serde::Serialize;
use std::collections::{BTreeSet, HashMap};

/// Test rows on the page: misclassified rows first, then rows that only the dot product misclassifies, then others.
const MAX_ROWS: usize = 300;
const MAX_MISCLASSIFIED: usize = 150;
const MAX_CORRECTED: usize = 100;

/// Test rows with their neighbors.
#[derive(Serialize)]
pub(crate) struct NeighborSection {
    k: usize,
    /// Which neighbors vote, in words.
    rule: String,
    n_test: usize,
    n_train: usize,
    rows: Vec<Query>,
    /// Texts of these test rows and of their neighbors.
    texts: Option<Texts>,
}

#[derive(Serialize)]
struct Query {
    row: u32,
    class: Option<u32>,
    predicted_by_dot: Option<u32>,
    predicted_by_learned: Option<u32>,
    dot: Vec<Neighbor>,
    learned: Vec<Neighbor>,
}

/// One neighbor and the contributions to its score.
#[derive(Serialize)]
struct Neighbor {
    row: u32,
    score: f64,
    class: Option<u32>,
    /// (feature, feature, case, value). Cases: 0, both rows contain the feature; 1, the test row contains the first
    /// feature; 2, it contains the second; 3, both rows contain both.
    /// 4, both rows contain the feature, and the base adds the value.
    contributions: Vec<(u32, u32, u8, f64)>,
    /// The number of contributions that are not listed, and their sum.
    rest: (usize, f64),
    /// The gain of the document, if test rows are queries with judgments and this one is judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    gain: Option<f64>,
    /// If the model has a base: how it differs from the base alone.
    #[serde(flatten)]
    change: Option<Change>,
}

/// What learning on top of a base changed for one neighbor.
#[derive(Serialize)]
struct Change {
    /// The part of the score that comes from the base.
    base_score: f64,
    /// Whether the other similarity does not have this neighbor in its list.
    only_here: bool,
}

/// The value that a pair of features adds to the score of two rows; a feature with itself for the dot product and the base.
struct Contribution {
    features: (u32, u32),
    value: f64,
    of_base: bool,
}

impl Contribution {
    fn new((i, j): (u32, u32), value: f64, of_base: bool) -> Self {
        let features = (i, j);
        Self {
            features,
            value,
            of_base,
        }
    }
}

/// The classes of all rows, as far as they are known.
struct RowClasses {
    train: Option<Vec<u32>>,
    test: Option<Vec<u32>>,
    predicted_by_dot: Option<Vec<u32>>,
    predicted_by_learned: Option<Vec<u32>>,
}

impl RowClasses {
    fn of(input: &Input<'_>, rankings: &Rankings, classes: &Classes) -> Self {
        let codes = |labels: Option<&Labels>| labels.map(|labels| classes.codes(labels));
        Self {
            train: codes(input.train.and_then(|part| part.labels)),
            test: codes(input.test.and_then(|part| part.labels)),
            predicted_by_dot: codes(rankings.dot.predicted.as_ref()),
            predicted_by_learned: codes(rankings.learned.predicted.as_ref()),
        }
    }

    /// Test rows that the dot product misclassifies and the learned similarity does not.
    fn corrected(&self) -> Vec<u32> {
        let (Some(class), Some(dot), Some(learned)) = (
            &self.test,
            &self.predicted_by_dot,
            &self.predicted_by_learned,
        ) else {
            return Vec::new();
        };
        (0..class.len() as u32)
            .filter(|&row| {
                let at = row as usize;
                class[at] != dot[at] && class[at] == learned[at]
            })
            .collect()
    }
}

impl NeighborSection {
    pub(crate) fn of(
        input: &Input<'_>,
        rankings: &Rankings,
        misclassified: &[Misclassified],
        classes: &Classes,
        names: &mut Names<'_, '_>,
    ) -> Self {
        let n_test = rankings.learned.test.n_rows();
        let classes = RowClasses::of(input, rankings, classes);
        let is_cosine = rankings.rule.normalization == Normalization::Cosine;
        // Contributions add up to the score before normalization.
        let explain =
            |similarity: &BilinearModel, query: SparseRow<'_>, item: SparseRow<'_>, score: f64| {
                let score = match is_cosine {
                    true => similarity.score(query, item),
                    false => score,
                };
                (score, contributions(similarity, query, item))
            };
        let explain_learned = |query: SparseRow<'_>, item: SparseRow<'_>, score: f64| {
            explain(input.model.similarity(), query, item, score)
        };
        let explain_dot =
            |query: SparseRow<'_>, item: SparseRow<'_>, score: f64| match &rankings.base {
                Some(base) => explain(base, query, item, score),
                None => (score, dot_contributions(query, item)),
            };
        let train_classes = classes.train.as_deref();
        let judged = input.judged_test_rows().map(|judged| &judged.judged);
        let judged: HashMap<u32, &Judged> = judged
            .into_iter()
            .flatten()
            .map(|of| (of.0, &of.1))
            .collect();
        let with_gains = |row: u32, mut neighbors: Vec<Neighbor>| {
            for neighbor in &mut neighbors {
                neighbor.gain = judged.get(&row).and_then(|of| of.gain(neighbor.row));
            }
            neighbors
        };
        let rows: Vec<Query> = selected_rows(n_test, misclassified, &classes.corrected())
            .into_iter()
            .map(|row| {
                let of_row = |codes: &Option<Vec<u32>>| codes.as_ref().map(|c| c[row as usize]);
                Query {
                    row,
                    class: of_row(&classes.test),
                    predicted_by_dot: of_row(&classes.predicted_by_dot),
                    predicted_by_learned: of_row(&classes.predicted_by_learned),
                    dot: with_gains(
                        row,
                        neighbors(
                            [&rankings.dot, &rankings.learned],
                            row,
                            train_classes,
                            rankings.base.as_ref(),
                            explain_dot,
                            names,
                        ),
                    ),
                    learned: with_gains(
                        row,
                        neighbors(
                            [&rankings.learned, &rankings.dot],
                            row,
                            train_classes,
                            rankings.base.as_ref(),
                            explain_learned,
                            names,
                        ),
                    ),
                }
            })
            .collect();
        Self {
            k: rankings.rule.k,
            rule: voting_neighbors(rankings.rule, train_classes.is_some()),
            n_test,
            n_train: rankings.learned.train.n_rows(),
            texts: texts(input, &rows),
            rows,
        }
    }
}

/// The test rows on the page, in increasing order.
fn selected_rows(n_test: usize, misclassified: &[Misclassified], corrected: &[u32]) -> Vec<u32> {
    let first = misclassified.iter().take(MAX_MISCLASSIFIED);
    let mut selected: BTreeSet<u32> = first.map(|m| m.row).collect();
    selected.extend(thinned(corrected, MAX_CORRECTED));
    let others: Vec<u32> = (0..n_test as u32)
        .filter(|row| !selected.contains(row))
        .collect();
    selected.extend(thinned(&others, MAX_ROWS.saturating_sub(selected.len())));
    selected.into_iter().collect()
}

/// Contributions listed per neighbor; the others are summed up.
const MAX_CONTRIBUTIONS: usize = 8;

/// The neighbors of a test row in the first of two rankings. `explain` turns a query, a neighbor and the score that ranked it into the score to show
/// and its contributions, the largest first.
fn neighbors(
    [ranked, other]: [&Ranked; 2],
    row: u32,
    train_classes: Option<&[u32]>,
    base: Option<&BilinearModel>,
    explain: impl Fn(SparseRow<'_>, SparseRow<'_>, f64) -> (f64, Vec<Contribution>),
    names: &mut Names<'_, '_>,
) -> Vec<Neighbor> {
    let query = ranked.test.row(row as usize);
    let found = ranked.neighbors[row as usize].iter();
    found
        .map(|n| {
            let item = ranked.train.row(n.row as usize);
            let (score, all) = explain(query, item, n.score);
            let (listed, rest) = all.split_at(all.len().min(MAX_CONTRIBUTIONS));
            let contributions = listed.iter().map(|c| {
                let (i, j) = c.features;
                let case = if c.of_base {
                    4
                } else {
                    case(query, item, i, j)
                };
                (names.id(i), names.id(j), case, c.value)
            });
            let others = &other.neighbors[row as usize];
            let change = base.map(|base| Change {
                base_score: base.score(query, item),
                only_here: others.iter().all(|other| other.row != n.row),
            });
            Neighbor {
                row: n.row,
                score,
                class: train_classes.map(|classes| classes[n.row as usize]),
                contributions: contributions.collect(),
                rest: (rest.len(), rest.iter().map(|c| c.value).sum()),
                gain: None,
                change,
            }
        })
        .collect()
}

/// Which row contains which feature: see [`Neighbor::contributions`].
fn case(query: SparseRow<'_>, item: SparseRow<'_>, i: u32, j: u32) -> u8 {
    let i_in_query = query.get(i) * item.get(j) != 0.0;
    let j_in_query = query.get(j) * item.get(i) != 0.0;
    match (i == j, i_in_query, j_in_query) {
        (true, _, _) => 0,
        (_, true, true) => 3,
        (_, false, true) => 2,
        _ => 1,
    }
}

/// The contributions to a dot product, the largest first, then by feature.
fn dot_contributions(a: SparseRow<'_>, b: SparseRow<'_>) -> Vec<Contribution> {
    let product = |(f, value)| Contribution::new((f, f), value * b.get(f), false);
    let mut list: Vec<Contribution> = a.iter().map(product).filter(|c| c.value != 0.0).collect();
    list.sort_by(|p, q| q.value.abs().total_cmp(&p.value.abs()));
    list
}

/// The contributions to a similarity, those of its base included, the largest first.
fn contributions(
    similarity: &BilinearModel,
    a: SparseRow<'_>,
    b: SparseRow<'_>,
) -> Vec<Contribution> {
    let why = similarity.explain_pair(a, b);
    let base = why.base.iter();
    let base = base.map(|c| Contribution::new((c.feature, c.feature), c.value, true));
    let pairs = why.pairs.iter();
    let pairs = pairs.map(|p| Contribution::new((p.i, p.j), p.value, false));
    let mut list: Vec<Contribution> = base.chain(pairs).collect();
    list.sort_by(|p, q| q.value.abs().total_cmp(&p.value.abs()));
    list
}

/// The texts of the rows and of their neighbors, if there are any texts.
fn texts(input: &Input<'_>, rows: &[Query]) -> Option<Texts> {
    let (train, test) = (input.train?.texts, input.test?.texts);
    if train.is_none() && test.is_none() {
        return None;
    }
    let queries = rows.iter().map(|q| q.row).collect();
    let neighbors = rows.iter().flat_map(|q| q.dot.iter().chain(&q.learned));
    let neighbors = neighbors.map(|n| n.row).collect();
    Some(Texts::of((&queries, test), (&neighbors, train)))
}
