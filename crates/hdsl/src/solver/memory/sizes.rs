//! What a run is about, in numbers, found in a pass over the rows and next to no memory.

use crate::data::{Rows, SparseRow};
use crate::triplets::Triplets;

/// Triplets looked at to tell how popular features are and how many of them rows share.
const SAMPLE: usize = 1_000;

/// Everything that memory grows with, as numbers to be added and multiplied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) rows: f64,
    /// Stored values.
    pub(super) values: f64,
    /// Columns that occur.
    pub(super) columns: f64,
    pub(super) triplets: f64,
    /// Different (anchor, near) and (anchor, far).
    pub(super) pairs: f64,
    /// Features that both rows of a pair hold, on average.
    pub(super) shared: f64,
    /// The share of triplets that a step along the two most popular features touches.
    pub(super) touched: f64,
    /// The share of rows that hold a feature, by a value picked at random.
    pub(super) holders: f64,
    pub(super) weighted: bool,
    /// Whether the rows are kept by somebody else, so that the solver makes a copy.
    pub(super) copied: bool,
}

impl Sizes {
    pub(super) fn of(rows: &Rows, triplets: &Triplets, copied: bool) -> Self {
        let sample = Sample::of(rows, triplets);
        Self {
            rows: rows.n_rows() as f64,
            values: rows.nnz() as f64,
            columns: occurring(rows),
            triplets: triplets.len() as f64,
            pairs: triplets.count_pairs(),
            shared: sample.shared(),
            touched: sample.touched(),
            holders: sample.holders(),
            weighted: triplets.weights().is_some(),
            copied,
        }
    }

    /// The same with fewer triplets, which have as many pairs as they can.
    pub(super) fn with_triplets(self, triplets: f64) -> Self {
        Self {
            triplets,
            pairs: self.pairs.min(2.0 * triplets),
            ..self
        }
    }
}

/// How many columns occur: counted if they are few, else estimated from the share of bits that hashes of them leave
/// unset (linear counting; within a percent or so), which takes at most a byte a value.
fn occurring(rows: &Rows) -> f64 {
    let most = rows.nnz().min(rows.n_features()) as u64;
    let bits = (4 * most).next_power_of_two().max(64);
    let exact = rows.n_features() as u64 <= bits;
    let mut set = vec![0u64; (bits / 64) as usize];
    for &feature in rows.indices() {
        let bit = match exact {
            true => u64::from(feature),
            // The upper bits of a product by an odd number.
            false => u64::from(feature).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits.ilog2()),
        };
        set[(bit / 64) as usize] |= 1 << (bit % 64);
    }
    let met: u64 = set.iter().map(|word| u64::from(word.count_ones())).sum();
    match exact {
        true => met as f64,
        false => -(bits as f64) * (1.0 - met as f64 / bits as f64).ln(),
    }
}

/// The rows of some triplets, spread over all, and how many anchors among them hold each feature.
struct Sample<'a> {
    triplets: Vec<[SparseRow<'a>; 3]>,
    /// (anchors, feature), the most popular first.
    popular: Vec<(usize, u32)>,
}

impl<'a> Sample<'a> {
    fn of(rows: &'a Rows, triplets: &Triplets) -> Self {
        let n = triplets.len().min(SAMPLE);
        let triplets: Vec<[SparseRow<'a>; 3]> = (0..n)
            .map(|k| {
                let t = (k as u128 * triplets.len() as u128 / n as u128) as usize;
                let (anchor, near, far) = triplets.get(t);
                [anchor, near, far].map(|row| rows.row(row as usize))
            })
            .collect();
        let mut features: Vec<u32> = Vec::new();
        for [anchor, ..] in &triplets {
            features.extend(anchor.indices());
        }
        features.sort_unstable();
        let mut popular: Vec<(usize, u32)> = features
            .chunk_by(|a, b| a == b)
            .map(|same| (same.len(), same[0]))
            .collect();
        popular.sort_unstable_by(|a, b| b.cmp(a));
        Self { triplets, popular }
    }

    fn mean(&self, of: impl Fn(&[SparseRow<'a>; 3]) -> f64) -> f64 {
        self.triplets.iter().map(of).sum::<f64>() / self.triplets.len().max(1) as f64
    }

    fn shared(&self) -> f64 {
        self.mean(|&[anchor, near, far]| {
            0.5 * (in_both(anchor, near) + in_both(anchor, far)) as f64
        })
    }

    fn touched(&self) -> f64 {
        let holds = |row: SparseRow<'_>| {
            let mut top = self.popular.iter().take(2);
            top.any(|(_, feature)| row.indices().binary_search(feature).is_ok())
        };
        self.mean(|&[anchor, near, far]| {
            f64::from(u8::from(holds(anchor) && (holds(near) || holds(far))))
        })
    }

    fn holders(&self) -> f64 {
        let sum =
            |of: fn(f64) -> f64| -> f64 { self.popular.iter().map(|&(n, _)| of(n as f64)).sum() };
        sum(|n| n * n) / (sum(|n| n) * self.triplets.len() as f64).max(1.0)
    }
}

fn in_both(a: SparseRow<'_>, b: SparseRow<'_>) -> usize {
    let (a, b) = (a.indices(), b.indices());
    let (mut s, mut t, mut both) = (0, 0, 0);
    while s < a.len() && t < b.len() {
        both += usize::from(a[s] == b[t]);
        let (x, y) = (a[s], b[t]);
        s += usize::from(x <= y);
        t += usize::from(y <= x);
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Labels;
    use crate::similarity::Dot;
    use std::collections::BTreeSet;

    fn some_rows(n_rows: usize, nnz: usize, n_features: usize) -> Rows {
        let mut rng = crate::random::rng(n_features as u64, 9);
        let mut rows = Rows::new(n_features);
        for _ in 0..n_rows {
            let features = crate::random::sample(&mut rng, n_features, nnz);
            rows.push(SparseRow::new(&features, &vec![1.0; features.len()]));
        }
        rows
    }

    #[test]
    fn columns_are_counted_or_estimated_closely() {
        for n_features in [3, 50, 1_000, 100_000, 10_000_000, 4_000_000_000] {
            let rows = some_rows(1_000, 3, n_features);
            let truth = rows.indices().iter().collect::<BTreeSet<_>>().len() as f64;
            let found = occurring(&rows);
            assert!((found - truth).abs() <= 0.02 * truth, "{found} for {truth}");
        }
        assert_eq!(occurring(&Rows::new(0)), 0.0);
    }

    /// Different (anchor, other), one by one.
    fn pairs(triplets: &Triplets) -> f64 {
        let both = triplets.iter().flat_map(|(a, n, f)| [(a, n), (a, f)]);
        both.collect::<BTreeSet<_>>().len() as f64
    }

    #[test]
    fn pairs_are_counted_or_estimated_closely() {
        let rows = some_rows(200, 3, 50);
        let labels = Labels::from_names((0..200).map(|r| (r % 30 / 10 * r % 3).to_string()));
        for per_row in [1, 4, 30, 1_000] {
            let random = Triplets::at_random(&rows, &labels, per_row, 1).unwrap();
            let (truth, found) = (pairs(&random), random.count_pairs());
            assert!((found - truth).abs() < 0.02 * truth, "{found} for {truth}");
            let mut list = Triplets::new();
            list.append(&random);
            let found = list.count_pairs();
            assert!((found - truth).abs() < 0.05 * truth, "{found} for {truth}");
        }
        let near = Triplets::by_neighbors(&Dot, &rows, &labels, 3, 4).unwrap();
        assert_eq!(near.count_pairs(), pairs(&near));
    }
    #[test]
    fn popular_features_touch_triplets() {
        // Feature 0 is in every row, feature 1 in every other, the rest in one each.
        let mut rows = Rows::new(200);
        for row in 0..100u32 {
            let features: Vec<u32> = [0, 1, 2 + row]
                .into_iter()
                .filter(|&f| f != 1 || row % 2 == 0)
                .collect();
            rows.push(SparseRow::new(&features, &vec![1.0; features.len()]));
        }
        let labels = Labels::from_names((0..100).map(|r| (r / 50).to_string()));
        let triplets = Triplets::at_random(&rows, &labels, 100, 1).unwrap();
        let sizes = Sizes::of(&rows, &triplets, true);
        assert_eq!((sizes.columns, sizes.touched), (102.0, 1.0));
        // Two rows share feature 0 always and feature 1 in a quarter of all cases.
        assert!((sizes.shared - 1.25).abs() < 0.05, "{sizes:?}");
        // Values: 100 of feature 0, 50 of feature 1, 100 of features with one row.
        let holders = (100.0 * 1.0 + 50.0 * 0.5 + 100.0 * 0.01) / 250.0;
        assert!((sizes.holders - holders).abs() < 0.05, "{sizes:?}");
        let fewer = sizes.with_triplets(10.0);
        assert_eq!((fewer.triplets, fewer.pairs), (10.0, 20.0));
    }
}
