//! An estimate of the memory that a run needs, made before it starts: a run that does not fit is refused with advice.

mod available;

use super::SolverParams;
use super::margin_store::n_shards;
use crate::data::{Columns, Rows, SparseRow};
use crate::error::{Error, Result};
use crate::objective::incremental::{MAX_WORK, has_own_pairs};
use crate::triplets::Triplets;
use available::available;
use std::collections::HashMap;

/// The batch to suggest, or a tenth of the triplets if those are fewer.
const BATCH: usize = 100_000;

/// Bytes that do not depend on the problem: the path, the trace, buffers of threads.
const FIXED: f64 = 1e6;

/// Bytes per stored value of rows that are copied.
const ROW_VALUE: f64 = 12.0;

/// Triplets that averages are estimated from.
const SAMPLE: usize = 1_000;

/// The numbers that memory depends on.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    rows: f64,
    /// Stored values.
    values: f64,
    /// Columns that occur.
    columns: f64,
    triplets: f64,
    /// Distinct (anchor, near) and (anchor, far).
    pairs: f64,
    weighted: bool,
    /// Whether the solver makes a copy of the rows.
    copied: bool,
    /// Features that both rows of a pair contain, on average.
    common: f64,
    /// The share of triplets that a step along the two most frequent features affects.
    affected: f64,
}

impl Sizes {
    fn of(rows: &Rows, triplets: &Triplets, copied: bool) -> Self {
        let (common, affected) = averages(rows, triplets);
        Self {
            rows: rows.n_rows() as f64,
            values: rows.nnz() as f64,
            columns: Columns::of(rows).len() as f64,
            triplets: triplets.len() as f64,
            pairs: triplets.count_pairs(),
            weighted: triplets.weights().is_some(),
            copied,
            common,
            affected,
        }
    }

    /// The same with fewer triplets, which have as many pairs as possible.
    fn with_triplets(self, triplets: f64) -> Self {
        Self {
            triplets,
            pairs: self.pairs.min(2.0 * triplets),
            ..self
        }
    }

    /// About how many bytes a run allocates at its peak, beyond the rows and triplets given.
    ///
    /// The factors follow from the fields of `Problem` and of the engines, and from temporary memory: a list that grows
    /// may have twice its length allocated, and once more while it moves. `tests/memory.rs` compares with measured
    /// peaks.
    fn needed(&self, params: &SolverParams) -> f64 {
        let Self {
            rows,
            columns,
            triplets,
            pairs,
            ..
        } = *self;
        let own_rows = if self.copied { 0.0 } else { ROW_VALUE };
        let weight = if self.weighted { 8.0 } else { 0.0 };
        let margin = 44.0 * self.affected + weight;
        let engine = match (params.loss.segments(), params.batch) {
            (Some(_), None) => {
                let shards = n_shards(triplets as usize) as f64;
                let (pairs, per_pair) = match has_own_pairs(pairs, triplets) {
                    true => (2.0 * triplets, 20.0),
                    false => (pairs, 38.0),
                };
                rows * (72.0 + 24.0 * shards)
                    + columns * (44.0 + 18.0 * shards)
                    + triplets * (20.0 + margin)
                    + pairs * per_pair
                    + 24.0 * self.products(pairs, shards)
            }
            (segments, batch) => {
                // A certificate is computed over all triplets.
                let batch = batch.filter(|_| !params.certify);
                let batch = batch.map_or(triplets, |size| triplets.min(size as f64));
                let per_triplet = segments.map_or(24.0, |_| 11.2 + margin);
                rows * 116.0
                    + columns * 68.0
                    + triplets * per_triplet
                    + batch * 36.0
                    + pairs.min(2.0 * batch) * 48.0
            }
        };
        FIXED + self.values * (54.0 - own_rows) + engine
    }

    /// Stored products of two rows of a pair. None are stored if there would be too many or it would take too long.
    fn products(&self, pairs: f64, shards: f64) -> f64 {
        let work = pairs * self.values / self.rows.max(1.0) / shards;
        match work > MAX_WORK as f64 {
            true => 0.0,
            false => {
                let limit = 8.0 * (shards * self.values + self.triplets);
                limit.min(pairs * self.common)
            }
        }
    }
}

/// Features that both rows of a pair contain, and the share of triplets that a step along the two most frequent features
/// affects; both from a sample of the triplets.
fn averages(rows: &Rows, triplets: &Triplets) -> (f64, f64) {
    let n = triplets.len().min(SAMPLE);
    let picked = (0..n).map(|k| {
        let t = (k as u128 * triplets.len() as u128 / n as u128) as usize;
        let (anchor, near, far) = triplets.get(t);
        [anchor, near, far].map(|row| rows.row(row as usize))
    });
    let sample: Vec<[SparseRow<'_>; 3]> = picked.collect();
    let mut counts: HashMap<u32, usize> = HashMap::new();
    for [anchor, ..] in &sample {
        for &feature in anchor.indices() {
            *counts.entry(feature).or_default() += 1;
        }
    }
    let mut frequent: Vec<(usize, u32)> = counts.into_iter().map(|(f, n)| (n, f)).collect();
    frequent.sort_unstable_by(|a, b| b.cmp(a));
    frequent.truncate(2);
    let moves = |row: SparseRow<'_>| frequent.iter().any(|&(_, f)| contains(row, f));
    let (mut both, mut affected) = (0, 0);
    for &[anchor, near, far] in &sample {
        both += common(anchor, near) + common(anchor, far);
        affected += usize::from(moves(anchor) && (moves(near) || moves(far)));
    }
    let n = n.max(1) as f64;
    (0.5 * both as f64 / n, affected as f64 / n)
}

fn contains(row: SparseRow<'_>, feature: u32) -> bool {
    row.indices().binary_search(&feature).is_ok()
}

/// Features that both rows contain.
fn common(a: SparseRow<'_>, b: SparseRow<'_>) -> usize {
    a.indices().iter().filter(|&&f| contains(b, f)).count()
}

/// About how many bytes a run allocates at its peak, beyond the rows and triplets given; `copied` as in [`check`].
pub(super) fn estimate(
    params: &SolverParams,
    rows: &Rows,
    triplets: &Triplets,
    copied: bool,
) -> u64 {
    Sizes::of(rows, triplets, copied).needed(params) as u64
}

/// Refuses a run that needs more memory than the limit set, or than is available. If that is unknown, no run is refused.
/// `copied` says whether the solver copies the rows.
pub(super) fn check(
    params: &SolverParams,
    rows: &Rows,
    triplets: &Triplets,
    copied: bool,
) -> Result<()> {
    let all = triplets.len();
    let over_all = params.batch.is_some() && params.certify;
    if all >= 1 << 31 && (over_all || params.loss.segments().is_none()) {
        return Err(Error::data(format!(
            "there are {all} triplets, more than the 2^31 - 1 that can be {}",
            match params.batch {
                Some(_) => "certified".to_owned(),
                None => format!("learned from with the {} loss", params.loss),
            }
        )));
    }
    let Some(limit) = params.memory_limit.or_else(available) else {
        return Ok(());
    };
    let sizes = Sizes::of(rows, triplets, copied);
    let fits = |params: &SolverParams, sizes: Sizes| sizes.needed(params) <= limit as f64;
    if fits(params, sizes) {
        return Ok(());
    }
    let batch = BATCH.min(all / 10).max(1);
    let in_batches = SolverParams {
        batch: Some(batch),
        ..params.clone()
    };
    let can_batch = params.batch.is_none_or(|size| size > batch) && params.tolerance.is_none();
    Err(Error::Memory {
        triplets: all,
        needed: sizes.needed(params) as u64,
        limit,
        limit_is_set: params.memory_limit.is_some(),
        batch: Some(batch).filter(|_| can_batch && fits(&in_batches, sizes)),
        // Averages come from a sample of the triplets, and those of fewer triplets differ a little.
        fewer: most(all, |n| {
            1.05 * sizes.with_triplets(n as f64).needed(params) <= limit as f64
        }),
    })
}

/// A round number of triplets that fit, nearly as many as possible; none if hardly any do. `fits` is true up to some
/// number and false from there on.
fn most(all: usize, fits: impl Fn(usize) -> bool) -> Option<usize> {
    let (mut low, mut high) = (0, all);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match fits(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    let digits = low.checked_ilog10()?;
    let unit = 10usize.pow(digits.saturating_sub(1));
    Some(low / unit * unit).filter(|&n| n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Labels;
    use crate::objective::loss::LossKind;
    use crate::similarity::Dot;
    use std::collections::BTreeSet;

    #[test]
    fn the_most_that_fit_are_found_and_rounded_down() {
        for (limit, round) in [(1, 1), (9, 9), (12, 12), (129, 120), (45_678, 45_000)] {
            assert_eq!(most(1_000_000, |n| n <= limit), Some(round));
        }
        assert_eq!(most(1_000_000, |n| n == 0), None);
    }

    fn problem(per_row: usize) -> (Rows, Triplets) {
        let rows = Rows::from_parts(2, (0..=10).collect(), vec![0; 10], vec![1.0; 10]).unwrap();
        let labels = Labels::from_names((0..10).map(|r| (r % 2).to_string()));
        let triplets = Triplets::at_random(&rows, &labels, per_row, 0).unwrap();
        (rows, triplets)
    }

    #[test]
    fn what_is_advised_fits() {
        for loss in LossKind::ALL {
            let (rows, triplets) = problem(10_000_000);
            let params = SolverParams {
                loss,
                memory_limit: Some(1 << 30),
                ..SolverParams::new(1.0)
            };
            let error = check(&params, &rows, &triplets, true).unwrap_err();
            let Error::Memory {
                needed,
                fewer: Some(fewer),
                ..
            } = error
            else {
                panic!("{error}");
            };
            assert!(needed > 1 << 30 && fewer < triplets.len() / 2);
            let (rows, triplets) = problem(fewer / 10);
            check(&params, &rows, &triplets, true).unwrap();
            let (rows, triplets) = problem(fewer / 10 * 6 / 5);
            assert!(check(&params, &rows, &triplets, true).is_err());
        }
    }

    #[test]
    fn rows_that_are_too_many_get_no_advice() {
        let (rows, triplets) = problem(10);
        let params = SolverParams {
            memory_limit: Some(1000),
            ..SolverParams::new(1.0)
        };
        let error = check(&params, &rows, &triplets, true).unwrap_err();
        assert!(
            error.to_string().ends_with("the rows alone are too many"),
            "{error}"
        );
    }

    #[test]
    fn a_batch_takes_less() {
        let (rows, triplets) = problem(10_000_000);
        let sizes = Sizes::of(&rows, &triplets, true);
        let params = SolverParams::new(1.0);
        let all = sizes.needed(&params);
        let batch = sizes.needed(&SolverParams {
            batch: Some(BATCH),
            ..params
        });
        assert!(batch < all, "{batch} against {all}");
    }

    #[test]
    fn more_triplets_than_the_plain_engine_can_number_are_refused() {
        let (rows, triplets) = problem(1 << 28);
        let params = SolverParams {
            memory_limit: Some(u64::MAX),
            ..SolverParams::new(1.0)
        };
        check(&params, &rows, &triplets, true).unwrap();
        let batches = SolverParams {
            batch: Some(10),
            ..params
        };
        check(&batches, &rows, &triplets, true).unwrap();
        let error = check(
            &SolverParams {
                certify: true,
                ..batches
            },
            &rows,
            &triplets,
            true,
        )
        .unwrap_err();
        assert!(error.to_string().contains("2^31 - 1"), "{error}");
    }

    fn some_rows(n_rows: usize, nnz: usize, n_features: usize) -> Rows {
        let mut rng = crate::random::rng(n_features as u64, 9);
        let mut rows = Rows::new(n_features);
        for _ in 0..n_rows {
            let features = crate::random::sample(&mut rng, n_features, nnz);
            rows.push(SparseRow::new(&features, &vec![1.0; features.len()]));
        }
        rows
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
        let near = Triplets::by_neighbors(&Dot, &rows, &labels, [3, 4], crate::CancelToken::NEVER)
            .unwrap();
        assert_eq!(near.count_pairs(), pairs(&near));
    }

    #[test]
    fn frequent_features_affect_triplets() {
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
        assert_eq!((sizes.columns, sizes.affected), (102.0, 1.0));
        // Two rows share feature 0 always and feature 1 in a quarter of all cases.
        assert!((sizes.common - 1.25).abs() < 0.05, "{sizes:?}");
        let fewer = sizes.with_triplets(10.0);
        assert_eq!((fewer.triplets, fewer.pairs), (10.0, 20.0));
    }
}
