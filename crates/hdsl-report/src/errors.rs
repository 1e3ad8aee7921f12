//! Section 8: confusion matrices and the misclassified test rows.

use crate::classes::Classes;
use crate::input::Input;
use crate::ranking::Rankings;
use hdsl::knn::Evaluation;
use hdsl::{KnnIndex, Neighbor, Result};
use serde::Serialize;

/// Misclassified rows in the table.
const MAX_LISTED: usize = 100;

/// The section.
#[derive(Serialize)]
pub(crate) struct ErrorSection {
    learned: Confusion,
    dot: Confusion,
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
}

impl Confusion {
    fn of(evaluation: &Evaluation, classes: &Classes) -> Self {
        let code = |c: u32| classes.code(&evaluation.classes[c as usize]);
        let cells = evaluation.cells.iter();
        Self {
            error: evaluation.error,
            balanced_error: evaluation.balanced_error,
            n_wrong: evaluation.n_wrong,
            n_test: evaluation.n_test,
            cells: cells.map(|&(t, p, n)| (code(t), code(p), n)).collect(),
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
            misclassified: misclassified.iter().take(MAX_LISTED).copied().collect(),
            n_misclassified: misclassified.len(),
            k: rankings.rule.k,
            changes: rankings.changes(input),
        })
    }
}
