//! Sections 3 and 4: the entries of M, as features and pairs, and how often each is met in the data.

use crate::classes::Classes;
use crate::input::Input;
use crate::names::Names;
use crate::sample::rounded;
use hdsl::Rows;
use serde::Serialize;
use std::collections::HashMap;

/// Classes told apart at most; of more, the largest.
const MOST_CLASSES: usize = 12;

/// All entries of M that are not 0.
#[derive(Serialize)]
pub(crate) struct Entries {
    /// How many features there are, used or not.
    n_features: usize,
    features: FeatureTable,
    pairs: PairTable,
    /// Whether training rows were there to count in.
    counted: bool,
    /// The classes counted separately, by number.
    classes: Vec<u32>,
    n_rows: usize,
}

#[derive(Serialize, Default)]
struct FeatureTable {
    id: Vec<u32>,
    weight: Vec<f64>,
    n_pairs: Vec<usize>,
    /// The share of training rows that have the feature.
    share: Vec<f64>,
    /// The same for each class, a list a feature.
    by_class: Vec<Vec<f64>>,
}

#[derive(Serialize, Default)]
struct PairTable {
    i: Vec<u32>,
    j: Vec<u32>,
    weight: Vec<f64>,
    /// How often one of two training rows of the same class has the one feature and the other the other.
    same: Vec<f64>,
    /// The same of two rows of different classes.
    different: Vec<f64>,
    /// The same for two rows of each class, a list a pair.
    by_class: Vec<Vec<f64>>,
}

/// Of two different rows out of `n`, how often one has the first feature and the other the second, counted in ordered
/// pairs of rows: `has_i` rows have the first, `has_j` the second, `both` both.
fn fires(has_i: usize, has_j: usize, both: usize) -> f64 {
    let (i, j, b) = (has_i as f64, has_j as f64, both as f64);
    // One way round, the other way round, less those that are both.
    2.0 * (i * j - b) - b * (b - 1.0)
}

fn couples(n: usize) -> f64 {
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
        let features: Vec<u32> = features.iter().map(|f| f.feature).collect();
        let pairs: Vec<(u32, u32)> = pairs.iter().map(|p| (p.i, p.j)).collect();
        entries.count(input, classes, &features, &pairs);
        entries
    }

    fn count(
        &mut self,
        input: &Input<'_>,
        classes: &Classes,
        features: &[u32],
        pairs: &[(u32, u32)],
    ) {
        let Some(train) = input.train else {
            return;
        };
        let codes = match train.labels {
            Some(labels) => classes.codes(labels),
            None => vec![0; train.rows.n_rows()],
        };
        let n = train.rows.n_rows();
        let n_classes = classes.names.len().max(1);
        let mut rows_of: Vec<Vec<u32>> = vec![Vec::new(); n_classes];
        for (row, &class) in codes.iter().enumerate() {
            rows_of[class as usize].push(row as u32);
        }
        let mut listed: Vec<usize> = match train.labels {
            Some(_) => (0..n_classes).filter(|&c| !rows_of[c].is_empty()).collect(),
            None => Vec::new(),
        };
        listed.sort_by_key(|&c| (std::cmp::Reverse(rows_of[c].len()), c));
        listed.truncate(MOST_CLASSES);
        listed.sort_unstable();
        let counter = Counter::new(features, pairs);
        let mut all = Counts::new(features.len(), pairs.len());
        let mut in_same = vec![0.0; pairs.len()];
        let mut same_couples = 0.0;
        self.features.by_class = vec![Vec::new(); features.len()];
        self.pairs.by_class = vec![Vec::new(); pairs.len()];
        // Class by class, so that memory does not grow with their number.
        for (class, rows) in rows_of.iter().enumerate() {
            if rows.is_empty() {
                continue;
            }
            let found = counter.count(train.rows, rows);
            let couples = couples(rows.len());
            same_couples += couples;
            let is_listed = listed.binary_search(&class).is_ok();
            for (at, &has) in found.has.iter().enumerate() {
                all.has[at] += has;
                if is_listed {
                    self.features.by_class[at].push(share(has as f64, rows.len() as f64));
                }
            }
            for (number, &(i, j)) in counter.places.iter().enumerate() {
                all.both[number] += found.both[number];
                let fired = fires(found.has[i], found.has[j], found.both[number]);
                in_same[number] += fired;
                if is_listed {
                    self.pairs.by_class[number].push(share(fired, couples));
                }
            }
        }
        self.features.share = all
            .has
            .iter()
            .map(|&has| share(has as f64, n as f64))
            .collect();
        for (number, &(i, j)) in counter.places.iter().enumerate() {
            let fired = fires(all.has[i], all.has[j], all.both[number]);
            let different = share(fired - in_same[number], couples(n) - same_couples);
            self.pairs.same.push(share(in_same[number], same_couples));
            self.pairs.different.push(different);
        }
        self.counted = true;
        self.n_rows = n;
        self.classes = listed.into_iter().map(|c| c as u32).collect();
    }
}

/// How many rows have each feature, and both features of each pair.
struct Counts {
    has: Vec<usize>,
    both: Vec<usize>,
}

impl Counts {
    fn new(n_features: usize, n_pairs: usize) -> Self {
        Self {
            has: vec![0; n_features],
            both: vec![0; n_pairs],
        }
    }
}

/// Where features stand in the table, and with which others they form pairs.
struct Counter {
    place: HashMap<u32, usize>,
    /// The places of both features of each pair.
    places: Vec<(usize, usize)>,
    /// For each feature, the others of its pairs and the numbers of the pairs; each pair once.
    partners: Vec<Vec<(usize, usize)>>,
}

impl Counter {
    fn new(features: &[u32], pairs: &[(u32, u32)]) -> Self {
        let place: HashMap<u32, usize> = features
            .iter()
            .enumerate()
            .map(|(at, &f)| (f, at))
            .collect();
        let places: Vec<(usize, usize)> = pairs.iter().map(|(i, j)| (place[i], place[j])).collect();
        let mut partners = vec![Vec::new(); features.len()];
        for (number, &(i, j)) in places.iter().enumerate() {
            partners[i].push((j, number));
        }
        Self {
            place,
            places,
            partners,
        }
    }

    fn count(&self, rows: &Rows, which: &[u32]) -> Counts {
        let mut counts = Counts::new(self.partners.len(), self.places.len());
        let mut present = vec![false; self.partners.len()];
        for &row in which {
            let met: Vec<usize> = rows
                .row(row as usize)
                .iter()
                .filter(|&(_, value)| value != 0.0)
                .filter_map(|(feature, _)| self.place.get(&feature).copied())
                .collect();
            met.iter().for_each(|&at| present[at] = true);
            for &at in &met {
                counts.has[at] += 1;
                for &(other, number) in &self.partners[at] {
                    counts.both[number] += usize::from(present[other]);
                }
            }
            met.iter().for_each(|&at| present[at] = false);
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn firing_is_what_counting_all_couples_of_rows_finds() {
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
        assert_eq!(fires(has_i, has_j, both), counted as f64);
        assert_eq!(couples(rows.len()), 30.0);
    }
}
