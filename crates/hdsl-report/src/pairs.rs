//! Sections 3 and 4: the entries of M, as features and pairs, and how often each is met in the data.

use crate::classes::Classes;
use crate::input::Input;
use crate::names::Names;
use crate::sample::rounded;
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
        let n_classes = classes.names.len().max(1);
        let place: HashMap<u32, usize> = features
            .iter()
            .enumerate()
            .map(|(at, &f)| (f, at))
            .collect();
        let mut partners: Vec<Vec<(usize, usize)>> = vec![Vec::new(); features.len()];
        for (number, &(i, j)) in pairs.iter().enumerate() {
            partners[place[&i]].push((place[&j], number));
        }
        let mut rows_of = vec![0usize; n_classes];
        let mut has = vec![0usize; features.len() * n_classes];
        let mut both = vec![0usize; pairs.len() * n_classes];
        let mut present = vec![false; features.len()];
        for (row, &class) in train.rows.iter().zip(&codes) {
            let class = class as usize;
            rows_of[class] += 1;
            let met: Vec<usize> = row
                .iter()
                .filter(|&(_, value)| value != 0.0)
                .filter_map(|(feature, _)| place.get(&feature).copied())
                .collect();
            met.iter().for_each(|&at| present[at] = true);
            for &at in &met {
                has[at * n_classes + class] += 1;
                for &(other, number) in &partners[at] {
                    both[number * n_classes + class] += usize::from(present[other]);
                }
            }
            met.iter().for_each(|&at| present[at] = false);
        }
        let n = train.rows.n_rows();
        let mut listed: Vec<usize> = match train.labels {
            Some(_) => (0..n_classes).filter(|&c| rows_of[c] > 0).collect(),
            None => Vec::new(),
        };
        listed.sort_by_key(|&c| (std::cmp::Reverse(rows_of[c]), c));
        listed.truncate(MOST_CLASSES);
        listed.sort_unstable();
        let of = |counts: &[usize], at: usize| -> Vec<usize> {
            counts[at * n_classes..(at + 1) * n_classes].to_vec()
        };
        for at in 0..features.len() {
            let has = of(&has, at);
            let all: usize = has.iter().sum();
            self.features.share.push(share(all as f64, n as f64));
            let by_class = |&c: &usize| share(has[c] as f64, rows_of[c] as f64);
            self.features
                .by_class
                .push(listed.iter().map(by_class).collect());
        }
        let within_couples: f64 = rows_of.iter().map(|&n| couples(n)).sum();
        for (number, &(i, j)) in pairs.iter().enumerate() {
            let (in_i, in_j, both) = (of(&has, place[&i]), of(&has, place[&j]), of(&both, number));
            let within: Vec<f64> = (0..n_classes)
                .map(|c| fires(in_i[c], in_j[c], both[c]))
                .collect();
            let in_all = fires(in_i.iter().sum(), in_j.iter().sum(), both.iter().sum());
            let in_same: f64 = within.iter().sum();
            self.pairs.same.push(share(in_same, within_couples));
            self.pairs
                .different
                .push(share(in_all - in_same, couples(n) - within_couples));
            let by_class = |&c: &usize| share(within[c], couples(rows_of[c]));
            self.pairs
                .by_class
                .push(listed.iter().map(by_class).collect());
        }
        self.counted = true;
        self.n_rows = n;
        self.classes = listed.into_iter().map(|c| c as u32).collect();
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
