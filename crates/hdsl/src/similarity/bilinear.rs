//! The learned similarity S_M(x, x') = xᵀ M x', M a convex combination of atoms.

use crate::atoms::{ActiveSet, Atom};
use crate::data::{Columns, Rows, SparseRow, map_rows};
use crate::error::{Error, Result};
use crate::similarity::Similarity;
use std::borrow::Cow;

/// S_M(x, x') = xᵀ M x' with M = Σ weight · scale · (e_i ± e_j)(e_i ± e_j)ᵀ, weights above 0 that sum to 1.
///
/// M is never stored as a matrix. Beside the atoms there is an index from feature to atoms, so that the cost of a
/// row follows its stored values, not the number of atoms. Features the model does not use are ignored wherever
/// they turn up, also those beyond `n_features`.
///
/// ```
/// use hdsl::{Atom, BilinearModel, SparseRow};
/// let atoms = vec![(Atom::plus(0, 2)?, 0.75), (Atom::minus(1, 2)?, 0.25)];
/// let model = BilinearModel::new(3, 4.0, atoms)?;
/// let (a, b) = (SparseRow::new(&[0], &[1.0]), SparseRow::new(&[1, 2], &[1.0, 1.0]));
/// assert_eq!(model.score(a, b), 3.0); // 4 * 0.75 * 1 * (0 + 1)
/// assert_eq!((model.trace(), model.n_features_used()), (8.0, 3)); // twice the scale, always
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BilinearModel {
    n_features: usize,
    scale: f64,
    atoms: Vec<Atom>,
    weights: Vec<f64>,
    roots: Vec<f64>,
    columns: Columns,
    /// Feature number (of `columns`) to its atoms: `uses[starts[n]..starts[n + 1]]`.
    starts: Vec<usize>,
    uses: Vec<(u32, f64)>,
}

impl BilinearModel {
    /// A similarity from its atoms and weights; `scale` is λ. Weights are above 0 and sum to 1 (to 1e-9), atoms
    /// are distinct and use features below `n_features`.
    pub fn new(n_features: usize, scale: f64, weighted: Vec<(Atom, f64)>) -> Result<Self> {
        Self::from_active(n_features, scale, &ActiveSet::from_weighted(&weighted)?)
    }

    /// The similarity of one iterate of the solver.
    pub fn from_active(n_features: usize, scale: f64, active: &ActiveSet) -> Result<Self> {
        if !(scale.is_finite() && scale > 0.0) {
            return Err(Error::param("scale", scale, "a finite number above 0"));
        }
        if active.is_empty() {
            return Err(Error::data("a similarity needs at least one atom"));
        }
        if let Some(atom) = active.atoms().iter().find(|a| a.j() as usize >= n_features) {
            return Err(Error::Data(format!(
                "an atom uses feature {}, but there are {n_features} features",
                atom.j()
            )));
        }
        let atoms = active.atoms().to_vec();
        let weights = active.weights().to_vec();
        let roots = weights.iter().map(|w| scale.sqrt() * w.sqrt()).collect();
        let columns = Columns::from_features(n_features, active.features());
        let mut lists: Vec<Vec<(u32, f64)>> = vec![Vec::new(); columns.len()];
        for (number, atom) in atoms.iter().enumerate() {
            for (feature, sign) in [(atom.i(), 1.0), (atom.j(), atom.sign().value())] {
                let at = columns.number(feature).expect("used features are numbered");
                lists[at as usize].push((number as u32, sign));
            }
        }
        let mut starts = vec![0];
        starts.extend(lists.iter().scan(0, |end, list| {
            *end += list.len();
            Some(*end)
        }));
        Ok(Self {
            n_features,
            scale,
            atoms,
            weights,
            roots,
            columns,
            starts,
            uses: lists.concat(),
        })
    }

    /// How many features rows have (d in the paper), used or not.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// λ, the size of each atom.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// The atoms, in order of first use.
    pub fn atoms(&self) -> &[Atom] {
        &self.atoms
    }

    /// Their weights, in the same order.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// How many distinct features the atoms use.
    pub fn n_features_used(&self) -> usize {
        self.columns.len()
    }

    /// The features the atoms use, in increasing order.
    pub fn features_used(&self) -> &[u32] {
        self.columns.features()
    }

    /// The trace of M: 2λ times the sum of weights, which is 1 up to rounding.
    pub fn trace(&self) -> f64 {
        2.0 * self.scale * self.weights.iter().sum::<f64>()
    }

    /// The atoms that use a feature, as (place in [`Self::atoms`], sign of the feature in it).
    pub(super) fn atoms_of(&self, feature: u32) -> &[(u32, f64)] {
        match self.columns.number(feature) {
            Some(n) => &self.uses[self.starts[n as usize]..self.starts[n as usize + 1]],
            None => &[],
        }
    }

    /// S_M(a, b), summed atom by atom; the same whichever row comes first.
    ///
    /// ```
    /// # use hdsl::{Atom, BilinearModel, SparseRow};
    /// let model = BilinearModel::new(3, 2.0, vec![(Atom::minus(0, 2)?, 1.0)])?;
    /// let (a, b) = (SparseRow::new(&[0], &[1.0]), SparseRow::new(&[2], &[3.0]));
    /// assert_eq!(model.score(a, b), -6.0); // features 0 and 2 mean unlike
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        let (a, b) = (self.projections(a), self.projections(b));
        let mut sum = 0.0;
        let mut q = 0;
        for (atom, x) in a {
            while q < b.len() && b[q].0 < atom {
                q += 1;
            }
            if q < b.len() && b[q].0 == atom {
                sum += self.weights[atom as usize] * (x * b[q].1);
            }
        }
        self.scale * sum
    }

    /// S_M of many pairs of rows, each a row number in `a` and one in `b`; in parallel.
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
        use crate::parallel::prelude::*;
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
        Ok(pairs
            .par_iter()
            .with_min_len(256)
            .map(|&(p, q)| self.score(a.row(p as usize), b.row(q as usize)))
            .collect())
    }

    /// Maps a row into the space where the learned similarity is a plain dot product.
    ///
    /// One coordinate per active atom, `sqrt(scale * weight) * (x_i ± x_j)`, hence at most `iter + 1`
    /// of them (Lemma 1). No eigendecomposition is needed: the atoms already are a square root.
    ///
    /// ```
    /// # use hdsl::{Atom, BilinearModel, SparseRow};
    /// let model = BilinearModel::new(3, 2.0, vec![(Atom::plus(0, 2)?, 1.0)])?;
    /// let (a, b) = (SparseRow::new(&[0], &[1.0]), SparseRow::new(&[0, 2], &[1.0, 3.0]));
    /// let dot: f64 = model.transform(a).iter().zip(model.transform(b)).map(|(p, q)| p * q).sum();
    /// assert_eq!(model.score(a, b), 8.0); // 2 * (1) * (1 + 3)
    /// assert!((dot - 8.0).abs() < 1e-12);
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn transform(&self, x: SparseRow<'_>) -> Vec<f64> {
        let mut z = vec![0.0; self.atoms.len()];
        for (feature, value) in x.iter() {
            for &(atom, sign) in self.atoms_of(feature) {
                z[atom as usize] += sign * value;
            }
        }
        z.iter_mut().zip(&self.roots).for_each(|(z, r)| *z *= r);
        z
    }

    /// [`transform`](Self::transform) of many rows at once, sparse and in parallel: the new features are the
    /// atoms, in order. A coordinate too large for a number (only if the row's own values were close to that)
    /// becomes the largest number.
    pub fn transform_rows(&self, rows: &Rows) -> Rows {
        // Where a feature's atoms are: a table if the features are few against the values to be looked up.
        let table = (self.n_features <= rows.nnz().saturating_mul(4)).then(|| {
            let mut table = vec![u32::MAX; self.n_features];
            for (number, &feature) in self.columns.features().iter().enumerate() {
                table[feature as usize] = number as u32;
            }
            table
        });
        let number = |feature: u32| match &table {
            Some(table) => table.get(feature as usize).copied().unwrap_or(u32::MAX),
            None => self.columns.number(feature).unwrap_or(u32::MAX),
        };
        let (mapped, _) = map_rows(
            rows,
            self.atoms.len(),
            || Sums::new(self.atoms.len()),
            |sums, row, indices, values| {
                for (feature, value) in row.iter() {
                    let n = number(feature);
                    if n != u32::MAX {
                        for &(atom, sign) in
                            &self.uses[self.starts[n as usize]..self.starts[n as usize + 1]]
                        {
                            sums.add(atom, sign * value);
                        }
                    }
                }
                sums.drain(|atom, z| {
                    if z != 0.0 {
                        indices.push(atom);
                        values.push((self.roots[atom as usize] * z).clamp(f64::MIN, f64::MAX));
                    }
                });
            },
        );
        mapped
    }

    /// x_i ± x_j for the atoms where that is not 0, by increasing atom.
    pub(super) fn projections(&self, row: SparseRow<'_>) -> Vec<(u32, f64)> {
        let mut found: Vec<(u32, f64)> = Vec::new();
        for (feature, value) in row.iter() {
            for &(atom, sign) in self.atoms_of(feature) {
                found.push((atom, sign * value));
            }
        }
        // At most two terms an atom, whose sum does not depend on their order.
        found.sort_unstable_by_key(|f| f.0);
        found.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 += later.1;
            }
            same
        });
        found.retain(|f| f.1 != 0.0);
        found
    }

    /// M as a sparse list of (row, column, value), both halves, sorted by row and then column. Entries where
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
        entries.sort_unstable_by_key(|e| (e.0, e.1));
        entries
    }

    /// The entries of M with i <= j that are not 0, sorted.
    pub(super) fn upper(&self) -> Vec<(u32, u32, f64)> {
        let mut entries = Vec::with_capacity(3 * self.atoms.len());
        for (atom, weight) in self.atoms.iter().zip(&self.weights) {
            entries.push((atom.i(), atom.i(), *weight));
            entries.push((atom.j(), atom.j(), *weight));
            entries.push((atom.i(), atom.j(), atom.sign().value() * weight));
        }
        // A stable sort: entries are summed in the order of the atoms.
        entries.sort_by_key(|e| (e.0, e.1));
        entries.dedup_by(|later, kept| {
            let same = (later.0, later.1) == (kept.0, kept.1);
            if same {
                kept.2 += later.2;
            }
            same
        });
        entries.retain_mut(|e| {
            e.2 *= self.scale;
            e.2 != 0.0
        });
        entries
    }
}

/// Sums by atom, given back in the order of atoms without sorting: a bit per atom says which were met.
struct Sums {
    sums: Vec<f64>,
    met: Vec<u64>,
}

impl Sums {
    fn new(n: usize) -> Self {
        Self {
            sums: vec![0.0; n],
            met: vec![0; n.div_ceil(64)],
        }
    }

    fn add(&mut self, atom: u32, term: f64) {
        self.sums[atom as usize] += term;
        self.met[atom as usize / 64] |= 1 << (atom % 64);
    }

    /// Every sum that was added to; all are 0 afterwards.
    fn drain(&mut self, mut each: impl FnMut(u32, f64)) {
        for (word, met) in self.met.iter_mut().enumerate() {
            while *met != 0 {
                let atom = word * 64 + met.trailing_zeros() as usize;
                *met &= *met - 1;
                each(atom as u32, std::mem::take(&mut self.sums[atom]));
            }
        }
    }
}

impl Similarity for BilinearModel {
    fn score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        BilinearModel::score(self, a, b)
    }

    fn queries<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows> {
        Cow::Owned(self.transform_rows(rows))
    }

    fn items<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows> {
        Cow::Owned(self.transform_rows(rows))
    }
}
