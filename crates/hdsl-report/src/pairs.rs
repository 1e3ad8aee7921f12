//! Sections 3 and 4: the entries of M, as features and pairs, and their frequencies in the training rows.

use crate::classes::Classes;
use crate::input::{Input, Part};
use crate::names::Names;
use crate::sample::rounded;
use hdsl::Rows;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Frequencies by class are listed for the largest classes only.
const MAX_CLASSES: usize = 12;

/// All non-zero entries of M.
#[derive(Serialize)]
pub(crate) struct Entries {
    /// The number of features in the data, used or not.
    n_features: usize,
    features: FeatureTable,
    pairs: PairTable,
    /// Whether there were training rows to compute frequencies from.
    counted: bool,
    /// The classes with frequencies of their own, as indices into the list of classes.
    classes: Vec<u32>,
    n_rows: usize,
}

#[derive(Serialize, Default)]
struct FeatureTable {
    id: Vec<u32>,
    weight: Vec<f64>,
    n_pairs: Vec<usize>,
    /// The share of training rows that contain the feature.
    share: Vec<f64>,
    /// The same for each class, one list per feature.
    by_class: Vec<Vec<f64>>,
}

/// A pair of features contributes to the score of two rows if one row contains the first feature and the other row
/// contains the second.
#[derive(Serialize, Default)]
struct PairTable {
    i: Vec<u32>,
    j: Vec<u32>,
    weight: Vec<f64>,
    /// How often the pair contributes to the score of two training rows of the same class.
    same: Vec<f64>,
    /// How often the pair contributes to the score of two training rows of different classes.
    different: Vec<f64>,
    /// How often the pair contributes to the score of two rows of each class, one list per pair.
    by_class: Vec<Vec<f64>>,
}

/// The number of ordered pairs of different rows to whose score a pair of features contributes. `has_i` rows contain the
/// first feature, `has_j` the second, `both` both.
fn contributing(has_i: usize, has_j: usize, both: usize) -> f64 {
    let (i, j, b) = (has_i as f64, has_j as f64, both as f64);
    // First feature in the first row, or in the second row, minus those counted twice.
    2.0 * (i * j - b) - b * (b - 1.0)
}

/// The number of ordered pairs of different rows.
fn row_pairs(n: usize) -> f64 {
    n as f64 * (n as f64 - 1.0)
}

fn share(part: f64, all: f64) -> f64 {
    if all > 0.0 {
        rounded(part / all, 4)
    } else {
        0.0
    }
}

impl Entries {
    pub(crate) fn of(input: &Input<'_>, classes: &Classes, names: &mut Names<'_, '_>) -> Self {
        let learned = input.model.similarity();
        let (features, pairs) = (learned.features_by_weight(), learned.pairs_by_weight());
        let mut entries = Self {
            n_features: input.model.n_features(),
            features: FeatureTable::default(),
            pairs: PairTable::default(),
            counted: false,
            classes: Vec::new(),
            n_rows: 0,
        };
        for f in &features {
            entries.features.id.push(names.id(f.feature));
            entries.features.weight.push(f.weight);
            entries.features.n_pairs.push(f.n_pairs);
        }
        for p in &pairs {
            entries.pairs.i.push(names.id(p.i));
            entries.pairs.j.push(names.id(p.j));
            entries.pairs.weight.push(p.weight);
        }
        if let Some(train) = input.train {
            let features: Vec<u32> = features.iter().map(|f| f.feature).collect();
            let pairs: Vec<(u32, u32)> = pairs.iter().map(|p| (p.i, p.j)).collect();
            let counter = Counter::new(&features, &pairs);
            entries.count(train, &rows_by_class(train, classes), &counter);
        }
        entries
    }

    /// Fills in the frequencies. Classes are counted one by one, so that memory does not grow with their number.
    fn count(&mut self, train: Part<'_>, rows_by_class: &[Vec<u32>], counter: &Counter) {
        let n = train.rows.n_rows();
        let listed = match train.labels {
            Some(_) => largest_classes(rows_by_class),
            None => Vec::new(),
        };
        let mut total = counter.zero();
        let mut same = vec![0.0; counter.pairs.len()];
        let mut same_row_pairs = 0.0;
        self.features.by_class = vec![Vec::new(); total.has.len()];
        self.pairs.by_class = vec![Vec::new(); same.len()];
        for (class, rows) in rows_by_class.iter().enumerate() {
            let counts = counter.count(train.rows, rows);
            let contributing = counter.contributing(&counts);
            total.add(&counts);
            same_row_pairs += row_pairs(rows.len());
            for (sum, n) in same.iter_mut().zip(&contributing) {
                *sum += n;
            }
            if listed.contains(&class) {
                self.push_class(rows.len(), &counts, &contributing);
            }
        }
        let shares = total.has.iter().map(|&has| share(has as f64, n as f64));
        self.features.share = shares.collect();
        let different_row_pairs = row_pairs(n) - same_row_pairs;
        for (all, same) in counter.contributing(&total).into_iter().zip(same) {
            self.pairs.same.push(share(same, same_row_pairs));
            self.pairs
                .different
                .push(share(all - same, different_row_pairs));
        }
        self.counted = true;
        self.n_rows = n;
        self.classes = listed.into_iter().map(|c| c as u32).collect();
    }

    /// Adds the frequencies within a class of `n` rows.
    fn push_class(&mut self, n: usize, counts: &Counts, contributing: &[f64]) {
        for (list, &has) in self.features.by_class.iter_mut().zip(&counts.has) {
            list.push(share(has as f64, n as f64));
        }
        for (list, &contributing) in self.pairs.by_class.iter_mut().zip(contributing) {
            list.push(share(contributing, row_pairs(n)));
        }
    }
}

/// The training rows of each class; all in one list if they have no labels.
fn rows_by_class(train: Part<'_>, classes: &Classes) -> Vec<Vec<u32>> {
    let Some(labels) = train.labels else {
        return vec![(0..train.rows.n_rows() as u32).collect()];
    };
    let mut rows = vec![Vec::new(); classes.names.len()];
    for (row, &class) in classes.codes(labels).iter().enumerate() {
        rows[class as usize].push(row as u32);
    }
    rows
}

/// The non-empty classes with the most rows, in increasing order.
fn largest_classes(rows_by_class: &[Vec<u32>]) -> Vec<usize> {
    let size = |&class: &usize| rows_by_class[class].len();
    let mut classes: Vec<usize> = (0..rows_by_class.len()).filter(|c| size(c) > 0).collect();
    classes.sort_by_key(|class| (Reverse(size(class)), *class));
    classes.truncate(MAX_CLASSES);
    classes.sort_unstable();
    classes
}

/// The number of rows that contain each feature, and both features of each pair.
struct Counts {
    has: Vec<usize>,
    both: Vec<usize>,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        let has = self.has.iter_mut().zip(&other.has);
        let both = self.both.iter_mut().zip(&other.both);
        has.chain(both).for_each(|(sum, n)| *sum += n);
    }
}

/// Counts the features and pairs of the tables, by their positions there.
struct Counter {
    position: HashMap<u32, usize>,
    /// The positions of both features of each pair.
    pairs: Vec<(usize, usize)>,
    /// For each feature, the second features and the numbers of the pairs in which it is first.
    partners: Vec<Vec<(usize, usize)>>,
}

impl Counter {
    fn new(features: &[u32], pairs: &[(u32, u32)]) -> Self {
        let position: HashMap<u32, usize> = features
            .iter()
            .enumerate()
            .map(|(at, &f)| (f, at))
            .collect();
        let pairs: Vec<(usize, usize)> = pairs
            .iter()
            .map(|(i, j)| (position[i], position[j]))
            .collect();
        let mut partners = vec![Vec::new(); features.len()];
        for (number, &(i, j)) in pairs.iter().enumerate() {
            partners[i].push((j, number));
        }
        Self {
            position,
            pairs,
            partners,
        }
    }

    fn zero(&self) -> Counts {
        Counts {
            has: vec![0; self.partners.len()],
            both: vec![0; self.pairs.len()],
        }
    }

    fn count(&self, rows: &Rows, selected: &[u32]) -> Counts {
        let mut counts = self.zero();
        let mut is_present = vec![false; self.partners.len()];
        for &row in selected {
            let present: Vec<usize> = rows
                .row(row as usize)
                .iter()
                .filter(|&(_, value)| value != 0.0)
                .filter_map(|(feature, _)| self.position.get(&feature).copied())
                .collect();
            present.iter().for_each(|&at| is_present[at] = true);
            for &at in &present {
                counts.has[at] += 1;
                for &(other, number) in &self.partners[at] {
                    counts.both[number] += usize::from(is_present[other]);
                }
            }
            present.iter().for_each(|&at| is_present[at] = false);
        }
        counts
    }

    /// For each pair of features, the number of row pairs to whose score it contributes.
    fn contributing(&self, counts: &Counts) -> Vec<f64> {
        let pairs = self.pairs.iter().zip(&counts.both);
        pairs
            .map(|(&(i, j), &both)| contributing(counts.has[i], counts.has[j], both))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contributing_row_pairs_agree_with_brute_force() {
        let rows = [
            (true, false),
            (false, true),
            (true, true),
            (true, true),
            (false, false),
            (true, false),
        ];
        let mut counted = 0;
        for (a, x) in rows.iter().enumerate() {
            for (b, y) in rows.iter().enumerate() {
                counted += usize::from(a != b && ((x.0 && y.1) || (x.1 && y.0)));
            }
        }
        let has_i = rows.iter().filter(|r| r.0).count();
        let has_j = rows.iter().filter(|r| r.1).count();
        let both = rows.iter().filter(|r| r.0 && r.1).count();
        assert_eq!(contributing(has_i, has_j, both), counted as f64);
        assert_eq!(row_pairs(rows.len()), 30.0);
    }
}
