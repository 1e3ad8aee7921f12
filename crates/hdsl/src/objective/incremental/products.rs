//! The features that the two rows of each pair share, stored unless they are too many.

use super::coefficients::Coefficients;
use crate::cancel::CancelToken;
use crate::data::Overlap;
use crate::error::Result;
use crate::objective::Problem;
use crate::objective::shard::ShardTriplets;
use std::hint::black_box;

/// The largest number of values that may be compared to find the shared features. Problems beyond it have long
/// iterations. To find the shared features of the few changed pairs is then a small part of an iteration.
pub(crate) const MAX_WORK: usize = 1 << 29;

/// For each pair, the shared features, as places among the values of the anchor's row, and the products of the two rows'
/// values. No products are stored if the values within each row of X are equal.
pub(crate) struct Products {
    starts: Vec<u32>,
    places: Vec<u16>,
    values: Vec<f64>,
}

impl Products {
    /// `None` if there are too many to find or to store.
    pub(crate) fn new(
        problem: &Problem<'_>,
        pairs: &Coefficients,
        cancel: CancelToken<'_>,
    ) -> Result<Option<Self>> {
        let (rows, others) = (&problem.rows, pairs.others());
        let work = |row: usize| pairs.n_as_other(row) * rows.nnz_of(row);
        if (0..rows.n_rows()).map(work).sum::<usize>() > MAX_WORK {
            return Ok(None);
        }
        let limit = (8 * (rows.nnz() + pairs.n_triplets())).min(u32::MAX as usize / 2);
        let mut products = Self {
            starts: Vec::with_capacity(others.len() + 1),
            places: Vec::new(),
            values: Vec::new(),
        };
        let mut overlap = Overlap::new(rows.longest());
        // Where the other row's value of each product of an anchor is.
        let mut positions = Vec::new();
        products.starts.push(0);
        for anchor in pairs.anchors() {
            cancel.check()?;
            let (own, others) = (rows.row(anchor), &others[pairs.pairs_of(anchor)]);
            overlap.learn(own.indices());
            // Rows are anywhere in memory. The processor would wait for one after the other. Reading a number of each of their
            // cache lines first, and the values of all afterwards, makes it load many at once.
            let lines = |&other: &u32| {
                rows.indices()[rows.range(other as usize)]
                    .iter()
                    .step_by(16)
            };
            black_box(
                others
                    .iter()
                    .flat_map(lines)
                    .fold(0, |all, index| all ^ index),
            );
            for &other in others {
                let range = rows.range(other as usize);
                for &(place, at) in overlap.with(&rows.indices()[range.clone()]) {
                    products.places.push(place as u16);
                    positions.push(range.start + at as usize);
                }
                products.starts.push(products.places.len() as u32);
            }
            if rows.constants().is_none() {
                let places = &products.places[products.values.len()..];
                let product = |(&place, &at)| own.values().at(usize::from(place)) * rows.value(at);
                let found = places.iter().zip(&positions);
                products.values.extend(found.map(product));
            }
            positions.clear();
            if own.indices().len() >= usize::from(u16::MAX) || products.places.len() > limit {
                return Ok(None);
            }
        }
        products.places.shrink_to_fit();
        products.values.shrink_to_fit();
        Ok(Some(products))
    }

    /// The number of shared features of all pairs, and the bytes of each.
    #[cfg(feature = "bench")]
    pub(crate) fn size(&self) -> (usize, usize) {
        let bytes = if self.values.is_empty() { 2 } else { 10 };
        (self.places.len(), bytes)
    }

    /// Calls `each` with the places and products of a pair. `constant` is the product of any two entries of its rows, if the
    /// entries within each row are equal.
    #[inline]
    pub(crate) fn each(
        &self,
        pair: usize,
        constant: Option<f64>,
        mut each: impl FnMut(usize, f64),
    ) {
        let range = self.starts[pair] as usize..self.starts[pair + 1] as usize;
        let places = self.places[range.clone()].iter();
        if let Some(x) = constant {
            places.for_each(|&place| each(usize::from(place), x));
        } else {
            for (&place, &x) in places.zip(&self.values[range]) {
                each(usize::from(place), x);
            }
        }
    }
}
