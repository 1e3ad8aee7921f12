//! Section 8: confusion matrices, precision and recall per class, and the misclassified test rows.

use crate::classes::Classes;
use crate::input::Input;
use crate::ranking::Rankings;
use hdsl::knn::Evaluation;
use hdsl::{KnnIndex, Neighbor, Result};
use serde::Serialize;
use std::collections::BTreeMap;

/// Misclassified rows in the table.
const MAX_LISTED: usize = 100;

/// The section.
#[derive(Serialize)]
pub(crate) struct ErrorSection {
    learned: Confusion,
    dot: Confusion,
    /// Other similarities without learning.
    references: Vec<OfReference>,
    misclassified: Vec<Misclassified>,
    n_misclassified: usize,
    k: usize,
    /// If the model has a base: how many errors of the base alone the learned part corrects, and how many it adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<(usize, usize)>,
}

/// The error and the confusion matrix of one similarity.
#[derive(Serialize)]
struct Confusion {
    error: f64,
    balanced_error: f64,
    n_wrong: usize,
    n_test: usize,
    /// (true class, predicted class, number of test rows).
    cells: Vec<(u32, u32, usize)>,
    /// Every class that test rows have or that is predicted.
    classes: Vec<OfClass>,
    /// The mean F1 of these classes.
    macro_f1: f64,
}

/// The errors of a similarity without learning.
#[derive(Serialize)]
struct OfReference {
    name: &'static str,
    error: f64,
    balanced_error: f64,
    macro_f1: f64,
    n_wrong: usize,
}

impl OfReference {
    fn of(name: &'static str, evaluation: &Evaluation) -> Self {
        Self {
            name,
            error: evaluation.error,
            balanced_error: evaluation.balanced_error,
            macro_f1: macro_f1(&by_class(&evaluation.cells)),
            n_wrong: evaluation.n_wrong,
        }
    }
}

/// How well one class is predicted.
#[derive(Serialize, Clone, Copy, Debug, PartialEq)]
struct OfClass {
    class: u32,
    /// Test rows of the class, rows predicted to be of it, and rows that are both.
    n_true: usize,
    n_predicted: usize,
    n_right: usize,
    /// The share of right ones among the predicted rows; none if there are none.
    precision: Option<f64>,
    /// The share of right ones among the rows of the class; none if there are none.
    recall: Option<f64>,
    /// The harmonic mean of both: 2 n_right / (n_true + n_predicted).
    f1: f64,
}

/// Precision, recall and F1 of each class in the cells of a confusion matrix.
fn by_class(cells: &[(u32, u32, usize)]) -> Vec<OfClass> {
    let mut counts: BTreeMap<u32, [usize; 3]> = BTreeMap::new();
    for &(truth, predicted, n) in cells {
        counts.entry(truth).or_default()[0] += n;
        counts.entry(predicted).or_default()[1] += n;
        if truth == predicted {
            counts.entry(truth).or_default()[2] += n;
        }
    }
    let share = |part: usize, of: usize| (of > 0).then(|| part as f64 / of as f64);
    let quality = |(&class, &[n_true, n_predicted, n_right]): (&u32, &[usize; 3])| OfClass {
        class,
        n_true,
        n_predicted,
        n_right,
        precision: share(n_right, n_predicted),
        recall: share(n_right, n_true),
        f1: share(2 * n_right, n_true + n_predicted).unwrap_or(0.0),
    };
    counts.iter().map(quality).collect()
}

/// The mean F1 of classes.
fn macro_f1(classes: &[OfClass]) -> f64 {
    classes.iter().map(|c| c.f1).sum::<f64>() / classes.len().max(1) as f64
}

impl Confusion {
    fn of(evaluation: &Evaluation, classes: &Classes) -> Self {
        let code = |c: u32| classes.code(&evaluation.classes[c as usize]);
        let cells = evaluation.cells.iter();
        let cells: Vec<_> = cells.map(|&(t, p, n)| (code(t), code(p), n)).collect();
        let classes = by_class(&cells);
        Self {
            error: evaluation.error,
            balanced_error: evaluation.balanced_error,
            n_wrong: evaluation.n_wrong,
            n_test: evaluation.n_test,
            macro_f1: macro_f1(&classes),
            classes,
            cells,
        }
    }
}

/// A test row that the learned similarity misclassifies.
#[derive(Serialize, Clone, Copy)]
pub(crate) struct Misclassified {
    pub(crate) row: u32,
    class: u32,
    predicted: u32,
    /// How many of the k neighbors have the predicted class.
    votes: usize,
    /// The score of the nearest row of the predicted class minus that of the nearest row of the true class, if training
    /// rows have that class.
    margin: Option<f64>,
}

/// All misclassified rows, by decreasing votes for the predicted class, then by decreasing margin.
pub(crate) fn misclassified(
    input: &Input<'_>,
    rankings: &Rankings,
    classes: &Classes,
) -> Result<Vec<Misclassified>> {
    let (Some((_, labels)), Some(test)) = (input.labeled_train(), input.test) else {
        return Ok(Vec::new());
    };
    let ranked = &rankings.learned;
    let (Some(truth), Some(predicted)) = (test.labels, &ranked.predicted) else {
        return Ok(Vec::new());
    };
    let (truth, predicted) = (classes.codes(truth), classes.codes(predicted));
    let train_classes = classes.codes(labels);
    let wrong: Vec<u32> = (0..truth.len() as u32)
        .filter(|&row| truth[row as usize] != predicted[row as usize])
        .collect();
    if wrong.is_empty() {
        return Ok(Vec::new());
    }
    let normalized = rankings.rule.normalization.of(input.model.similarity());
    let index = KnnIndex::new(&normalized, &ranked.train);
    let queries = ranked.test.select(&wrong);
    let nearest_of = |class: &[u32]| {
        index.neighbors_where(&queries, 1, |query, row| {
            train_classes[row as usize] == class[wrong[query as usize] as usize]
        })
    };
    let (nearest_predicted, nearest_true) = (nearest_of(&predicted)?, nearest_of(&truth)?);
    let score = |nearest: &[Vec<Neighbor>], query: usize| Some(nearest[query].first()?.score);
    let mut list: Vec<Misclassified> = wrong
        .iter()
        .enumerate()
        .map(|(query, &row)| {
            let at = row as usize;
            let voters = ranked.neighbors[at].iter().take(rankings.rule.k);
            Misclassified {
                row,
                class: truth[at],
                predicted: predicted[at],
                votes: voters
                    .filter(|n| train_classes[n.row as usize] == predicted[at])
                    .count(),
                margin: score(&nearest_predicted, query)
                    .zip(score(&nearest_true, query))
                    .map(|(predicted, truth)| predicted - truth),
            }
        })
        .collect();
    // Rows of a class that training rows do not have come first.
    let margin = |m: &Misclassified| m.margin.unwrap_or(f64::INFINITY);
    list.sort_by(|a, b| {
        b.votes
            .cmp(&a.votes)
            .then(margin(b).total_cmp(&margin(a)))
            .then(a.row.cmp(&b.row))
    });
    Ok(list)
}

impl ErrorSection {
    pub(crate) fn of(
        input: &Input<'_>,
        rankings: &Rankings,
        misclassified: &[Misclassified],
        classes: &Classes,
    ) -> Option<Self> {
        let (dot, learned) = rankings.evaluations()?;
        Some(Self {
            learned: Confusion::of(learned, classes),
            dot: Confusion::of(dot, classes),
            references: (rankings.references.iter())
                .map(|(name, evaluation)| OfReference::of(name, evaluation))
                .collect(),
            misclassified: misclassified.iter().take(MAX_LISTED).copied().collect(),
            n_misclassified: misclassified.len(),
            k: rankings.rule.k,
            changes: rankings.changes(input),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precision_recall_and_f1_of_a_small_matrix() {
        // Class 0: 3 rows, 2 right. Class 1: 2 rows, 1 right. Class 2: predicted once, of no row. Class 3: never predicted.
        let cells = [(0, 0, 2), (0, 2, 1), (1, 1, 1), (1, 0, 1), (3, 1, 1)];
        let found = by_class(&cells);
        let expected = [
            (0, 3, 3, 2, Some(2.0 / 3.0), Some(2.0 / 3.0), 2.0 / 3.0),
            (1, 2, 2, 1, Some(0.5), Some(0.5), 0.5),
            (2, 0, 1, 0, Some(0.0), None, 0.0),
            (3, 1, 0, 0, None, Some(0.0), 0.0),
        ];
        assert_eq!(found.len(), expected.len());
        for (one, (class, n_true, n_predicted, n_right, precision, recall, f1)) in
            found.into_iter().zip(expected)
        {
            let expected = OfClass {
                class,
                n_true,
                n_predicted,
                n_right,
                precision,
                recall,
                f1,
            };
            assert_eq!(one, expected);
        }
    }
}
