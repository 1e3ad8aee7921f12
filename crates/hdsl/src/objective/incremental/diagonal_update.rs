//! The update of D for changed pair coefficients.

use super::changes::Changes;
use super::diagonal::Diagonal;
use super::products::Products;
use super::{Affine, Coefficients, add};
use crate::data::{Overlap, PackedRows};

/// Up to this many changes of an anchor's pairs are added to D one by one.
const FEW: usize = 4;

/// What an update of D reads beside C and the rows, and its buffers.
pub(super) struct DiagonalUpdate {
    pub(super) products: Option<Products>,
    /// Σ_q delta_q x_qg over the changed pairs {anchor, q}, for each feature g of the anchor's row.
    by_place: Vec<Affine>,
    /// Finds the features that two rows share, if products are not stored.
    overlap: Overlap,
}

impl DiagonalUpdate {
    pub(super) fn new(products: Option<Products>, rows: &PackedRows) -> Self {
        Self {
            products,
            by_place: Vec::new(),
            overlap: Overlap::new(rows.longest()),
        }
    }

    /// Adds delta_q x_g x_qg to D_g for each changed pair {anchor, q} and each feature g, where x is the anchor's row.
    pub(super) fn update(
        &mut self,
        changes: &Changes,
        coefficients: &Coefficients,
        rows: &PackedRows,
        diagonal: &mut Diagonal,
    ) {
        for (anchor, changes) in changes.by_anchor() {
            self.update_of(anchor, changes, coefficients, rows, diagonal);
        }
    }

    /// The changes of one anchor. Many are first summed for each value of the anchor's row, in a buffer that fits in the cache,
    /// and then added to D once per column. A few are added at once, so that not all of the row has to be read.
    fn update_of(
        &mut self,
        anchor: usize,
        changes: &[(usize, Affine)],
        coefficients: &Coefficients,
        rows: &PackedRows,
        diagonal: &mut Diagonal,
    ) {
        let own = rows.row(anchor);
        let pairs = coefficients.pairs_of(anchor);
        let others = &coefficients.others()[pairs.clone()];
        let constants = rows.constants();
        let constant = |local: usize| constants.map(|x| x[anchor] * x[others[local] as usize]);
        if let Some(products) = &self.products
            && changes.len() <= FEW
        {
            for &(local, delta) in changes {
                products.each(pairs.start + local, constant(local), |place, product| {
                    diagonal.add(own.indices()[place], delta, product);
                });
            }
            return;
        }
        self.by_place.clear();
        self.by_place.resize(own.indices().len(), [0.0; 2]);
        let sums = &mut self.by_place[..];
        if let Some(products) = &self.products {
            for &(local, delta) in changes {
                let each = |place: usize, product: f64| add(&mut sums[place], delta, product);
                products.each(pairs.start + local, constant(local), each);
            }
        } else {
            self.overlap.learn(own.indices());
            for &(local, delta) in changes {
                let other = rows.row(others[local] as usize);
                for &(place, at) in self.overlap.with(other.indices()) {
                    let product = own.values().at(place as usize) * other.values().at(at as usize);
                    add(&mut sums[place as usize], delta, product);
                }
            }
        }
        for (&column, sum) in own.indices().iter().zip(sums) {
            if *sum != [0.0; 2] {
                diagonal.add(column, *sum, 1.0);
            }
        }
    }
}
