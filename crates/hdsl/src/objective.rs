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

/// The fixed side of a fit: rows with empty columns left out, the same by columns, and triplets over them.
///
/// Inside the solver, features are numbered among the non-empty columns, so that nothing depends on d.
pub(crate) struct Problem<'a> {
    pub(crate) columns: Columns,
    pub(crate) rows: Rows,
    pub(crate) lists: ColumnLists,
    pub(crate) triplets: &'a Triplets,
    pub(crate) total_weight: f64,
    pub(crate) scale: f64,
    pub(crate) loss: LossKind,
}

impl<'a> Problem<'a> {
    pub(crate) fn new(
        rows: &Rows,
        triplets: &'a Triplets,
        scale: f64,
        loss: LossKind,
    ) -> Result<Self> {
        triplets.check(rows.n_rows())?;
        let columns = Columns::of(rows);
        if columns.len() < 2 {
            return Err(Error::data(format!(
                "the rows hold {} distinct features, expected at least 2",
                columns.len()
            )));
        }
        let rows = columns.compact(rows);
        let lists = ColumnLists::of(&rows);
        let total_weight = (0..triplets.len()).map(|t| triplets.weight(t)).sum();
        Ok(Self {
            columns,
            rows,
            lists,
            triplets,
            total_weight,
            scale,
            loss,
        })
    }

    /// The atom as the caller numbers features.
    pub(crate) fn outside(&self, atom: Atom) -> Atom {
        Atom::new(
            self.columns.feature(atom.i()),
            self.columns.feature(atom.j()),
            atom.sign(),
        )
        .expect("different columns are different features")
    }

    /// The atom as the solver numbers features; none if a feature is in no row.
    pub(crate) fn inside(&self, atom: Atom) -> Option<Atom> {
        let (i, j) = (
            self.columns.number(atom.i())?,
            self.columns.number(atom.j())?,
        );
        Some(Atom::new(i, j, atom.sign()).expect("different features are different columns"))
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
        into.extend((0..self.triplets.len()).map(|t| {
            let (anchor, near, far) = self.triplets.get(t);
            let at_anchor = z(anchor);
            // Most atoms leave most triplets alone: spare the two look-ups.
            if at_anchor == 0.0 {
                0.0
            } else {
                self.scale * at_anchor * (z(near) - z(far))
            }
        }));
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
