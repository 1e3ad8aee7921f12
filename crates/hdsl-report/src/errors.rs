//! Section 8: where the learned similarity is wrong, the surest mistakes first.

use crate::classes::Classes;
use crate::input::Input;
use crate::ranking::Rankings;
use hdsl::knn::Evaluation;
use hdsl::{KnnIndex, Result};
use serde::Serialize;

/// Mistakes listed at most.
const MOST_LISTED: usize = 100;

/// The section.
#[derive(Serialize)]
pub(crate) struct ErrorStory {
    learned: Table,
    dot: Table,
    mistakes: Vec<Mistake>,
    n_mistakes: usize,
    k: usize,
}

/// What a similarity gets right and wrong.
#[derive(Serialize)]
struct Table {
    error: f64,
    balanced_error: f64,
    n_wrong: usize,
    n_test: usize,
    /// (true class, given class, how often).
    cells: Vec<(u32, u32, usize)>,
}

impl Table {
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

/// A test row with a wrong class.
#[derive(Serialize, Clone, Copy)]
pub(crate) struct Mistake {
    pub(crate) row: u32,
    truth: u32,
    given: u32,
    /// How many of the k neighbors voted for the wrong class.
    votes: usize,
    /// By how much the nearest row of the wrong class beats the nearest of the right one, if there is one.
    margin: Option<f64>,
}

/// All mistakes, the surest first: by votes, then by margin.
pub(crate) fn mistakes(
    input: &Input<'_>,
    rankings: &Rankings,
    classes: &Classes,
) -> Result<Vec<Mistake>> {
    let (Some((_, labels)), Some(test)) = (input.labeled_train(), input.test) else {
        return Ok(Vec::new());
    };
    let (Some(truth), Some(predicted)) = (test.labels, &rankings.learned.predicted) else {
        return Ok(Vec::new());
    };
    let (truth, given) = (classes.codes(truth), classes.codes(predicted));
    let voters = classes.codes(labels);
    let wrong: Vec<u32> = (0..truth.len() as u32)
        .filter(|&row| truth[row as usize] != given[row as usize])
        .collect();
    if wrong.is_empty() {
        return Ok(Vec::new());
    }
    let formed = rankings.rule.normalization.of(input.model.similarity());
    let index = KnnIndex::new(&formed, &rankings.train);
    let right = index.neighbors_where(&rankings.test.select(&wrong), 1, |query, row| {
        voters[row as usize] == truth[wrong[query as usize] as usize]
    })?;
    let mut list: Vec<Mistake> = wrong
        .iter()
        .zip(right.iter())
        .map(|(&row, right)| {
            let at = row as usize;
            let near = &rankings.learned.near.get(at)[..rankings.rule.k];
            let votes = near.iter().filter(|n| voters[n.row as usize] == given[at]);
            let best = votes.clone().next().map(|n| n.score);
            Mistake {
                row,
                truth: truth[at],
                given: given[at],
                votes: votes.count(),
                margin: best
                    .zip(right.first())
                    .map(|(wrong, right)| wrong - right.score),
            }
        })
        .collect();
    // A class that training never saw cannot be right: no margin says more than any.
    let margin = |m: &Mistake| m.margin.unwrap_or(f64::INFINITY);
    list.sort_by(|a, b| {
        b.votes
            .cmp(&a.votes)
            .then(margin(b).total_cmp(&margin(a)))
            .then(a.row.cmp(&b.row))
    });
    Ok(list)
}

impl ErrorStory {
    pub(crate) fn of(rankings: &Rankings, mistakes: &[Mistake], classes: &Classes) -> Option<Self> {
        let learned = rankings.learned.evaluation.as_ref()?;
        let dot = rankings.dot.evaluation.as_ref()?;
        Some(Self {
            learned: Table::of(learned, classes),
            dot: Table::of(dot, classes),
            mistakes: mistakes.iter().take(MOST_LISTED).copied().collect(),
            n_mistakes: mistakes.len(),
            k: rankings.rule.k,
        })
    }
}
