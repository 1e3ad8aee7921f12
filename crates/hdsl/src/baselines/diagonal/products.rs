//! Margins m_t = Σ_i w_i x_i (y_i - z_i) from weights, and the transpose of that linear map.
//!
//! A margin is the difference of two sums over *pairs* of rows, Σ_i w_i x_i y_i, and triplets of one anchor share pairs
//! (3 x 5 neighbors give 15 triplets of 8 pairs). So the products x_i y_i of each pair are stored, for the features that
//! both rows contain. As pairs may need far more memory than rows and triplets, those beyond a limit are recomputed
//! whenever they are needed.

use crate::data::{Columns, Rows};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::triplets::{Anchors, Triplets};
use std::borrow::Cow;
use std::ops::Range;

/// Triplets per shard, the unit of parallel work, and the largest number of shards: each needs one number per column.
const SHARD: usize = 1 << 14;
const MAX_SHARDS: usize = 8;

/// Triplets per block, more or less: the unit that is stored or recomputed.
const BLOCK: usize = 1 << 12;

/// Products stored per stored value and per triplet.
const STORED: usize = 8;

/// Triplets over rows, ready for weights. Triplets are in the order of their anchors.
pub(super) struct Products<'a> {
    /// The features that occur; weights and gradients have one entry for each.
    pub(super) columns: Columns,
    rows: Rows,
    pub(super) triplets: &'a Triplets,
    anchors: Anchors,
    /// v_t in that order, if they differ.
    triplet_weights: Option<Vec<f64>>,
    total_weight: f64,
    shards: Vec<Shard>,
}

struct Shard {
    positions: Range<usize>,
    /// Ranges of anchors, and their blocks if they are stored.
    blocks: Vec<(Range<usize>, Option<Block>)>,
}

/// The products of the triplets of some anchors.
#[derive(Clone, Default)]
struct Block {
    /// For each triplet, its pairs {anchor, near} and {anchor, far}.
    near: Vec<u32>,
    far: Vec<u32>,
    /// The end of each pair's products in `columns` and `values`.
    ends: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Block {
    /// For each pair, its columns and products.
    fn pairs(&self) -> impl Iterator<Item = impl Iterator<Item = (usize, f64)>> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let range = std::mem::replace(&mut start, end)..end;
            let products = self.values[range.clone()].iter().copied();
            (self.columns[range].iter().map(|&column| column as usize)).zip(products)
        })
    }
}

impl<'a> Products<'a> {
    /// Checks the triplets.
    pub(super) fn new(rows: &Rows, triplets: &'a Triplets) -> Result<Self> {
        Self::storing(rows, triplets, STORED * (rows.nnz() + triplets.len()))
    }

    /// With about `stored` products in memory at most.
    fn storing(rows: &Rows, triplets: &'a Triplets, stored: usize) -> Result<Self> {
        triplets.check(rows.n_rows())?;
        let columns = Columns::of(rows);
        if columns.is_empty() {
            return Err(Error::data("all rows are empty, expected rows with values"));
        }
        let anchors = triplets.by_anchor(rows.n_rows());
        let weight = |position| triplets.weight_at(&anchors, position);
        let mut products = Self {
            rows: columns.compact(rows),
            columns,
            triplets,
            triplet_weights: (triplets.weights()).map(|w| (0..w.len()).map(weight).collect()),
            total_weight: triplets.total_weight(),
            anchors,
            shards: Vec::new(),
        };
        let n_shards = (triplets.len() / SHARD).clamp(1, MAX_SHARDS);
        products.shards = (products.anchors.cut(n_shards).into_par_iter())
            .map(|anchors| products.shard(anchors, stored / n_shards))
            .collect();
        Ok(products)
    }

    fn shard(&self, anchors: Range<usize>, mut budget: usize) -> Shard {
        let starts = self.anchors.starts();
        let (mut blocks, mut dense) = (Vec::new(), Vec::new());
        let mut first = anchors.start;
        for end in anchors.start + 1..=anchors.end {
            if starts[end] - starts[first] < BLOCK && end < anchors.end {
                continue;
            }
            // Once a block does not fit, later ones are not tried: they would be computed twice for nothing.
            let block = (budget > 0).then(|| self.block(first..end, &mut dense));
            let block = block.filter(|block| block.values.len() <= budget);
            budget = (block.as_ref()).map_or(0, |block| budget - block.values.len());
            blocks.push((first..end, block));
            first = end;
        }
        Shard {
            positions: starts[anchors.start]..starts[anchors.end],
            blocks,
        }
    }

    /// The block of some anchors. `dense` is scratch space: one number per column, all 0 between calls.
    fn block(&self, anchors: Range<usize>, dense: &mut Vec<f64>) -> Block {
        let mut block = Block::default();
        dense.resize(self.columns.len(), 0.0);
        for anchor in anchors.filter(|&anchor| !self.anchors.range(anchor).is_empty()) {
            let first = block.near.len();
            let each = |_, near, far| {
                block.near.push(near);
                block.far.push(far);
            };
            self.triplets.each_of_anchor(&self.anchors, anchor, each);
            let mut others = [&block.near[first..], &block.far[first..]].concat();
            others.sort_unstable();
            others.dedup();
            let pairs_before = block.ends.len();
            for row in (block.near[first..].iter_mut()).chain(&mut block.far[first..]) {
                let place = others.binary_search(row);
                *row = (pairs_before + place.expect("every other row was listed")) as u32;
            }
            let row = self.rows.row(anchor);
            for (column, x) in row.iter() {
                dense[column as usize] = x;
            }
            for other in others {
                for (column, y) in self.rows.row(other as usize).iter() {
                    let product = dense[column as usize] * y;
                    if product != 0.0 {
                        block.columns.push(column);
                        block.values.push(product);
                    }
                }
                block.ends.push(block.values.len());
            }
            for &column in row.indices() {
                dense[column as usize] = 0.0;
            }
        }
        block
    }

    /// Calls `each` with every block of a shard and the positions of its triplets.
    fn each_block(&self, shard: &Shard, mut each: impl FnMut(&Block, Range<usize>)) {
        let (starts, mut dense) = (self.anchors.starts(), Vec::new());
        for (anchors, stored) in &shard.blocks {
            let block = match stored {
                Some(block) => Cow::Borrowed(block),
                None => Cow::Owned(self.block(anchors.clone(), &mut dense)),
            };
            each(&block, starts[anchors.start]..starts[anchors.end]);
        }
    }

    /// m_t of every triplet.
    pub(super) fn margins(&self, weights: &[f64], into: &mut [f64]) {
        let mut rest = into;
        let mut parts = Vec::with_capacity(self.shards.len());
        for shard in &self.shards {
            let (part, after) = rest.split_at_mut(shard.positions.len());
            parts.push((shard, part));
            rest = after;
        }
        parts.into_par_iter().for_each(|(shard, part)| {
            let mut margins = part.iter_mut();
            self.each_block(shard, |block, _| {
                let scores: Vec<f64> = (block.pairs())
                    .map(|pair| {
                        pair.map(|(column, product)| weights[column] * product)
                            .sum()
                    })
                    .collect();
                for ((&near, &far), m) in block.near.iter().zip(&block.far).zip(&mut margins) {
                    *m = scores[near as usize] - scores[far as usize];
                }
            });
        });
    }

    /// Σ_t s_t A_t, where A_t is the gradient of m_t.
    pub(super) fn transposed(&self, slopes: &[f64]) -> Vec<f64> {
        self.by_column(|t| [slopes[t], -slopes[t]], |product| product)
    }

    /// (1/V) Σ_t v_t ((x_i y_i)² + (x_i z_i)²), how strongly the margins depend on each weight.
    pub(super) fn strengths(&self) -> Vec<f64> {
        self.by_column(|t| [self.share(t); 2], |product| product * product)
    }

    /// For each column, the sum over pairs of a function of the product, times the sum of the triplets' `coefficients` for
    /// the pair. Each triplet has one for {anchor, near} and one for {anchor, far}.
    fn by_column(
        &self,
        coefficients: impl Fn(usize) -> [f64; 2] + Sync,
        of: impl Fn(f64) -> f64 + Sync,
    ) -> Vec<f64> {
        let of_shard = |shard| {
            let mut columns = vec![0.0; self.columns.len()];
            self.each_block(shard, |block, positions| {
                let mut sums = vec![0.0; block.ends.len()];
                for ((t, &near), &far) in positions.zip(&block.near).zip(&block.far) {
                    let [of_near, of_far] = coefficients(t);
                    sums[near as usize] += of_near;
                    sums[far as usize] += of_far;
                }
                for (pair, sum) in block.pairs().zip(sums).filter(|(_, sum)| *sum != 0.0) {
                    pair.for_each(|(column, product)| columns[column] += sum * of(product));
                }
            });
            columns
        };
        let parts: Vec<Vec<f64>> = self.shards.par_iter().map(of_shard).collect();
        let sum = parts.into_iter().reduce(|mut columns, part| {
            columns.iter_mut().zip(part).for_each(|(c, p)| *c += p);
            columns
        });
        sum.expect("there is a shard")
    }

    /// (1/V) Σ_t v_t c(t), with v_t the weight of triplet t and V their sum.
    pub(super) fn mean(&self, cost: impl Fn(usize) -> f64 + Sync) -> f64 {
        let sum = |shard: &Shard| -> f64 {
            let positions = shard.positions.clone();
            positions.map(|t| self.weight(t) * cost(t)).sum()
        };
        let sums: Vec<f64> = self.shards.par_iter().map(sum).collect();
        sums.iter().sum::<f64>() / self.total_weight
    }

    /// v_t / V, the fraction of triplet t in the mean.
    pub(super) fn share(&self, t: usize) -> f64 {
        self.weight(t) / self.total_weight
    }

    fn weight(&self, t: usize) -> f64 {
        (self.triplet_weights.as_ref()).map_or(1.0, |weights| weights[t])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baselines::diagonal::tests::{Tiny, tiny};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn margins_and_their_transpose_agree_with_the_definition(tiny in tiny(), stored in 0usize..40) {
            let rows = tiny.rows();
            let products = Products::storing(&rows, &tiny.triplets, stored).unwrap();
            let columns = &products.columns;
            let weights: Vec<f64> = (0..columns.len()).map(|c| 0.5 - c as f64).collect();
            let mut margins = vec![f64::NAN; products.triplets.len()];
            products.margins(&weights, &mut margins);
            let slopes: Vec<f64> = (0..margins.len()).map(|t| t as f64 - 1.5).collect();
            let gradient = products.transposed(&slopes);
            let mut expected = vec![0.0; columns.len()];
            for (position, margin) in margins.iter().enumerate() {
                let t = products.anchors.triplet(position);
                let mut sum = 0.0;
                for (number, &feature) in columns.features().iter().enumerate() {
                    let product = tiny.product(t, feature as usize);
                    sum += weights[number] * product;
                    expected[number] += slopes[position] * product;
                }
                prop_assert!((margin - sum).abs() < 1e-12, "{margin} {sum}");
            }
            for (g, e) in gradient.iter().zip(expected) {
                prop_assert!((g - e).abs() < 1e-12, "{g} {e}");
            }
        }
    }

    #[test]
    fn recomputed_products_are_the_same_to_the_last_bit() {
        let tiny = Tiny::random(40, 12, 30_000, 3);
        let rows = tiny.rows();
        let of = |stored: usize| {
            let products = Products::storing(&rows, &tiny.triplets, stored).unwrap();
            let n_stored = (products.shards.iter().flat_map(|shard| &shard.blocks))
                .filter(|block| block.1.is_some())
                .count();
            let weights: Vec<f64> = (0..12).map(|c| 1.0 / (1.0 + c as f64)).collect();
            let mut margins = vec![0.0; products.triplets.len()];
            products.margins(&weights, &mut margins);
            let gradient = products.transposed(&margins);
            (n_stored, margins, gradient)
        };
        let (all, some, none) = (of(usize::MAX), of(1_500), of(0));
        assert!(none.0 == 0 && some.0 > 0 && some.0 < all.0, "{}", some.0);
        assert_eq!((&all.1, &all.2), (&some.1, &some.2));
        assert_eq!((&all.1, &all.2), (&none.1, &none.2));
    }
}
