//! H_ij of the active atoms over the triplets of one shard.

use super::changes::Changes;
use super::{Affine, Coefficients, add};
use crate::objective::active_features::ActiveFeatures;

/// The sums, and a buffer for their update.
#[derive(Default)]
pub(crate) struct Cross {
    /// H_ij of each active atom, in their order.
    sums: Vec<Affine>,
    /// Σ_q delta_q x_qg over the changed pairs {anchor, q} of one anchor, for each active feature g.
    by_feature: Vec<Affine>,
}

impl Cross {
    /// Sets all sums of `n_atoms` active atoms to 0.
    pub(super) fn reset(&mut self, n_atoms: usize) {
        self.sums.clear();
        self.sums.resize(n_atoms, [0.0; 2]);
    }

    /// H_ij of the active atom at this place.
    #[inline]
    pub(crate) fn get(&self, place: usize) -> Affine {
        self.sums[place]
    }

    /// Adds an active atom.
    pub(super) fn push(&mut self, sum: Affine) {
        self.sums.push(sum);
    }

    /// Removes the atoms that do not stay.
    pub(crate) fn retain(&mut self, stays: &[bool]) {
        let mut stays = stays.iter();
        (self.sums).retain(|_| *stays.next().expect("each has an atom"));
    }

    /// For each changed pair {anchor, q}, adds delta_q (x_i x_qj + x_j x_qi) to H_ij, where x is the anchor's row.
    pub(super) fn update(
        &mut self,
        changes: &Changes,
        coefficients: &Coefficients,
        features: &ActiveFeatures,
    ) {
        self.by_feature.resize(features.n_features(), [0.0; 2]);
        // Slices stay in registers, where vectors would be read again after every addition.
        let (by_feature, sums) = (&mut self.by_feature[..], &mut self.sums[..]);
        for (anchor, changes) in changes.by_anchor() {
            let own = features.row(anchor);
            if own.is_empty() {
                continue;
            }
            let others = &coefficients.others()[coefficients.pairs_of(anchor)];
            by_feature.fill([0.0; 2]);
            for &(local, delta) in changes {
                for &(feature, x) in features.row(others[local] as usize) {
                    add(&mut by_feature[feature as usize], delta, x);
                }
            }
            for &(feature, x) in own {
                for link in features.links(feature) {
                    add(&mut sums[link.atom], by_feature[link.to as usize], x);
                }
            }
        }
    }
}
