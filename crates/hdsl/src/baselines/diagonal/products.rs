//! The linear side of the problem: margins m_t = Σ_i w_i x_i (y_i - z_i) from weights, and the transpose of that.
//!
//! A margin is the difference of two sums over *pairs* of rows, Σ_i w_i x_i y_i, and triplets of one anchor share pairs
//! (3 x 5 neighbors make 15 triplets of 8 pairs). So what is kept is the products x_i y_i of each pair, where both rows
//! hold the feature; and as pairs may outgrow the memory of rows and triplets, those beyond a limit are multiplied again
//! whenever they are needed.

use crate::data::{Columns, Rows};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::triplets::{Anchors, Triplets};
use std::borrow::Cow;
use std::ops::Range;

/// A shard is a piece of work for a thread. So many triplets are worth one; each takes a number for every column.
const SHARD: usize = 1 << 14;
const MOST_SHARDS: usize = 8;

/// Triplets of a block, more or less: what is multiplied again at once if it is not kept.
const BLOCK: usize = 1 << 12;

/// Products kept for each stored value and each triplet.
const KEPT: usize = 8;

/// Triplets over rows, ready for weights. Triplets are in the order of their anchors.
pub(super) struct Products<'a> {
    columns: Columns,
    rows: Rows,
    triplets: &'a Triplets,
    anchors: Anchors,
    /// Weights of triplets, if they differ.
    counts: Option<Vec<f64>>,
    total: f64,
    shards: Vec<Shard>,
}

struct Shard {
    positions: Range<usize>,
    blocks: Vec<(Range<usize>, Option<Block>)>,
}

/// The triplets of some anchors.
#[derive(Clone, Default)]
struct Block {
    /// For each triplet, its pairs {anchor, near} and {anchor, far}.
    near: Vec<u32>,
    far: Vec<u32>,
    /// For each pair, its products: `values[starts[p]..starts[p + 1]]`.
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

/// What a shard needs for a while.
#[derive(Default)]
struct Scratch {
    /// A row written out, all 0 in between.
    dense: Vec<f64>,
    others: Vec<u32>,
}

impl<'a> Products<'a> {
    /// Of triplets that are checked here.
    pub(super) fn new(rows: &Rows, triplets: &'a Triplets) -> Result<Self> {
        Self::keeping(rows, triplets, KEPT * (rows.nnz() + triplets.len()))
    }

    /// With at most about `kept` products in memory.
    fn keeping(rows: &Rows, triplets: &'a Triplets, kept: usize) -> Result<Self> {
        triplets.check(rows.n_rows())?;
        let columns = Columns::of(rows);
        if columns.is_empty() {
            return Err(Error::data(
                "no row holds a feature, expected rows with values",
            ));
        }
        let anchors = triplets.by_anchor(rows.n_rows());
        let counts = triplets.weights().map(|_| {
            (0..triplets.len())
                .map(|position| triplets.weight_at(&anchors, position))
                .collect()
        });
        let mut products = Self {
            rows: columns.compact(rows),
            columns,
            triplets,
            counts,
            total: triplets.total_weight(),
            anchors,
            shards: Vec::new(),
        };
        let n_shards = (triplets.len() / SHARD).clamp(1, MOST_SHARDS);
        products.shards = (products.anchors.cut(n_shards).into_par_iter())
            .map(|anchors| products.shard(anchors, kept / n_shards))
            .collect();
        Ok(products)
    }

    fn shard(&self, anchors: Range<usize>, mut kept: usize) -> Shard {
        let starts = self.anchors.starts();
        let mut blocks = Vec::new();
        let mut scratch = Scratch::default();
        let mut first = anchors.start;
        for anchor in anchors.clone() {
            if starts[anchor + 1] - starts[first] >= BLOCK || anchor + 1 == anchors.end {
                let range = first..anchor + 1;
                first = anchor + 1;
                // Once one does not fit, later ones are not tried: they would be made twice for nothing.
                let block = (kept > 0).then(|| self.block(range.clone(), &mut scratch));
                let fits = block.as_ref().is_some_and(|b| b.values.len() <= kept);
                kept = match &block {
                    Some(block) if fits => kept - block.values.len(),
                    _ => 0,
                };
                blocks.push((range, block.filter(|_| fits)));
            }
        }
        Shard {
            positions: starts[anchors.start]..starts[anchors.end],
            blocks,
        }
    }

    fn block(&self, anchors: Range<usize>, scratch: &mut Scratch) -> Block {
        let mut block = Block::default();
        block.starts.push(0);
        scratch.dense.resize(self.columns.len(), 0.0);
        for anchor in anchors.filter(|&anchor| !self.anchors.range(anchor).is_empty()) {
            let others = &mut scratch.others;
            others.clear();
            self.triplets
                .each_of_anchor(&self.anchors, anchor, |_, near, far| {
                    others.extend([near, far]);
                });
            others.sort_unstable();
            others.dedup();
            let before = block.starts.len() - 1;
            let pair = |other: u32| {
                let place = others.binary_search(&other);
                (before + place.expect("every other row was listed")) as u32
            };
            self.triplets
                .each_of_anchor(&self.anchors, anchor, |_, near, far| {
                    block.near.push(pair(near));
                    block.far.push(pair(far));
                });
            let row = self.rows.row(anchor);
            for (column, x) in row.iter() {
                scratch.dense[column as usize] = x;
            }
            for &other in &scratch.others {
                for (column, y) in self.rows.row(other as usize).iter() {
                    let product = scratch.dense[column as usize] * y;
                    if product != 0.0 {
                        block.columns.push(column);
                        block.values.push(product);
                    }
                }
                block.starts.push(block.values.len());
            }
            for &column in row.indices() {
                scratch.dense[column as usize] = 0.0;
            }
        }
        block
    }

    /// Calls `each` with every block of a shard and the positions of its triplets.
    fn each_block(&self, shard: &Shard, mut each: impl FnMut(&Block, Range<usize>)) {
        let (starts, mut scratch) = (self.anchors.starts(), Scratch::default());
        for (anchors, kept) in &shard.blocks {
            let block = match kept {
                Some(block) => Cow::Borrowed(block),
                None => Cow::Owned(self.block(anchors.clone(), &mut scratch)),
            };
            each(&block, starts[anchors.start]..starts[anchors.end]);
        }
    }

    /// The features that occur; weights and gradients have a number for each.
    pub(super) fn columns(&self) -> &Columns {
        &self.columns
    }

    pub(super) fn n_triplets(&self) -> usize {
        self.triplets.len()
    }

    /// m_t for every triplet.
    pub(super) fn margins(&self, weights: &[f64], into: &mut [f64]) {
        let mut rest = into;
        let mut parts = Vec::with_capacity(self.shards.len());
        for shard in &self.shards {
            let (part, after) = rest.split_at_mut(shard.positions.len());
            parts.push((shard, part));
            rest = after;
        }
        parts.into_par_iter().for_each(|(shard, part)| {
            let mut sums = Vec::new();
            self.each_block(shard, |block, positions| {
                sums.clear();
                sums.extend(block.starts.windows(2).map(|bounds| {
                    let range = bounds[0]..bounds[1];
                    let products = block.values[range.clone()].iter();
                    (block.columns[range].iter().zip(products))
                        .map(|(&column, x)| weights[column as usize] * x)
                        .sum::<f64>()
                }));
                let first = positions.start - shard.positions.start;
                let margins = &mut part[first..first + positions.len()];
                for ((m, &near), &far) in margins.iter_mut().zip(&block.near).zip(&block.far) {
                    *m = sums[near as usize] - sums[far as usize];
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

    /// By column, Σ over pairs of some function of the product, times what the triplets say: `parts` of each triplet for
    /// its pairs {anchor, near} and {anchor, far}.
    fn by_column(
        &self,
        parts: impl Fn(usize) -> [f64; 2] + Sync,
        of: impl Fn(f64) -> f64 + Sync,
    ) -> Vec<f64> {
        let shards: Vec<Vec<f64>> = (self.shards.par_iter())
            .map(|shard| {
                let mut columns = vec![0.0; self.columns.len()];
                let mut sums: Vec<f64> = Vec::new();
                self.each_block(shard, |block, positions| {
                    sums.clear();
                    sums.resize(block.starts.len() - 1, 0.0);
                    for ((t, &near), &far) in positions.zip(&block.near).zip(&block.far) {
                        let [of_near, of_far] = parts(t);
                        sums[near as usize] += of_near;
                        sums[far as usize] += of_far;
                    }
                    for (&sum, bounds) in sums.iter().zip(block.starts.windows(2)) {
                        if sum != 0.0 {
                            let range = bounds[0]..bounds[1];
                            let products = block.values[range.clone()].iter();
                            for (&column, x) in block.columns[range].iter().zip(products) {
                                columns[column as usize] += sum * of(*x);
                            }
                        }
                    }
                });
                columns
            })
            .collect();
        let mut parts = shards.into_iter();
        let mut columns = parts.next().expect("there is a shard");
        for part in parts {
            columns.iter_mut().zip(part).for_each(|(c, p)| *c += p);
        }
        columns
    }

    /// (1/V) Σ_t v_t c(t), with v_t the weight of triplet t and V their sum.
    pub(super) fn mean(&self, cost: impl Fn(usize) -> f64 + Sync) -> f64 {
        let sums: Vec<f64> = (self.shards.par_iter())
            .map(|shard| match &self.counts {
                None => shard.positions.clone().map(&cost).sum(),
                Some(counts) => (shard.positions.clone()).map(|t| counts[t] * cost(t)).sum(),
            })
            .collect();
        sums.iter().sum::<f64>() / self.total
    }

    /// v_t / V, the part of triplet t in the mean.
    pub(super) fn share(&self, t: usize) -> f64 {
        self.counts.as_ref().map_or(1.0, |counts| counts[t]) / self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baselines::diagonal::tests::{Tiny, tiny};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn margins_and_their_transpose_agree_with_the_definition(tiny in tiny(), kept in 0usize..40) {
            let rows = tiny.rows();
            let products = Products::keeping(&rows, &tiny.triplets, kept).unwrap();
            let columns = products.columns();
            let weights: Vec<f64> = (0..columns.len()).map(|c| 0.5 - c as f64).collect();
            let mut margins = vec![f64::NAN; products.n_triplets()];
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
    fn what_is_not_kept_is_the_same_to_the_last_bit() {
        let tiny = Tiny::random(40, 12, 30_000, 3);
        let rows = tiny.rows();
        let of = |kept: usize| {
            let products = Products::keeping(&rows, &tiny.triplets, kept).unwrap();
            let n_kept = (products.shards.iter().flat_map(|shard| &shard.blocks))
                .filter(|block| block.1.is_some())
                .count();
            let weights: Vec<f64> = (0..12).map(|c| 1.0 / (1.0 + c as f64)).collect();
            let mut margins = vec![0.0; products.n_triplets()];
            products.margins(&weights, &mut margins);
            let gradient = products.transposed(&margins);
            (n_kept, margins, gradient)
        };
        let (all, some, none) = (of(usize::MAX), of(1_500), of(0));
        assert!(none.0 == 0 && some.0 > 0 && some.0 < all.0, "{}", some.0);
        assert_eq!((&all.1, &all.2), (&some.1, &some.2));
        assert_eq!((&all.1, &all.2), (&none.1, &none.2));
    }
}
