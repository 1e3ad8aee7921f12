//! Margins m_t = Σ_i w_i x_i (y_i - z_i) from weights, and the transpose of that linear map.
//!
//! A margin is the difference of two sums over *pairs* of rows, Σ_i w_i x_i y_i, and triplets of one anchor share pairs
//! (3 x 5 neighbors give 15 triplets of 8 pairs). So the products x_i y_i of each pair are stored, for the features that
//! both rows contain.

use crate::data::{Columns, Rows, SparseRow};
use crate::error::{Error, Result};
use crate::parallel;
use crate::triplets::Triplets;

/// Pairs and triplets per piece of parallel work.
const PIECE: usize = 1 << 14;

/// The largest number of pieces that each need one number per column.
const MAX_PIECES: usize = 8;

/// Triplets over rows, ready for weights.
pub(super) struct Products {
    /// The features that occur; weights and gradients have one entry for each.
    pub(super) columns: Columns,
    /// One row per pair {anchor, other}: x_i y_i for each column that both rows contain.
    pairs: Rows,
    /// The pairs {anchor, near} and {anchor, far} of each triplet.
    triplets: Vec<[u32; 2]>,
    /// v_t / V, the fraction of each triplet in a mean.
    pub(super) shares: Vec<f64>,
}

impl Products {
    /// Checks the triplets and multiplies their rows.
    pub(super) fn new(rows: &Rows, triplets: &Triplets) -> Result<Self> {
        triplets.check(rows.n_rows())?;
        let columns = Columns::of(rows);
        if columns.is_empty() {
            return Err(Error::data("all rows are empty, expected rows with values"));
        }
        let of_triplet = |(anchor, near, far)| [(anchor, near), (anchor, far)];
        let mut pairs: Vec<(u32, u32)> = triplets.iter().flat_map(of_triplet).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let place = |pair| pairs.binary_search(&pair).expect("every pair is listed") as u32;
        let total = triplets.total_weight();
        Ok(Self {
            triplets: (triplets.iter())
                .map(|triplet| of_triplet(triplet).map(place))
                .collect(),
            shares: (0..triplets.len())
                .map(|t| triplets.weight(t) / total)
                .collect(),
            pairs: multiply(&columns.compact(rows.clone()), &pairs),
            columns,
        })
    }

    /// m_t of every triplet.
    pub(super) fn margins(&self, weights: &[f64]) -> Vec<f64> {
        let score = |pair| -> f64 {
            let products = self.pairs.row(pair).iter();
            products.map(|(c, xy)| weights[c as usize] * xy).sum()
        };
        let scores: Vec<f64> = parallel::map_blocks(self.pairs.n_rows(), PIECE, score);
        (self.triplets.iter())
            .map(|&[near, far]| scores[near as usize] - scores[far as usize])
            .collect()
    }

    /// Σ_t s_t A_t, where A_t is the gradient of m_t.
    pub(super) fn transposed(&self, slopes: &[f64]) -> Vec<f64> {
        self.by_column(|t| [slopes[t], -slopes[t]], |product| product)
    }

    /// (1/V) Σ_t v_t ((x_i y_i)² + (x_i z_i)²), how strongly the margins depend on each weight.
    pub(super) fn strengths(&self) -> Vec<f64> {
        self.by_column(|t| [self.shares[t]; 2], |product| product * product)
    }

    /// For each column, the sum over pairs of a function of the product, times the sum of the triplets' `coefficients` for
    /// the pair. Each triplet has one for {anchor, near} and one for {anchor, far}.
    fn by_column(
        &self,
        coefficients: impl Fn(usize) -> [f64; 2],
        of: impl Fn(f64) -> f64 + Sync,
    ) -> Vec<f64> {
        let n_pairs = self.pairs.n_rows();
        let mut sums = vec![0.0; n_pairs];
        for (t, pairs) in self.triplets.iter().enumerate() {
            for (&pair, coefficient) in pairs.iter().zip(coefficients(t)) {
                sums[pair as usize] += coefficient;
            }
        }
        let n_pieces = (n_pairs / PIECE).clamp(1, MAX_PIECES);
        let of_piece = |piece| {
            let mut columns = vec![0.0; self.columns.len()];
            let range = piece * n_pairs / n_pieces..(piece + 1) * n_pairs / n_pieces;
            for (pair, &sum) in range.clone().zip(&sums[range]) {
                if sum != 0.0 {
                    for (column, product) in self.pairs.row(pair).iter() {
                        columns[column as usize] += sum * of(product);
                    }
                }
            }
            columns
        };
        let pieces: Vec<Vec<f64>> = parallel::map(n_pieces, of_piece);
        let sum = pieces.into_iter().reduce(|mut columns, piece| {
            columns.iter_mut().zip(piece).for_each(|(c, p)| *c += p);
            columns
        });
        sum.expect("there is a piece")
    }

    /// (1/V) Σ_t v_t c(t), with v_t the weight of triplet t and V their sum.
    pub(super) fn mean(&self, cost: impl Fn(usize) -> f64 + Sync) -> f64 {
        let of_piece = |piece: usize| -> f64 {
            let terms = (piece * PIECE..self.shares.len()).zip(&self.shares[piece * PIECE..]);
            let terms = terms.take(PIECE);
            terms.map(|(t, share)| share * cost(t)).sum()
        };
        let pieces = parallel::map(self.shares.len().div_ceil(PIECE), of_piece);
        pieces.iter().sum()
    }
}

/// The products of pairs of rows, which are in order.
fn multiply(rows: &Rows, pairs: &[(u32, u32)]) -> Rows {
    let mut products = Rows::new(rows.n_features());
    let mut dense = vec![0.0; rows.n_features()];
    for of_anchor in pairs.chunk_by(|p, q| p.0 == q.0) {
        let anchor = rows.row(of_anchor[0].0 as usize);
        (anchor.iter()).for_each(|(column, x)| dense[column as usize] = x);
        for &(_, other) in of_anchor {
            let other = rows.row(other as usize).iter();
            let (columns, values): (Vec<u32>, Vec<f64>) = other
                .map(|(column, y)| (column, dense[column as usize] * y))
                .filter(|(_, product)| *product != 0.0)
                .unzip();
            products.push(SparseRow::new(&columns, &values));
        }
        (anchor.indices().iter()).for_each(|&column| dense[column as usize] = 0.0);
    }
    products
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baselines::diagonal::tests::tiny;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn margins_and_their_transpose_agree_with_the_definition(tiny in tiny()) {
            let products = Products::new(&tiny.rows(), &tiny.triplets).unwrap();
            let columns = &products.columns;
            let weights: Vec<f64> = (0..columns.len()).map(|c| 0.5 - c as f64).collect();
            let margins = products.margins(&weights);
            prop_assert_eq!(margins.len(), tiny.triplets.len());
            let slopes: Vec<f64> = (0..margins.len()).map(|t| t as f64 - 1.5).collect();
            let gradient = products.transposed(&slopes);
            let mut expected = vec![0.0; columns.len()];
            for (t, margin) in margins.iter().enumerate() {
                let mut sum = 0.0;
                for (number, &feature) in columns.features().iter().enumerate() {
                    let product = tiny.product(t, feature as usize);
                    sum += weights[number] * product;
                    expected[number] += slopes[t] * product;
                }
                prop_assert!((margin - sum).abs() < 1e-12, "{margin} {sum}");
            }
            for (g, e) in gradient.iter().zip(expected) {
                prop_assert!((g - e).abs() < 1e-12, "{g} {e}");
            }
        }
    }
}
