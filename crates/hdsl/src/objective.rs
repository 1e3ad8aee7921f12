//! The objective of Eq. 1 and its margins:
//!
//! minimise f(M) = (1/V) Σ_t v_t ℓ(<A^t, M>) over M in conv{ λ(e_i ± e_j)(e_i ± e_j)ᵀ },
//!
//! with v_t the weight of triplet t (1 in the paper) and V their sum.

use crate::atoms::{ActiveSet, Atom};
use crate::data::{ColumnLists, Columns, Rows};
use crate::error::{Error, Result};
use crate::loss::{Loss, LossKind, with_loss};
use crate::triplets::Triplets;

/// An atom and its score D_i + D_j ± H_ij.
pub(crate) type Scored = (Atom, f64);

/// The fixed side of a fit: rows with empty columns left out, the same by columns, and triplets over them.
///
/// Inside the solver, features are numbered among the non-empty columns (and two empty ones) by decreasing size, so that nothing depends
/// on d and a search that goes through them in order meets the promising ones first.
pub(crate) struct Problem<'a> {
    columns: Columns,
    /// Number inside the solver -> number among `columns`, and back.
    by_size: Vec<u32>,
    rank: Vec<u32>,
    pub(crate) rows: Rows,
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
    pub(crate) fn new(
        rows: &Rows,
        triplets: &'a Triplets,
        scale: f64,
        loss: LossKind,
    ) -> Result<Self> {
        let columns = candidates(rows)?;
        let mut sizes = vec![0.0; columns.len()];
        for (feature, value) in rows.indices().iter().zip(rows.values()) {
            let number = columns
                .number(*feature)
                .expect("every feature of a row occurs");
            sizes[number as usize] += value.abs();
        }
        let mut by_size: Vec<u32> = (0..columns.len() as u32).collect();
        by_size.sort_by(|&a, &b| sizes[b as usize].total_cmp(&sizes[a as usize]));
        let mut rank = vec![0; columns.len()];
        for (new, &old) in by_size.iter().enumerate() {
            rank[old as usize] = new as u32;
        }
        let rows = renumber(rows, &columns, &rank);
        let lists = ColumnLists::of(&rows);
        Ok(Self {
            columns,
            norms: (0..rank.len() as u32)
                .map(|j| norms(lists.column(j).1))
                .collect(),
            by_size,
            rank,
            non_negative: rows.values().iter().all(|&x| x >= 0.0),
            all_ones: rows.values().iter().all(|&x| x == 1.0),
            rows,
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
        self.by_size.len()
    }

    /// The feature as the caller numbers it.
    fn feature(&self, inside: u32) -> u32 {
        self.columns.feature(self.by_size[inside as usize])
    }

    /// The atom as the caller numbers features.
    pub(crate) fn outside(&self, atom: Atom) -> Atom {
        Atom::new(self.feature(atom.i()), self.feature(atom.j()), atom.sign())
            .expect("different columns are different features")
    }

    /// The atom as the solver numbers features; none if a feature is in no row.
    pub(crate) fn inside(&self, atom: Atom) -> Option<Atom> {
        let number = |feature: u32| Some(self.rank[self.columns.number(feature)? as usize]);
        let (i, j) = (number(atom.i())?, number(atom.j())?);
        Some(Atom::new(i, j, atom.sign()).expect("different features are different columns"))
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
    let mut features = columns.features().to_vec();
    let mut occurring = columns.features().iter().copied().peekable();
    let absent = (0..rows.n_features() as u64).map(|feature| feature as u32);
    features.extend(
        absent
            .filter(|feature| occurring.next_if_eq(feature).is_none())
            .take(2),
    );
    Ok(Columns::from_features(rows.n_features(), features))
}

fn norms(values: &[f64]) -> [f64; 2] {
    let (mut sum, mut squares) = (0.0, 0.0);
    for x in values {
        sum += x.abs();
        squares += x * x;
    }
    [sum, squares.sqrt()]
}

/// The rows with features numbered by rank, each row in the new order.
fn renumber(rows: &Rows, columns: &Columns, rank: &[u32]) -> Rows {
    let mut starts = Vec::with_capacity(rows.n_rows() + 1);
    let (mut indices, mut values) = (
        Vec::with_capacity(rows.nnz()),
        Vec::with_capacity(rows.nnz()),
    );
    let mut sorted: Vec<(u32, f64)> = Vec::new();
    starts.push(0);
    for row in rows.iter() {
        sorted.clear();
        sorted.extend(
            row.iter()
                .filter(|entry| entry.1 != 0.0)
                .map(|(feature, value)| {
                    let number = columns
                        .number(feature)
                        .expect("every feature of a row occurs");
                    (rank[number as usize], value)
                }),
        );
        sorted.sort_unstable_by_key(|entry| entry.0);
        indices.extend(sorted.iter().map(|entry| entry.0));
        values.extend(sorted.iter().map(|entry| entry.1));
        starts.push(indices.len());
    }
    Rows::from_parts(rank.len(), starts, indices, values).expect("a permutation keeps rows proper")
}
