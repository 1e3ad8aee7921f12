//! Error rates of predicted classes.

use super::{PredictionRule, classify};
use crate::data::{Labels, Rows};
use crate::error::{Error, Result};
use crate::similarity::Similarity;
use std::collections::{BTreeMap, HashMap};

/// How often predicted classes are wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// How many rows were classified.
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
        return Err(Error::data("there are no rows to evaluate"));
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
