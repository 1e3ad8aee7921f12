//! An estimate of the memory that a run needs, made before it starts: a run that does not fit is refused with advice.

mod available;

use super::SolverParams;
use super::margin_store::n_shards;
use crate::data::{Columns, Rows};
use crate::error::{Error, Result};
use crate::objective::incremental::{MAX_WORK, has_own_pairs};
use crate::triplets::Triplets;
use available::available;
use std::collections::HashMap;

/// Bytes that do not depend on the problem: the path, the trace, buffers of threads.
const FIXED: f64 = 1e6;

/// Bytes per stored value of the rows, which the solver copies or takes over.
const COPIED_VALUE: f64 = 54.0;
const OWNED_VALUE: f64 = 42.0;

/// The numbers that memory depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    rows: f64,
    /// Stored values.
    values: f64,
    /// Columns that occur.
    columns: f64,
    triplets: f64,
    /// Distinct (anchor, near) and (anchor, far).
    pairs: f64,
    /// Bytes of the weight of a triplet.
    weight: f64,
    /// Bytes per stored value of the rows by rows and by columns.
    per_value: f64,
    /// Features that both rows of a pair contain, on average.
    common: f64,
    /// The share of triplets that a step along the two most frequent features affects.
    affected: f64,
}

impl Sizes {
    /// `copied` says whether the solver copies the rows.
    pub(super) fn of(rows: &Rows, triplets: &Triplets, copied: bool) -> Self {
        let (common, affected) = averages(rows, triplets);
        Self {
            rows: rows.n_rows() as f64,
            values: rows.nnz() as f64,
            columns: Columns::of(rows).len() as f64,
            triplets: triplets.len() as f64,
            pairs: triplets.count_pairs(),
            weight: triplets.weights().map_or(0.0, |_| 8.0),
            per_value: if copied { COPIED_VALUE } else { OWNED_VALUE },
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
    pub(super) fn needed(&self, params: &SolverParams) -> f64 {
        let (triplets, pairs) = (self.triplets, self.pairs);
        // A base adds b of a triplet, and a second code.
        let base = if params.base > 0.0 { 1.0 } else { 0.0 };
        let margin = 44.0 * self.affected + self.weight + 10.0 * base;
        // Margins of a loss that is not a hinge: all of them, and their changes.
        let all_margins = 24.0 + 24.0 * base;
        let engine = match (params.loss.segments(), params.batch) {
            (Some(_), None) => self.pair_store(margin),
            (None, None) => self.pair_store(16.0) + triplets * all_margins,
            (segments, Some(size)) => {
                // A certificate is computed over all triplets.
                let batch = match params.certify {
                    true => triplets,
                    false => triplets.min(size as f64),
                };
                let per_triplet = segments.map_or(all_margins, |_| 11.2 + margin);
                self.rows * 116.0
                    + self.columns * 68.0
                    + triplets * per_triplet
                    + batch * 36.0
                    + pairs.min(2.0 * batch) * 48.0
            }
        };
        FIXED + self.values * self.per_value + engine
    }

    /// A store of all pairs, given the bytes of a triplet besides its pairs and its margin.
    fn pair_store(&self, margin: f64) -> f64 {
        let (triplets, shards) = (self.triplets, n_shards(self.triplets as usize) as f64);
        let (pairs, per_pair) = match has_own_pairs(self.pairs, triplets) {
            true => (2.0 * triplets, 20.0),
            false => (self.pairs, 38.0),
        };
        self.rows * (72.0 + 24.0 * shards)
            + self.columns * (44.0 + 18.0 * shards)
            + triplets * (20.0 + margin)
            + pairs * per_pair
            + 24.0 * self.products(pairs, shards)
    }

    /// Stored products of two rows of a pair. None are stored if there would be too many or it would take too long.
    fn products(&self, pairs: f64, shards: f64) -> f64 {
        let work = pairs * self.values / self.rows.max(1.0) / shards;
        if work > MAX_WORK as f64 {
            return 0.0;
        }
        let limit = 8.0 * (shards * self.values + self.triplets);
        limit.min(pairs * self.common)
    }
}

/// Triplets that averages are estimated from.
const SAMPLE: usize = 1_000;

/// Features that both rows of a pair contain, and the share of triplets that a step along the two features affects which
/// most triplets share; both from a sample of the triplets.
fn averages(rows: &Rows, triplets: &Triplets) -> (f64, f64) {
    let (mut n, mut both, mut affected) = (0, 0, HashMap::<u32, usize>::new());
    let every = triplets.len().div_ceil(SAMPLE).max(1);
    for t in (0..triplets.len()).step_by(every) {
        let (anchor, near, far) = triplets.get(t);
        let [anchor, near, far] = [anchor, near, far].map(|row| rows.row(row as usize));
        for &feature in anchor.indices() {
            let shared = [near, far].map(|row| usize::from(row.get(feature) != 0.0));
            if shared != [0, 0] {
                both += shared[0] + shared[1];
                *affected.entry(feature).or_default() += 1;
            }
        }
        n += 1;
    }
    let mut affected: Vec<usize> = affected.into_values().collect();
    affected.sort_unstable_by(|a, b| b.cmp(a));
    let affected: usize = affected.iter().take(2).sum();
    let n = f64::from(n.max(1));
    (0.5 * both as f64 / n, (affected as f64 / n).min(1.0))
}

/// The batch to suggest, or a tenth of the triplets if those are fewer.
const BATCH: usize = 100_000;

/// The limit that is set, or else what is available; none if that is unknown.
pub(crate) fn budget(limit: Option<u64>) -> Option<u64> {
    limit.or_else(available)
}

/// Refuses a run that needs more memory than the limit set, or than is available. If that is unknown, no run is refused.
pub(crate) fn check(
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
    let Some(limit) = budget(params.memory_limit) else {
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

/// The largest number of triplets below `all` that fit, rounded down to two digits; none if not one does.
fn most(all: usize, fits: impl Fn(usize) -> bool) -> Option<usize> {
    let scales = (0..all.checked_ilog10()?).rev();
    let round = scales.flat_map(|zeros| (10..100).rev().map(move |n| n * 10usize.pow(zeros)));
    let mut round = round.chain((1..10).rev()).filter(|&n| n < all);
    round.find(|&n| fits(n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Labels, SparseRow};
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
