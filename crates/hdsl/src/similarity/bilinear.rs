//! The similarity S(x, x') = β <x, x'> + xᵀ M x', M a convex combination of atoms.

use crate::atoms::{ActiveSet, Atom};
use crate::data::{Columns, Rows, SparseRow};
use crate::error::{Error, Result};
use crate::parallel;
use crate::similarity::Similarity;
use crate::similarity::factors::Factors;
use crate::sort::sort_by_key;
use std::borrow::Cow;

/// S(x, x') = β <x, x'> + xᵀ M x' with M = Σ weight · scale · (e_i ± e_j)(e_i ± e_j)ᵀ, weights above 0 that sum to 1.
///
/// M is the learned part. β is the [base](Self::with_base), a fixed number that is 0 unless it is set: the similarity is
/// then learned on top of the dot product, which under rows of unit length is the cosine.
///
/// M is never stored as a matrix: the cost of a row follows its stored values, not the number of atoms. Without a base,
/// features the atoms do not use are ignored. With a base, all features count. Those from `n_features` on never do.
///
/// ```
/// use hdsl::{Atom, BilinearModel, SparseRow};
/// let atoms = vec![(Atom::plus(0, 2)?, 0.75), (Atom::minus(1, 2)?, 0.25)];
/// let model = BilinearModel::new(3, 4.0, atoms)?;
/// let (a, b) = (SparseRow::new(&[0], &[1.0]), SparseRow::new(&[1, 2], &[1.0, 1.0]));
/// assert_eq!(model.score(a, b), 3.0); // 4 * 0.75 * 1 * (0 + 1)
/// assert_eq!((model.trace(), model.n_features_used()), (8.0, 3)); // twice the scale, always
/// let on_base = model.with_base(10.0)?;
/// assert_eq!(on_base.score(b, b), 10.0 * 2.0 + 4.0 * 0.75); // the atom of features 1 and 2 cancels
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BilinearModel {
    atoms: Vec<Atom>,
    /// The vectors e_i ± e_j of the atoms, with their weights as values.
    pub(super) factors: Factors,
}

impl BilinearModel {
    /// A similarity from its atoms and weights; `scale` is λ. Weights are above 0 and sum to 1 (to 1e-9), atoms
    /// are distinct and use features below `n_features`.
    pub fn new(n_features: usize, scale: f64, weighted: Vec<(Atom, f64)>) -> Result<Self> {
        Self::from_active(n_features, scale, &ActiveSet::from_weighted(&weighted)?)
    }

    /// The similarity of one iterate of the solver.
    pub fn from_active(n_features: usize, scale: f64, active: &ActiveSet) -> Result<Self> {
        Self::on_base(n_features, scale, active, 0.0)
    }

    /// β <x, x'> alone, with no atoms: a reference similarity that can be used wherever a learned one can.
    ///
    /// ```
    /// # use hdsl::{BilinearModel, SparseRow};
    /// let model = BilinearModel::base_only(3, 2.0)?;
    /// let (a, b) = (SparseRow::new(&[0, 2], &[1.0, 3.0]), SparseRow::new(&[2, 7], &[1.0, 1.0]));
    /// assert_eq!(model.score(a, b), 6.0);
    /// assert!(BilinearModel::base_only(3, 0.0).is_err()); // it would be 0 for all rows
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn base_only(n_features: usize, base: f64) -> Result<Self> {
        Self::on_base(n_features, 1.0, &ActiveSet::default(), base)
    }

    /// The similarity of one iterate on top of a base, which has at least one atom unless the base is above 0.
    pub(crate) fn on_base(
        n_features: usize,
        scale: f64,
        active: &ActiveSet,
        base: f64,
    ) -> Result<Self> {
        if !(scale.is_finite() && scale > 0.0) {
            return Err(Error::param("scale", scale, "a finite number above 0"));
        }
        if active.is_empty() && base == 0.0 {
            return Err(Error::data(
                "a similarity needs at least one atom, or a base above 0",
            ));
        }
        if let Some(atom) = active.atoms().iter().find(|a| a.j() as usize >= n_features) {
            return Err(Error::Data(format!(
                "an atom uses feature {}, but there are {n_features} features",
                atom.j()
            )));
        }
        // With a base there is one coordinate per feature and one per atom.
        if base > 0.0 && n_features + active.len() > u32::MAX as usize {
            return Err(Error::Data(format!(
                "there are {n_features} features and {} atoms, expected fewer than 2^32 together for a similarity with a \
                 base",
                active.len()
            )));
        }
        let mut entries = Vec::with_capacity(2 * active.len());
        for (c, atom) in (0..).zip(active.atoms()) {
            entries.extend([(c, atom.i(), 1.0), (c, atom.j(), atom.sign().value())]);
        }
        let columns = Columns::from_features(n_features, active.features());
        let weights = active.weights().collect();
        let learned = Self {
            atoms: active.atoms().to_vec(),
            factors: Factors::new(n_features, scale, weights, columns, &entries),
        };
        learned.with_base(base)
    }

    /// The same learned part on top of β <x, x'>; β is finite and at least 0.
    ///
    /// ```
    /// # use hdsl::{Atom, BilinearModel, SparseRow};
    /// let model = BilinearModel::new(3, 2.0, vec![(Atom::plus(0, 2)?, 1.0)])?.with_base(5.0)?;
    /// let (a, b) = (SparseRow::new(&[0, 1], &[1.0, 1.0]), SparseRow::new(&[1, 2], &[3.0, 1.0]));
    /// assert_eq!(model.score(a, b), 5.0 * 3.0 + 2.0); // feature 1 in both rows, and the pair of features 0 and 2
    /// assert!(model.with_base(-1.0).is_err());
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn with_base(mut self, base: f64) -> Result<Self> {
        if !(base.is_finite() && base >= 0.0) {
            return Err(Error::param("base", base, "a finite number of 0 or above"));
        }
        if base == 0.0 && self.atoms.is_empty() {
            return Err(Error::data(
                "a similarity needs at least one atom, or a base above 0",
            ));
        }
        let n_coordinates = self.n_features().saturating_add(self.atoms.len());
        if base > 0.0 && n_coordinates > u32::MAX as usize {
            return Err(Error::Data(format!(
                "{} features and {} atoms are too many for a base: expected at most {} together",
                self.n_features(),
                self.atoms.len(),
                u32::MAX
            )));
        }
        // Not -0.
        self.factors.base = base.abs();
        Ok(self)
    }

    /// β, the factor of the dot product below the learned part; 0 if there is none.
    pub fn base(&self) -> f64 {
        self.factors.base
    }

    /// β <a, b>, the part of the score that was not learned.
    pub fn base_score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        self.factors.base_score(a, b)
    }

    /// aᵀ M b, the learned part of the score.
    pub fn learned_score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        self.factors.learned_score(a, b)
    }

    /// How many features rows have (d in the paper), used or not.
    pub fn n_features(&self) -> usize {
        self.factors.n_features
    }

    /// λ, the size of each atom.
    pub fn scale(&self) -> f64 {
        self.factors.lambda
    }

    /// The atoms, in order of first use.
    pub fn atoms(&self) -> &[Atom] {
        &self.atoms
    }

    /// Their weights, in the same order.
    pub fn weights(&self) -> &[f64] {
        &self.factors.values
    }

    /// Atoms with their weights, in order of first use.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Atom, f64)> + '_ {
        self.atoms
            .iter()
            .copied()
            .zip(self.weights().iter().copied())
    }

    /// How many distinct features the atoms use: those of the learned part. (A base uses all features.)
    pub fn n_features_used(&self) -> usize {
        self.factors.columns.len()
    }

    /// The features the atoms use, in increasing order.
    pub fn features_used(&self) -> &[u32] {
        self.factors.columns.features()
    }

    /// The trace of M, the learned part: 2λ times the sum of weights, which is 1 up to rounding.
    pub fn trace(&self) -> f64 {
        2.0 * self.scale() * self.weights().iter().sum::<f64>()
    }

    /// The atoms that use a feature, as (place in [`Self::atoms`], sign of the feature in it).
    pub(super) fn atoms_of(&self, feature: u32) -> &[(u32, f64)] {
        self.factors.using(feature)
    }

    /// S(a, b): the base score plus the learned score, which is summed atom by atom. The same whichever row comes first.
    ///
    /// ```
    /// # use hdsl::{Atom, BilinearModel, SparseRow};
    /// let model = BilinearModel::new(3, 2.0, vec![(Atom::minus(0, 2)?, 1.0)])?;
    /// let (a, b) = (SparseRow::new(&[0], &[1.0]), SparseRow::new(&[2], &[3.0]));
    /// assert_eq!(model.score(a, b), -6.0); // the pair of features 0 and 2 makes rows less similar
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        self.factors.score(a, b)
    }

    /// S of many pairs of rows, each a row number in `a` and one in `b`; in parallel.
    ///
    /// ```
    /// # use hdsl::{Atom, BilinearModel, Rows};
    /// let model = BilinearModel::new(2, 1.0, vec![(Atom::plus(0, 1)?, 1.0)])?;
    /// let rows = Rows::from_parts(2, vec![0, 1, 3], vec![0, 0, 1], vec![1.0, 2.0, 3.0])?;
    /// assert_eq!(model.score_many(&rows, &rows, &[(0, 1), (1, 1)])?, [5.0, 25.0]);
    /// assert!(model.score_many(&rows, &rows, &[(0, 2)]).is_err()); // there is no row 2
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn score_many(&self, a: &Rows, b: &Rows, pairs: &[(u32, u32)]) -> Result<Vec<f64>> {
        for (index, &(p, q)) in pairs.iter().enumerate() {
            for (row, rows) in [(p, a), (q, b)] {
                if row as usize >= rows.n_rows() {
                    return Err(Error::Data(format!(
                        "pair {index} names row {row}, but there are {} rows",
                        rows.n_rows()
                    )));
                }
            }
        }
        Ok(parallel::map_blocks(pairs.len(), 256, |at| {
            let (p, q) = pairs[at];
            self.score(a.row(p as usize), b.row(q as usize))
        }))
    }

    /// Maps rows into a space where the similarity is the inner product, in parallel.
    ///
    /// Use inner product search there. Euclidean distance ranks differently, since mapped rows differ in length.
    ///
    /// With a base the first coordinates are `sqrt(base) * x`, one per feature. Then follows one coordinate per active
    /// atom, in their order: `sqrt(scale * weight) * (x_i ± x_j)`, hence at most `iter + 1` of them (Lemma 1). No eigendecomposition is needed: the atoms already are a square root. A coordinate too large
    /// for a number (only if the row's own values were close to that) becomes the largest number.
    ///
    /// ```
    /// # use hdsl::{Atom, BilinearModel, Rows};
    /// let model = BilinearModel::new(3, 2.0, vec![(Atom::plus(0, 2)?, 1.0)])?;
    /// let rows = Rows::from_parts(3, vec![0, 1, 3], vec![0, 0, 2], vec![1.0, 1.0, 3.0])?;
    /// let mapped = model.transform_rows(&rows);
    /// assert_eq!(model.score(rows.row(0), rows.row(1)), 8.0); // 2 * (1) * (1 + 3)
    /// assert!((mapped.row(0).dot(mapped.row(1)) - 8.0).abs() < 1e-12);
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn transform_rows(&self, rows: &Rows) -> Rows {
        self.factors.transform_rows(rows)
    }

    /// [`BilinearModel::transform_rows`] without the coordinates of the base.
    pub(crate) fn learned_rows(&self, rows: &Rows) -> Rows {
        self.factors.learned_rows(rows)
    }

    /// M, the learned part without the base, as a sparse list of (row, column, value), both halves, sorted by row and then column. Entries where
    /// a plus and a minus atom cancel exactly are left out.
    ///
    /// ```
    /// # use hdsl::{Atom, BilinearModel};
    /// let model = BilinearModel::new(9, 2.0, vec![(Atom::minus(3, 7)?, 1.0)])?;
    /// assert_eq!(model.matrix(), [(3, 3, 2.0), (3, 7, -2.0), (7, 3, -2.0), (7, 7, 2.0)]);
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn matrix(&self) -> Vec<(u32, u32, f64)> {
        let mut entries = self.upper();
        for at in 0..entries.len() {
            let (i, j, value) = entries[at];
            if i != j {
                entries.push((j, i, value));
            }
        }
        sort_by_key(&mut entries, |e| (e.0, e.1));
        entries
    }

    /// The entries of M with i <= j that are not 0, sorted.
    pub(super) fn upper(&self) -> Vec<(u32, u32, f64)> {
        let mut entries = Vec::with_capacity(3 * self.atoms.len());
        for (atom, weight) in self.atoms.iter().zip(self.weights()) {
            entries.push((atom.i(), atom.i(), *weight));
            entries.push((atom.j(), atom.j(), *weight));
            entries.push((atom.i(), atom.j(), atom.sign().value() * weight));
        }
        // A stable sort: entries are summed in the order of the atoms.
        sort_by_key(&mut entries, |e| (e.0, e.1));
        entries.dedup_by(|later, kept| {
            let same = (later.0, later.1) == (kept.0, kept.1);
            if same {
                kept.2 += later.2;
            }
            same
        });
        entries.retain_mut(|e| {
            e.2 *= self.scale();
            e.2 != 0.0
        });
        entries
    }
}

impl Similarity for BilinearModel {
    fn score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        BilinearModel::score(self, a, b)
    }

    fn queries<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows> {
        Cow::Owned(self.transform_rows(rows))
    }
}
