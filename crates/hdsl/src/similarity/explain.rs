//! What a similarity has learned, and why two rows get the score they get.

use crate::atoms::{Atom, Sign};
use crate::data::SparseRow;
use crate::similarity::BilinearModel;
use crate::sort::sort_by;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// One feature the similarity uses.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct FeatureWeight {
    /// The feature.
    pub feature: u32,
    /// M_ii: what two rows gain by both having it, per unit of each.
    pub weight: f64,
    /// With how many other features it forms a pair.
    pub n_pairs: usize,
}

/// Two features that matter together, `i < j`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PairWeight {
    /// The lower feature.
    pub i: u32,
    /// The higher feature.
    pub j: u32,
    /// M_ij: the contribution to the score if one row has `i` and the other `j`, both with value 1.
    pub weight: f64,
}

impl PairWeight {
    /// Plus if the pair makes two rows more similar, minus if less similar.
    pub fn sign(&self) -> Sign {
        match self.weight > 0.0 {
            true => Sign::Plus,
            false => Sign::Minus,
        }
    }
}

/// What one feature that both rows have adds to a score through the base.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct BaseContribution {
    /// The feature.
    pub feature: u32,
    /// β a_i b_i.
    pub value: f64,
}

/// What one unordered pair of features, or one feature with itself (`i == j`), adds to a score.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PairContribution {
    /// The lower feature.
    pub i: u32,
    /// The higher feature, or the same.
    pub j: u32,
    /// M_ij (a_i b_j + a_j b_i), or M_ii a_i b_i.
    pub value: f64,
}

/// What one atom adds to a score.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct AtomContribution {
    /// The atom.
    pub atom: Atom,
    /// weight · scale · (a_i ± a_j)(b_i ± b_j).
    pub value: f64,
}

/// Why two rows get the score they get: the contributions of the base by feature, and those of the learned part, given
/// twice: by pairs of features and by atoms. Each list sums to its part of the score, omits contributions of 0, and is
/// sorted by absolute value, the largest first.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// The score being explained: the base score plus the learned score.
    pub score: f64,
    /// The part of the base; 0 without one.
    pub base_score: f64,
    /// The learned part.
    pub learned_score: f64,
    /// Contributions to the base score by feature, the largest in absolute value first, then by feature.
    pub base: Vec<BaseContribution>,
    /// Contributions to the learned score by pair of features, the largest in absolute value first, then by features.
    pub pairs: Vec<PairContribution>,
    /// Contributions to the learned score by atom, the largest in absolute value first, then by atom.
    pub atoms: Vec<AtomContribution>,
}

impl Explanation {
    /// Divides the score and every contribution to it.
    pub(super) fn divide_by(&mut self, divisor: f64, quotient: fn(f64, f64) -> f64) {
        let base = self.base.iter_mut().map(|c| &mut c.value);
        let pairs = self.pairs.iter_mut().map(|c| &mut c.value);
        let atoms = self.atoms.iter_mut().map(|c| &mut c.value);
        let scores = [
            &mut self.score,
            &mut self.base_score,
            &mut self.learned_score,
        ];
        for value in base.chain(pairs).chain(atoms).chain(scores) {
            *value = quotient(*value, divisor);
        }
    }
}

impl BilinearModel {
    /// The features the atoms use, the largest M_ii first, then by feature. (A base adds β to M_ii of every feature.)
    ///
    /// ```
    /// # use hdsl::{Atom, BilinearModel};
    /// let atoms = vec![(Atom::plus(0, 2)?, 0.75), (Atom::minus(1, 2)?, 0.25)];
    /// let features = BilinearModel::new(3, 4.0, atoms)?.features_by_weight();
    /// assert_eq!((features[0].feature, features[0].weight, features[0].n_pairs), (2, 4.0, 2));
    /// assert_eq!(features[2].feature, 1);
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn features_by_weight(&self) -> Vec<FeatureWeight> {
        let entries = self.upper();
        let mut pairs: BTreeMap<u32, usize> = BTreeMap::new();
        for &(i, j, _) in entries.iter().filter(|e| e.0 != e.1) {
            *pairs.entry(i).or_insert(0) += 1;
            *pairs.entry(j).or_insert(0) += 1;
        }
        let mut features: Vec<FeatureWeight> = entries
            .iter()
            .filter(|e| e.0 == e.1)
            .map(|&(feature, _, weight)| FeatureWeight {
                feature,
                weight,
                n_pairs: pairs.get(&feature).copied().unwrap_or(0),
            })
            .collect();
        sort_by(&mut features, |a, b| by_size(a.weight, b.weight));
        features
    }

    /// The pairs of features that matter together, the largest |M_ij| first, then by features. The plus and the
    /// minus atom of the same two features are taken together, and left out if they cancel.
    ///
    /// ```
    /// # use hdsl::{Atom, BilinearModel};
    /// let atoms = vec![(Atom::plus(0, 2)?, 0.75), (Atom::minus(0, 2)?, 0.25)];
    /// let pairs = BilinearModel::new(3, 4.0, atoms)?.pairs_by_weight();
    /// assert_eq!((pairs.len(), pairs[0].i, pairs[0].j, pairs[0].weight), (1, 0, 2, 2.0));
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn pairs_by_weight(&self) -> Vec<PairWeight> {
        let mut pairs: Vec<PairWeight> = self
            .upper()
            .into_iter()
            .filter(|e| e.0 != e.1)
            .map(|(i, j, weight)| PairWeight { i, j, weight })
            .collect();
        sort_by(&mut pairs, |a, b| by_size(a.weight, b.weight));
        pairs
    }

    /// Splits the score of two rows into contributions that add up to it: those of the base and those of the learned part.
    ///
    /// ```
    /// # use hdsl::{Atom, BilinearModel, SparseRow};
    /// let model = BilinearModel::new(3, 2.0, vec![(Atom::plus(0, 2)?, 1.0)])?;
    /// let (a, b) = (SparseRow::new(&[0], &[1.0]), SparseRow::new(&[0, 2], &[1.0, 3.0]));
    /// let why = model.explain_pair(a, b);
    /// assert_eq!(why.score, 8.0);
    /// assert_eq!((why.pairs[0].i, why.pairs[0].j, why.pairs[0].value), (0, 2, 6.0));
    /// assert_eq!((why.pairs[1].i, why.pairs[1].j, why.pairs[1].value), (0, 0, 2.0));
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn explain_pair(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> Explanation {
        // Any product a_i b_j M_ij that is not 0 comes from atoms which both rows have a feature of.
        let (mut shared, others) = (self.atoms_met(a), self.atoms_met(b));
        shared.retain(|atom| others.binary_search(atom).is_ok());
        let mut entries: BTreeMap<(u32, u32), f64> = BTreeMap::new();
        let mut atoms = Vec::new();
        for number in shared {
            let number = number as usize;
            let (atom, weight) = (self.atoms()[number], self.weights()[number]);
            let (i, j) = (atom.i(), atom.j());
            *entries.entry((i, i)).or_insert(0.0) += weight;
            *entries.entry((j, j)).or_insert(0.0) += weight;
            *entries.entry((i, j)).or_insert(0.0) += atom.sign().value() * weight;
            atoms.push(AtomContribution {
                atom,
                value: self.scale() * (weight * (atom.project(a) * atom.project(b))),
            });
        }
        let (base, learned_score) = (self.base_contributions(a, b), self.learned_score(a, b));
        let mut pairs: Vec<PairContribution> = entries
            .into_iter()
            .map(|((i, j), weight)| {
                let product = if i == j {
                    a.get(i) * b.get(i)
                } else {
                    a.get(i) * b.get(j) + a.get(j) * b.get(i)
                };
                PairContribution {
                    i,
                    j,
                    value: self.scale() * (weight * product),
                }
            })
            .collect();
        pairs.retain(|p| p.value != 0.0);
        sort_by(&mut pairs, |p, q| by_size(p.value, q.value));
        atoms.retain(|p| p.value != 0.0);
        sort_by(&mut atoms, |p, q| {
            by_size(p.value, q.value).then(p.atom.cmp(&q.atom))
        });
        Explanation {
            score: self.score(a, b),
            base_score: self.base_score(a, b),
            learned_score,
            base,
            pairs,
            atoms,
        }
    }

    /// β a_i b_i of the features that both rows have.
    fn base_contributions(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> Vec<BaseContribution> {
        if self.base() == 0.0 {
            return Vec::new();
        }
        let contribution = |(feature, x): (u32, f64)| BaseContribution {
            feature,
            value: self.base() * (x * b.get(feature)),
        };
        let mut base: Vec<_> = self.factors.within(a).iter().map(contribution).collect();
        base.retain(|c| c.value != 0.0);
        sort_by(&mut base, |p, q| by_size(p.value, q.value));
        base
    }

    /// The atoms of a row's features, in increasing order, those whose coordinate cancels included.
    fn atoms_met(&self, row: SparseRow<'_>) -> Vec<u32> {
        let mut met: Vec<u32> = row
            .iter()
            .flat_map(|(feature, _)| self.atoms_of(feature).iter().map(|u| u.0))
            .collect();
        met.sort_unstable();
        met.dedup();
        met
    }
}

/// The larger absolute value first. Lists are in order of their features beforehand, and stable sorting keeps that
/// among equals.
fn by_size(a: f64, b: f64) -> Ordering {
    b.abs().total_cmp(&a.abs())
}
