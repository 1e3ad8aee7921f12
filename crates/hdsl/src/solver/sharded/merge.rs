//! The best column over all shards, from the best columns of each shard.
//!
//! Let a_j^w = D_j + |H_ij| over shard w. By the triangle inequality, D_j + |H_ij| over all shards is at most Σ_w a_j^w.
//! Each shard lists the columns with its largest a_j^w, and gives an upper bound of the others. A column that is listed by
//! every shard has an exact sum; for any other column, the bounds replace what is missing. If no such upper bound reaches
//! the best exact sum, that is the best over all columns. Otherwise the missing values are asked for.

use super::protocol::Partners;
use crate::solver::partner::Partner;
use std::collections::BTreeMap;

/// A slack for rounding errors of bounds.
const SLACK: f64 = 1e-9;

/// The answers of all shards about one feature i, or about D alone.
#[derive(Default)]
pub(super) struct Merge {
    /// By column: what each shard listed, in the order of shards.
    columns: BTreeMap<u32, Vec<Option<Partner>>>,
    /// D_i over all shards.
    pub(super) diagonal: f64,
    /// The bound of each shard for the columns that it did not list.
    bounds: Vec<f64>,
}

/// The columns that may still be better than the best exact sum.
pub(super) struct Open {
    /// Columns that some shards listed.
    pub(super) columns: Vec<u32>,
    /// Whether a column that no shard listed may be better.
    pub(super) unseen: bool,
}

impl Open {
    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty() && !self.unseen
    }
}

impl Merge {
    /// Adds the answers of all shards, in their order.
    pub(super) fn add(&mut self, answers: Vec<Partners>) {
        let n = answers.len();
        self.bounds.resize(n, f64::INFINITY);
        self.diagonal = answers.iter().map(|answer| answer.diagonal).sum();
        for (shard, answer) in answers.into_iter().enumerate() {
            for partner in answer.listed {
                let listed = self.columns.entry(partner.column);
                listed.or_insert_with(|| vec![None; n])[shard] = Some(partner);
            }
            if let Some(bound) = answer.bound {
                self.bounds[shard] = self.bounds[shard].min(bound);
            }
        }
    }

    /// The columns that all shards listed, with their sums.
    pub(super) fn complete(&self) -> impl Iterator<Item = Partner> + '_ {
        self.columns.iter().filter_map(|(&column, listed)| {
            let mut sum = Partner {
                column,
                diagonal: 0.0,
                h: 0.0,
            };
            for part in listed {
                let part = part.as_ref()?;
                sum.diagonal += part.diagonal;
                sum.h += part.h;
            }
            Some(sum)
        })
    }

    /// The columns whose sum is not known and may reach `required`.
    pub(super) fn open(&self, required: f64) -> Open {
        let may_reach = |known: f64, missing: f64| {
            known + missing + SLACK * (known.abs() + missing.abs()) >= required
        };
        let upper = |listed: &[Option<Partner>]| {
            let known = listed.iter().flatten();
            let (d, h) = known.fold((0.0, 0.0), |sum, p| (sum.0 + p.diagonal, sum.1 + p.h));
            let missing = listed.iter().zip(&self.bounds).filter(|(p, _)| p.is_none());
            (d + h.abs(), missing.map(|(_, bound)| bound).sum::<f64>())
        };
        let is_open = |listed: &[Option<Partner>]| {
            let (known, missing) = upper(listed);
            listed.contains(&None) && may_reach(known, missing)
        };
        Open {
            columns: (self.columns.iter())
                .filter(|(_, listed)| is_open(listed))
                .map(|(&column, _)| column)
                .collect(),
            unseen: may_reach(0.0, self.bounds.iter().sum()),
        }
    }

    /// A value that at least one shard must reach for a column to reach `required` over all shards. It is lower by more than
    /// the slack of [`Self::open`], so that columns below it in every shard are not open.
    pub(super) fn share_of(&self, required: f64) -> f64 {
        let share = required / self.bounds.len() as f64;
        share - 3.0 * SLACK * share.abs() - f64::MIN_POSITIVE
    }
}
