//! The objective of Eq. 1 and its margins:
//!
//! minimize f(M) = (1/V) Σ_t v_t ℓ(<A^t, M>) over M in conv{ λ(e_i ± e_j)(e_i ± e_j)ᵀ },
//!
//! with v_t the weight of triplet t (1 in the paper) and V their sum.

pub(crate) mod gradient;
pub mod loss;

pub use loss::LossKind;

use crate::atoms::{ActiveSet, Atom};
use crate::cancel::CancelToken;
use crate::data::{ColumnLists, Columns, PackedRows, Rows, change_rows};
use crate::error::{Error, Result};
use crate::triplets::Triplets;
use loss::{Loss, with_loss};
use std::collections::{HashMap, HashSet};

/// An atom and its score D_i + D_j ± H_ij.
pub(crate) type Scored = (Atom, f64);

/// The fixed side of a fit: rows with empty columns left out, the same by columns, and triplets over them.
///
/// Inside the solver, features are numbered among the non-empty columns (and two empty ones) by decreasing size, so that
/// nothing depends on d and a search that goes through them in order meets the promising ones first.
pub(crate) struct Problem<'a> {
    /// Number inside the solver -> feature as the caller numbers it.
    features: Vec<u32>,
    pub(crate) rows: PackedRows,
    pub(crate) lists: ColumnLists,
    pub(crate) triplets: &'a Triplets,
    pub(crate) total_weight: f64,
    pub(crate) scale: f64,
    pub(crate) loss: LossKind,
    /// Whether no value is below 0, which makes some bounds tighter.
    pub(crate) non_negative: bool,
    /// Whether every stored value is 1, so that values need not be read.
    pub(crate) all_ones: bool,
    /// ‖X_j‖_1 and ‖X_j‖_2 of each column.
    norms: Vec<[f64; 2]>,
}

impl<'a> Problem<'a> {
    /// Of triplets that were checked against the rows.
    #[cfg(any(test, feature = "bench"))]
    pub(crate) fn new(
        rows: &Rows,
        triplets: &'a Triplets,
        scale: f64,
        loss: LossKind,
    ) -> Result<Self> {
        Self::taking(rows.clone(), triplets, scale, loss, CancelToken::NEVER)
    }

    /// The same, renumbering rows that nobody else needs where they are.
    pub(crate) fn taking(
        rows: Rows,
        triplets: &'a Triplets,
        scale: f64,
        loss: LossKind,
        cancel: CancelToken<'_>,
    ) -> Result<Self> {
        let (features, rows) = by_size(rows, cancel)?;
        let lists = ColumnLists::of(&rows);
        cancel.check()?;
        Ok(Self {
            norms: (0..lists.len() as u32)
                .map(|j| norms(lists.column(j).1))
                .collect(),
            features,
            non_negative: rows.values().iter().all(|&x| x >= 0.0),
            all_ones: rows.values().iter().all(|&x| x == 1.0),
            rows: PackedRows::of(rows),
            lists,
            triplets,
            total_weight: triplets.total_weight(),
            scale,
            loss,
        })
    }

    /// ‖X_j‖_1 and ‖X_j‖_2 of a column.
    pub(crate) fn norms(&self, column: u32) -> [f64; 2] {
        self.norms[column as usize]
    }

    /// How many features occur.
    pub(crate) fn n_columns(&self) -> usize {
        self.features.len()
    }

    /// The feature as the caller numbers it.
    fn feature(&self, inside: u32) -> u32 {
        self.features[inside as usize]
    }

    /// The atom as the caller numbers features.
    pub(crate) fn outside(&self, atom: Atom) -> Atom {
        Atom::new(self.feature(atom.i()), self.feature(atom.j()), atom.sign())
            .expect("different columns are different features")
    }

    /// The atoms as the solver numbers features; none if a feature is in no row. Takes a pass over the features.
    pub(crate) fn inside(&self, atoms: &[Atom]) -> Option<Vec<Atom>> {
        let wanted: HashSet<u32> = atoms.iter().flat_map(|a| [a.i(), a.j()]).collect();
        let numbered = self.features.iter().zip(0u32..);
        let numbers: HashMap<u32, u32> = numbered
            .filter(|(feature, _)| wanted.contains(feature))
            .map(|(&feature, number)| (feature, number))
            .collect();
        let inside = |atom: &Atom| {
            let (i, j) = (*numbers.get(&atom.i())?, *numbers.get(&atom.j())?);
            Some(Atom::new(i, j, atom.sign()).expect("different features are different columns"))
        };
        atoms.iter().map(inside).collect()
    }

    /// The better of two scored atoms; of equals the first in the caller's order, so that every search settles ties
    /// alike.
    pub(crate) fn better(&self, a: Scored, b: Scored) -> Scored {
        if b.1 > a.1 || (b.1 == a.1 && self.outside(b.0) < self.outside(a.0)) {
            b
        } else {
            a
        }
    }

    /// x_i ± x_j for every row, into a buffer that is 0 where neither feature occurs.
    pub(crate) fn project(&self, atom: Atom, into: &mut Vec<f64>) {
        into.clear();
        into.resize(self.rows.n_rows(), 0.0);
        for (feature, sign) in [(atom.i(), 1.0), (atom.j(), atom.sign().value())] {
            let (rows, values) = self.lists.column(feature);
            for (&row, &value) in rows.iter().zip(values) {
                into[row as usize] += sign * value;
            }
        }
    }

    /// <A^t, B> for every triplet.
    pub(crate) fn atom_margins(&self, atom: Atom, projected: &mut Vec<f64>, into: &mut Vec<f64>) {
        self.project(atom, projected);
        let z = |row: u32| projected[row as usize];
        into.clear();
        into.reserve(self.triplets.len());
        self.triplets.each(|anchor, near, far| {
            let at_anchor = z(anchor);
            // Most atoms leave most triplets alone: spare the two look-ups.
            into.push(if at_anchor == 0.0 {
                0.0
            } else {
                self.scale * at_anchor * (z(near) - z(far))
            });
        });
    }

    /// <A^t, M> for every triplet, from nothing.
    pub(crate) fn margins(&self, active: &ActiveSet) -> Vec<f64> {
        let mut margins = vec![0.0; self.triplets.len()];
        let (mut projected, mut of_atom) = (Vec::new(), Vec::new());
        for (atom, weight) in active.iter() {
            self.atom_margins(atom, &mut projected, &mut of_atom);
            for (margin, &b) in margins.iter_mut().zip(&of_atom) {
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

    /// -v_t ℓ'(m_t), the push each triplet gives, for all triplets.
    pub(crate) fn pushes(&self, margins: &[f64], into: &mut Vec<f64>) {
        into.clear();
        with_loss!(self.loss, loss => match self.triplets.weights() {
            None => into.extend(margins.iter().map(|&m| -loss.slope(m))),
            Some(v) => into.extend(margins.iter().zip(v).map(|(&m, &v)| -v * loss.slope(m))),
        });
    }

    /// -v_t ℓ'(m) of one triplet at a margin.
    pub(crate) fn push(&self, t: usize, margin: f64) -> f64 {
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

/// The features atoms are made of: those that occur, and two that do not, if there are so many. They stand for all
/// their like, whose D and H are 0: the true best atom may pair a feature with nothing rather than with a bad one, or
/// be nothing at all.
pub(crate) fn candidates(rows: &Rows) -> Result<Columns> {
    let columns = Columns::of(rows);
    if columns.is_empty() {
        return Err(Error::data(
            "no row holds a feature, expected rows with values",
        ));
    }
    if rows.n_features() < 2 {
        return Err(Error::data(
            "there is 1 feature, expected at least 2: an atom joins two",
        ));
    }
    let mut features = columns.into_features();
    let mut occurring = features.iter().copied().peekable();
    let absent = (0..rows.n_features() as u64).map(|feature| feature as u32);
    let absent: Vec<u32> = absent
        .filter(|feature| occurring.next_if_eq(feature).is_none())
        .take(2)
        .collect();
    features.extend(absent);
    Ok(Columns::from_features(rows.n_features(), features))
}

/// The features that atoms are made of, the largest first, and the rows with features numbered in that order, each row
/// in the new order.
fn by_size(rows: Rows, cancel: CancelToken<'_>) -> Result<(Vec<u32>, Rows)> {
    let columns = candidates(&rows)?;
    cancel.check()?;
    let number_of = |feature: u32| {
        let number = columns.number(feature);
        number.expect("every feature of a row occurs") as usize
    };
    let mut sizes = vec![0.0; columns.len()];
    for (feature, value) in rows.indices().iter().zip(rows.values()) {
        sizes[number_of(*feature)] += value.abs();
    }
    let mut features: Vec<u32> = (0..columns.len() as u32).collect();
    features.sort_by(|&a, &b| sizes[b as usize].total_cmp(&sizes[a as usize]));
    drop(sizes);
    cancel.check()?;
    let mut rank = vec![0; columns.len()];
    for (new, old) in features.iter_mut().enumerate() {
        rank[*old as usize] = new as u32;
        *old = columns.feature(*old);
    }
    let (rows, _) = change_rows(rows, columns.len(), Vec::new, |sorted, indices, values| {
        let entries = indices.iter().zip(&*values).filter(|entry| *entry.1 != 0.0);
        sorted.clear();
        sorted.extend(entries.map(|(&feature, &value)| (rank[number_of(feature)], value)));
        sorted.sort_unstable_by_key(|entry: &(u32, f64)| entry.0);
        for (at, &entry) in sorted.iter().enumerate() {
            (indices[at], values[at]) = entry;
        }
        sorted.len()
    });
    cancel.check()?;
    Ok((features, rows))
}

fn norms(values: &[f64]) -> [f64; 2] {
    let (mut sum, mut squares) = (0.0, 0.0);
    for x in values {
        sum += x.abs();
        squares += x * x;
    }
    [sum, squares.sqrt()]
}
