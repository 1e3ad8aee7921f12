//! The problem of Eq. 1 with its data as the solver needs them, and margins, objective and gradient weights computed
//! from their definitions.

use super::base::Base;
use super::loss::{Loss, LossKind, with_loss};
use crate::atoms::{ActiveSet, Atom};
use crate::cancel::CancelToken;
use crate::data::{ColumnLists, Columns, LARGEST, PackedRows, Rows, RowsView, change_rows};
use crate::error::{Error, Result};
use crate::triplets::Triplets;
use std::collections::{HashMap, HashSet};

/// The number of columns in a block. Bounds are stored per block.
pub(crate) const COLUMNS: usize = 64;

/// An atom and its score D_i + D_j ± H_ij.
pub(crate) type Scored = (Atom, f64);

/// The features that atoms may use: the external index of each internal one.
pub(crate) struct Features(Vec<u32>);

impl Features {
    /// The features in internal order.
    pub(crate) fn new(external: Vec<u32>) -> Self {
        Self(external)
    }

    /// The number of internal indices.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The external index of each internal one.
    #[cfg(test)]
    pub(crate) fn external_indices(&self) -> &[u32] {
        &self.0
    }

    /// The atom in external indices.
    pub(crate) fn external(&self, atom: Atom) -> Atom {
        let [i, j] = [atom.i(), atom.j()].map(|index| self.0[index as usize]);
        Atom::new(i, j, atom.sign()).expect("different columns are different features")
    }

    /// The atoms in internal indices; `None` if a feature has no internal index. Takes a pass over all features.
    pub(crate) fn internal(&self, atoms: &[Atom]) -> Option<Vec<Atom>> {
        let wanted: HashSet<u32> = atoms.iter().flat_map(|a| [a.i(), a.j()]).collect();
        let indices: HashMap<u32, u32> = (self.0.iter().copied().zip(0..))
            .filter(|(feature, _)| wanted.contains(feature))
            .collect();
        let internal = |atom: &Atom| {
            let (i, j) = (*indices.get(&atom.i())?, *indices.get(&atom.j())?);
            Some(Atom::new(i, j, atom.sign()).expect("different features are different columns"))
        };
        atoms.iter().map(internal).collect()
    }

    /// The better of two scored atoms. Ties go to the first atom in external indices, so that every search breaks ties
    /// in the same way.
    #[inline]
    pub(crate) fn better(&self, a: Scored, b: Scored) -> Scored {
        if b.1 > a.1 || (b.1 == a.1 && self.external(b.0) < self.external(a.0)) {
            b
        } else {
            a
        }
    }
}

/// The data and settings of a fit: the rows without empty columns, the columns of the same matrix, and the triplets.
///
/// *Internal* indices number the non-empty columns and up to two empty ones, by decreasing ‖X_j‖_1. Nothing then
/// depends on d, and a search in this order finds promising features first. *External* indices are the caller's.
pub(crate) struct Problem<'a> {
    pub(crate) features: Features,
    pub(crate) rows: PackedRows,
    pub(crate) lists: ColumnLists,
    pub(crate) triplets: &'a Triplets,
    pub(crate) total_weight: f64,
    pub(crate) lambda: f64,
    pub(crate) loss: LossKind,
    /// The part of the margins that is not learned.
    pub(crate) base: Base,
    /// Whether all values are at least 0, which makes some bounds tighter.
    pub(crate) non_negative: bool,
    /// ‖X_j‖_1 and ‖X_j‖_2 of each column.
    norms: Vec<[f64; 2]>,
}

impl<'a> Problem<'a> {
    #[cfg(test)]
    pub(crate) fn new(
        rows: &Rows,
        triplets: &'a Triplets,
        lambda: f64,
        loss: LossKind,
    ) -> Result<Self> {
        Self::taking(rows.clone(), triplets, lambda, loss, CancelToken::NEVER)
    }

    /// The problem of these rows and triplets. Triplets must have been checked against the rows. The rows are changed
    /// in place, without a copy.
    pub(crate) fn taking(
        rows: Rows,
        triplets: &'a Triplets,
        lambda: f64,
        loss: LossKind,
        cancel: CancelToken<'_>,
    ) -> Result<Self> {
        let mut sums = ColumnSums::default();
        sums.add(rows.view());
        let features = sums.order(rows.n_features())?;
        drop(sums);
        Self::in_order(rows, features, triplets, lambda, loss, cancel)
    }

    /// The same with a given internal order of the features, which may be those of other rows, too.
    pub(crate) fn in_order(
        rows: Rows,
        features: Vec<u32>,
        triplets: &'a Triplets,
        lambda: f64,
        loss: LossKind,
        cancel: CancelToken<'_>,
    ) -> Result<Self> {
        check_values(&rows)?;
        let rows = in_order(rows, &features, cancel)?;
        let lists = ColumnLists::of(&rows)?;
        cancel.check()?;
        Ok(Self {
            norms: (0..lists.len() as u32)
                .map(|j| norms(lists.column(j).1))
                .collect(),
            features: Features::new(features),
            non_negative: rows.values().iter().all(|&x| x >= 0.0),
            rows: PackedRows::of(rows),
            lists,
            triplets,
            total_weight: triplets.total_weight(),
            lambda,
            loss,
            base: Base::None,
        })
    }

    /// The same problem on top of a base similarity.
    pub(crate) fn with_base(self, base: Base) -> Self {
        Self { base, ..self }
    }

    /// ‖X_j‖_1 and ‖X_j‖_2 of a column.
    pub(crate) fn norms(&self, column: u32) -> [f64; 2] {
        self.norms[column as usize]
    }

    /// The number of internal indices.
    pub(crate) fn n_columns(&self) -> usize {
        self.features.len()
    }

    /// The better of two scored atoms.
    pub(crate) fn better(&self, a: Scored, b: Scored) -> Scored {
        self.features.better(a, b)
    }

    /// A column as a dense vector over rows.
    pub(crate) fn column(&self, j: u32) -> Vec<f64> {
        let mut x = vec![0.0; self.rows.n_rows()];
        self.add_column(j, 1.0, &mut x);
        x
    }

    /// x_i ± x_j for every row.
    pub(crate) fn project(&self, atom: Atom) -> Vec<f64> {
        let mut z = self.column(atom.i());
        self.add_column(atom.j(), atom.sign().value(), &mut z);
        z
    }

    /// Adds `sign` times a column to a dense vector over rows.
    pub(crate) fn add_column(&self, j: u32, sign: f64, to: &mut [f64]) {
        let (rows, values) = self.lists.column(j);
        for (&row, &x) in rows.iter().zip(values) {
            to[row as usize] += sign * x;
        }
    }

    /// The rows that contain either feature of an atom, in increasing order.
    pub(crate) fn rows_of(&self, atom: Atom) -> Vec<u32> {
        let columns = [atom.i(), atom.j()].map(|j| self.lists.column(j).0);
        let mut rows = columns.concat();
        // The stable sort merges two sorted lists in linear time.
        rows.sort();
        rows.dedup();
        rows
    }

    /// <A^t, B> for every triplet.
    pub(crate) fn atom_margins(&self, atom: Atom) -> Vec<f64> {
        let projected = self.project(atom);
        let z = |row: u32| projected[row as usize];
        let mut margins = Vec::with_capacity(self.triplets.len());
        self.triplets.each(|anchor, near, far| {
            let at_anchor = z(anchor);
            // Most atoms affect few triplets. For the others, this saves two lookups.
            margins.push(if at_anchor == 0.0 {
                0.0
            } else {
                self.lambda * at_anchor * (z(near) - z(far))
            });
        });
        margins
    }

    /// b_t for every triplet. `None` if all are 0.
    pub(crate) fn base_margins(&self) -> Option<Vec<f64>> {
        self.base.margins(&self.rows, self.triplets)
    }

    /// m_t = b_t + <A^t, M> for every triplet.
    pub(crate) fn margins(&self, active: &ActiveSet) -> Vec<f64> {
        let zeros = || vec![0.0; self.triplets.len()];
        let mut margins = self.base_margins().unwrap_or_else(zeros);
        for (atom, weight) in active.iter() {
            for (margin, b) in margins.iter_mut().zip(self.atom_margins(atom)) {
                *margin += weight * b;
            }
        }
        margins
    }

    /// f at the given margins.
    pub(crate) fn value(&self, margins: &[f64]) -> f64 {
        with_loss!(self.loss, loss => {
            let sum: f64 = match self.triplets.weights() {
                None => margins.iter().map(|&m| loss.value(m)).sum(),
                Some(v) => margins.iter().zip(v).map(|(&m, &v)| v * loss.value(m)).sum(),
            };
            sum / self.total_weight
        })
    }

    /// The gradient weight w_t = -v_t ℓ'(m_t) of a triplet at this margin.
    pub(crate) fn gradient_weight(&self, t: usize, margin: f64) -> f64 {
        with_loss!(self.loss, loss => -self.triplets.weight(t) * loss.slope(margin))
    }

    /// φ'(γ) and φ''(γ) of φ(γ) = V f along margins + γ deltas.
    pub(crate) fn along(&self, margins: &[f64], deltas: &[f64], gamma: f64) -> (f64, f64) {
        let (mut first, mut second) = (0.0, 0.0);
        with_loss!(self.loss, loss => {
            for (t, (&margin, &delta)) in margins.iter().zip(deltas).enumerate() {
                if delta != 0.0 {
                    let (m, v) = (margin + gamma * delta, self.triplets.weight(t));
                    first += v * loss.slope(m) * delta;
                    second += v * loss.curvature(m) * delta * delta;
                }
            }
        });
        (first, second)
    }
}

/// ‖X_j‖_1 of every column j that occurs, by increasing feature. Values are added in the order of rows, so that blocks of
/// rows, added one after the other, give the same sums as all rows at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnSums {
    features: Vec<u32>,
    sums: Vec<f64>,
}

impl ColumnSums {
    /// Sums that [`ColumnSums::into_parts`] returned.
    pub fn from_parts(features: Vec<u32>, sums: Vec<f64>) -> Result<Self> {
        if features.len() != sums.len() || !features.is_sorted_by(|a, b| a < b) {
            return Err(Error::data(
                "column sums have one sum per feature, by increasing feature",
            ));
        }
        Ok(Self { features, sums })
    }

    /// The features and their sums.
    pub fn into_parts(self) -> (Vec<u32>, Vec<f64>) {
        (self.features, self.sums)
    }

    /// Adds the values of some rows.
    pub fn add(&mut self, rows: RowsView<'_>) {
        let columns = match self.features.is_empty() {
            true => Columns::of(rows),
            false => {
                let mut features = std::mem::take(&mut self.features);
                let known = features.clone();
                features.extend_from_slice(Columns::of(rows).features());
                let columns = Columns::from_features(rows.n_features(), features);
                let mut sums = vec![0.0; columns.len()];
                for (feature, &sum) in known.into_iter().zip(&self.sums) {
                    let number = columns.number(feature);
                    sums[number.expect("it is among the features") as usize] = sum;
                }
                self.sums = sums;
                columns
            }
        };
        self.sums.resize(columns.len(), 0.0);
        for (&feature, value) in rows.indices().iter().zip(rows.values()) {
            let number = columns
                .number(feature)
                .expect("every feature of a row occurs");
            self.sums[number as usize] += value.abs();
        }
        self.features = columns.into_features();
    }

    /// The features that atoms may use, in internal order: by decreasing ‖X_j‖_1.
    pub fn order(&self, n_features: usize) -> Result<Vec<u32>> {
        let mut sized: Vec<(u32, f64)> = candidates_among(n_features, &self.features)?
            .features()
            .iter()
            .map(|&feature| {
                let at = self.features.binary_search(&feature);
                (feature, at.map_or(0.0, |at| self.sums[at]))
            })
            .collect();
        sized.sort_by(|a, b| b.1.total_cmp(&a.1));
        Ok(sized.into_iter().map(|sized| sized.0).collect())
    }
}

/// The features that atoms may use: all non-empty columns, and up to two empty ones. All empty columns have D = 0 and
/// H = 0, so two of them are enough. They are needed because the best atom may pair a feature with an empty column, or
/// consist of two empty columns, if all other partners have a lower score.
pub(crate) fn candidates(rows: &Rows) -> Result<Columns> {
    candidates_among(rows.n_features(), Columns::of(rows).features())
}

/// The same, given the non-empty columns by increasing index.
fn candidates_among(n_features: usize, occurring: &[u32]) -> Result<Columns> {
    if occurring.is_empty() {
        return Err(Error::data(
            "no row holds a feature, expected rows with values",
        ));
    }
    if n_features < 2 {
        return Err(Error::data(
            "there is 1 feature, expected at least 2: an atom joins two",
        ));
    }
    let mut features = occurring.to_vec();
    let mut occurring = occurring.iter().copied().peekable();
    let absent = (0..n_features as u64).map(|feature| feature as u32);
    let absent: Vec<u32> = absent
        .filter(|feature| occurring.next_if_eq(feature).is_none())
        .take(2)
        .collect();
    features.extend(absent);
    Ok(Columns::from_features(n_features, features))
}

/// Checks that no products of values overflow.
fn check_values(rows: &Rows) -> Result<()> {
    let is_too_large = |value: &f64| value.abs() > LARGEST;
    let Some(at) = rows.values().iter().position(is_too_large) else {
        return Ok(());
    };
    let row = rows.starts().partition_point(|&start| start <= at) - 1;
    let (feature, value) = (rows.indices()[at], rows.values()[at]);
    Err(Error::data(format!(
        "row {row} has the value {value:e} for feature {feature} (both counted from 0) after preprocessing, expected a number \
         from -1e50 to 1e50: products of larger ones overflow"
    )))
}

/// The rows in internal indices. Every feature with a value must be among `features`.
fn in_order(rows: Rows, features: &[u32], cancel: CancelToken<'_>) -> Result<Rows> {
    let columns = Columns::from_features(rows.n_features(), features.to_vec());
    cancel.check()?;
    let mut rank = vec![0; columns.len()];
    for (new, &feature) in features.iter().enumerate() {
        let number = columns.number(feature).expect("it is among the features");
        rank[number as usize] = new as u32;
    }
    let missing = |&&feature: &&u32| columns.number(feature).is_none();
    if let Some(feature) = rows.indices().iter().find(missing) {
        return Err(Error::data(format!(
            "feature {feature} of a row is not among the features of the problem"
        )));
    }
    let rank_of = |feature: u32| {
        let number = columns.number(feature);
        rank[number.expect("every feature of a row is known") as usize]
    };
    let rows = change_rows(rows, features.len(), Vec::new, |sorted, indices, values| {
        let entries = indices.iter().zip(&*values).filter(|entry| *entry.1 != 0.0);
        sorted.clear();
        sorted.extend(entries.map(|(&feature, &value)| (rank_of(feature), value)));
        sorted.sort_unstable_by_key(|entry: &(u32, f64)| entry.0);
        for (at, &entry) in sorted.iter().enumerate() {
            (indices[at], values[at]) = entry;
        }
        sorted.len()
    });
    cancel.check()?;
    Ok(rows)
}

fn norms(values: &[f64]) -> [f64; 2] {
    let (mut sum, mut squares) = (0.0, 0.0);
    for x in values {
        sum += x.abs();
        squares += x * x;
    }
    [sum, squares.sqrt()]
}
