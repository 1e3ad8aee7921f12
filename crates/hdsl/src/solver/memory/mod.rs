//! Whether a run fits in memory, found out before it starts: better refused with advice than killed half-way.

mod available;
mod sizes;

use super::SolverParams;
use super::margin_store::n_shards;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::objective::incremental::{MAX_WORK, has_own_pairs};
use crate::triplets::Triplets;
use available::available;
use sizes::Sizes;

/// The batch to suggest, or a tenth of the triplets if those are fewer.
const BATCH: usize = 100_000;

/// What does not depend on the problem, in bytes: the path, the trace, buffers of threads.
const FIXED: f64 = 1e6;

/// A stored value of rows that are copied.
const ROW_VALUE: f64 = 12.0;

/// A pair that the incremental engine takes for a triplet's own.
const OWN_PAIR: f64 = 20.0;

/// Active atoms are never more than iterations, and hardly ever more than this.
const MOST_ATOMS: f64 = 2_000.0;

/// The engines, as far as memory goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Books {
    Incremental,
    Plain,
    /// Margins of all triplets, everything else for a batch of them.
    Batch,
}

/// Bytes at the busiest moment of a run for each thing there is, beyond the rows and triplets given.
///
/// They follow from the fields of `Problem` and of the engine, and from what is held for a while only: a list that grows
/// may take twice its length, and another time its length while it moves. `tests/memory.rs` tells whether they still fit.
struct Costs {
    /// A stored value of the rows; a row; a column that occurs.
    value: f64,
    row: f64,
    column: f64,
    /// A row and a column, in each shard.
    shard_row: f64,
    shard_column: f64,
    /// A triplet; more if it is touched by a step; more if there are weights; a triplet of the batch.
    triplet: f64,
    touched: f64,
    weight: f64,
    batch: f64,
    /// A pair of an anchor and another row; a feature both have.
    pair: f64,
    product: f64,
    /// A row that holds a feature of an active atom, for each such atom.
    atom_row: f64,
}

impl Books {
    /// Whom [`Solver::run`](super::Solver) leaves the books to.
    fn of(params: &SolverParams) -> Self {
        match (params.loss.segments(), params.batch) {
            (Some(_), None) => Books::Incremental,
            // A certificate is taken over all triplets.
            (Some(_), Some(_)) if params.certify => Books::Plain,
            (Some(_), Some(_)) => Books::Batch,
            (None, _) => Books::Plain,
        }
    }

    #[rustfmt::skip] // a table
    fn costs(self) -> Costs {
        match self {
            Books::Incremental => Costs {
                value: 30.0, row: 76.0, column: 44.0, shard_row: 28.0, shard_column: 18.0,
                triplet: 20.0, touched: 44.0, weight: 8.0, batch: 0.0,
                pair: 38.0, product: 24.0, atom_row: 0.0,
            },
            Books::Plain => Costs {
                value: 30.0, row: 100.0, column: 60.0, shard_row: 0.0, shard_column: 0.0,
                triplet: 44.0, touched: 0.0, weight: 0.0, batch: 0.0,
                pair: 44.0, product: 0.0, atom_row: 24.0,
            },
            Books::Batch => Costs {
                value: 30.0, row: 116.0, column: 68.0, shard_row: 0.0, shard_column: 0.0,
                triplet: 11.2, touched: 44.0, weight: 8.0, batch: 180.0,
                pair: 0.0, product: 0.0, atom_row: 24.0,
            },
        }
    }

    /// About how many bytes a run takes at its busiest.
    fn needed(self, sizes: &Sizes, params: &SolverParams) -> f64 {
        let costs = self.costs();
        let shards = match self {
            Books::Incremental => n_shards(sizes.triplets as usize) as f64,
            Books::Plain | Books::Batch => 1.0,
        };
        let own = self == Books::Incremental && has_own_pairs(sizes.pairs, sizes.triplets);
        let (pairs, pair) = match own {
            true => (2.0 * sizes.triplets, OWN_PAIR),
            false => (sizes.pairs, costs.pair),
        };
        // Products are not kept where there would be more than this many, or finding them would take long.
        let limit = 8.0 * (shards * sizes.values + sizes.triplets);
        let work = pairs * sizes.values / sizes.rows.max(1.0) / shards;
        let products = match work > MAX_WORK as f64 {
            true => 0.0,
            false => (pairs * sizes.shared).min(limit),
        };
        let taken = if sizes.copied { 0.0 } else { ROW_VALUE };
        let weight = if sizes.weighted { costs.weight } else { 0.0 };
        let batch = params.batch.map_or(0.0, |size| size as f64);
        let atoms = (params.max_iter as f64 + 1.0).min(MOST_ATOMS);
        let atom_rows = atoms * sizes.rows * (2.0 * sizes.holders).min(1.0);
        FIXED
            + sizes.values * (costs.value - taken)
            + sizes.rows * (costs.row + shards * costs.shard_row)
            + sizes.columns * (costs.column + shards * costs.shard_column)
            + sizes.triplets * (costs.triplet + sizes.touched * costs.touched + weight)
            + batch.min(sizes.triplets) * costs.batch
            + pairs * pair
            + products * costs.product
            + atom_rows * costs.atom_row
    }
}

/// About how many bytes a run takes at its busiest, beyond the rows and triplets given.
fn needed(params: &SolverParams, sizes: &Sizes) -> f64 {
    Books::of(params).needed(sizes, params)
}

/// The same in whole bytes, for those who want to know; `copied` as in [`check`].
pub(super) fn estimate(
    params: &SolverParams,
    rows: &Rows,
    triplets: &Triplets,
    copied: bool,
) -> u64 {
    needed(params, &Sizes::of(rows, triplets, copied)) as u64
}

/// Refuses a run that takes more than the limit set, or than is free. Where nobody knows what is free, none is refused.
/// Rows that somebody else keeps are copied, others taken over.
pub(super) fn check(
    params: &SolverParams,
    rows: &Rows,
    triplets: &Triplets,
    copied: bool,
) -> Result<()> {
    let all = triplets.len();
    if all >= 1 << 31 && Books::of(params) == Books::Plain {
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
    let fits = |params: &SolverParams, sizes: &Sizes| needed(params, sizes) <= limit as f64;
    if fits(params, &sizes) {
        return Ok(());
    }
    let batch = BATCH.min(all / 10).max(1);
    let in_batches = params.clone().batch(batch);
    let can_batch = params.batch.is_none_or(|size| size > batch) && params.tolerance.is_none();
    Err(Error::Memory {
        triplets: all,
        needed: needed(params, &sizes) as u64,
        limit,
        limit_is_set: params.memory_limit.is_some(),
        batch: Some(batch).filter(|_| can_batch && fits(&in_batches, &sizes)),
        fewer: most(all, |n| fits(params, &sizes.with_triplets(n as f64))),
    })
}

/// A round number of triplets that fit, nearly as many as can be; none if hardly any do. `fits` is true up to some number
/// and false from there on.
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
            let params = SolverParams::new(1.0).loss(loss).memory_limit(1 << 30);
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
        let params = SolverParams::new(1.0).memory_limit(1000);
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
        let params = SolverParams::new(1.0).batch(BATCH);
        let batch = Books::Batch.needed(&sizes, &params);
        let all = Books::Incremental.needed(&sizes, &params);
        assert!(batch < all, "{batch} against {all}");
    }

    #[test]
    fn more_triplets_than_the_plain_engine_can_number_are_refused() {
        let (rows, triplets) = problem(1 << 28);
        let params = SolverParams::new(1.0).memory_limit(u64::MAX);
        check(&params, &rows, &triplets, true).unwrap();
        let batches = params.batch(10);
        check(&batches, &rows, &triplets, true).unwrap();
        let error = check(&batches.certify(true), &rows, &triplets, true).unwrap_err();
        assert!(error.to_string().contains("2^31 - 1"), "{error}");
    }
}
