//! The base similarity β <x, x'> in the margins: m_t = b_t + <A^t, M> with b_t = β (<x_a, x_n> - <x_a, x_f>).
//!
//! β and therefore every b_t are constants of the problem. The gradient with respect to M depends on them through the
//! margins only.

use crate::data::PackedRows;
use crate::triplets::{Anchors, Triplets};
use std::ops::Range;

/// The part of the margins that is not learned.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Base {
    /// All b_t are 0: the problem of the paper.
    #[default]
    None,
    /// β times the dot product.
    Scaled(f64),
    /// Any b_t, by triplet.
    #[cfg(test)]
    Given(Vec<f64>),
}

impl Base {
    /// The base similarity with weight `beta`, which is at least 0.
    pub(crate) fn new(beta: f64) -> Self {
        if beta == 0.0 {
            Self::None
        } else {
            Self::Scaled(beta)
        }
    }

    /// b_t for the triplets of a range of anchors, in the order of anchors. `None` if all are 0.
    pub(crate) fn margins_of(
        &self,
        rows: &PackedRows,
        triplets: &Triplets,
        anchors: &Anchors,
        range: Range<usize>,
    ) -> Option<Vec<f64>> {
        let positions = anchors.starts()[range.start]..anchors.starts()[range.end];
        let beta = match self {
            Self::None => return None,
            Self::Scaled(beta) => *beta,
            #[cfg(test)]
            Self::Given(margins) => {
                return Some(positions.map(|p| margins[anchors.triplet(p)]).collect());
            }
        };
        let mut margins = Vec::with_capacity(positions.len());
        let mut products = Products::new(rows);
        for anchor in range.filter(|&anchor| !anchors.range(anchor).is_empty()) {
            products.start(anchor);
            triplets.each_of_anchor(anchors, anchor, |_, near, far| {
                margins.push(beta * (products.with(near) - products.with(far)));
            });
        }
        Some(margins)
    }

    /// b_t by triplet. `None` if all are 0.
    pub(crate) fn margins(&self, rows: &PackedRows, triplets: &Triplets) -> Option<Vec<f64>> {
        if *self == Self::None {
            return None;
        }
        let anchors = triplets.by_anchor(rows.n_rows());
        let in_order = self.margins_of(rows, triplets, &anchors, 0..rows.n_rows())?;
        let mut margins = vec![0.0; in_order.len()];
        for (position, margin) in in_order.into_iter().enumerate() {
            margins[anchors.triplet(position)] = margin;
        }
        Some(margins)
    }
}

/// Dot products of an anchor with other rows. Mined triplets share pairs, so each product is computed once.
struct Products<'a> {
    rows: &'a PackedRows,
    anchor: usize,
    /// The anchor's row as a dense vector.
    dense: Vec<f64>,
    /// For each row, the anchor that its product was last computed with, and the product.
    known: Vec<(usize, f64)>,
}

impl<'a> Products<'a> {
    fn new(rows: &'a PackedRows) -> Self {
        Self {
            rows,
            anchor: 0,
            dense: vec![0.0; rows.n_features()],
            known: vec![(usize::MAX, 0.0); rows.n_rows()],
        }
    }

    /// Goes on to another anchor.
    fn start(&mut self, anchor: usize) {
        for &column in self.rows.row(self.anchor).indices() {
            self.dense[column as usize] = 0.0;
        }
        let row = self.rows.row(anchor);
        let columns = row.indices().iter();
        row.values()
            .each_with(columns, |&column, x| self.dense[column as usize] = x);
        self.anchor = anchor;
    }

    /// <x_a, x> of the anchor and another row.
    fn with(&mut self, other: u32) -> f64 {
        let known = &mut self.known[other as usize];
        if known.0 != self.anchor {
            let (row, mut product) = (self.rows.row(other as usize), 0.0);
            let columns = row.indices().iter();
            row.values().each_with(columns, |&column, x| {
                product += x * self.dense[column as usize];
            });
            *known = (self.anchor, product);
        }
        known.1
    }
}
