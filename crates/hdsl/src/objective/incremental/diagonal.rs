//! D over the triplets of one shard, in blocks of columns. Blocks that are 0 everywhere are not stored.
//!
//! With millions of columns, most occur in so few rows that they do not occur in both rows of any pair.

use crate::objective::COLUMNS;
use crate::objective::margins::Affine;

/// The relative change of σ after which the bounds of D are recomputed.
const MAX_DRIFT: f64 = 0.1;

pub(crate) struct Diagonal {
    blocks: Vec<Option<Box<Block>>>,
}

struct Block {
    sums: [Affine; COLUMNS],
    bound: Bound,
    /// Whether D changed since the bound was computed.
    is_stale: bool,
}

impl Block {
    fn zero() -> Box<Self> {
        Box::new(Self {
            sums: [[0.0; 2]; COLUMNS],
            bound: Bound::default(),
            is_stale: true,
        })
    }
}

impl Diagonal {
    /// D = 0.
    pub(crate) fn new(n_columns: usize) -> Self {
        let n_blocks = n_columns.div_ceil(COLUMNS);
        Self {
            blocks: (0..n_blocks).map(|_| None).collect(),
        }
    }

    /// Sets D to 0.
    pub(crate) fn reset(&mut self) {
        let blocks = self.blocks.iter_mut().flatten();
        blocks.for_each(|block| *block = Block::zero());
    }

    #[inline]
    pub(crate) fn get(&self, column: u32) -> Affine {
        let block = &self.blocks[column as usize / COLUMNS];
        (block.as_ref()).map_or([0.0; 2], |block| block.sums[column as usize % COLUMNS])
    }

    /// Adds delta times x to D of a column.
    #[inline]
    pub(crate) fn add(&mut self, column: u32, delta: Affine, x: f64) {
        let block = self.blocks[column as usize / COLUMNS].get_or_insert_with(Block::zero);
        super::add(&mut block.sums[column as usize % COLUMNS], delta, x);
        block.is_stale = true;
    }

    /// Recomputes the bounds of the blocks in which D changed, or whose bound was computed for a very different σ.
    pub(crate) fn tighten(&mut self, sigma: f64) {
        for block in self.blocks.iter_mut().flatten() {
            let drifted = (block.bound.sigma - sigma).abs() > MAX_DRIFT * sigma;
            if std::mem::take(&mut block.is_stale) || drifted {
                block.bound = Bound::of(&block.sums, sigma);
            }
        }
    }

    /// An upper bound of D in a block of columns.
    #[inline]
    pub(crate) fn bound(&self, block: usize, sigma: f64) -> f64 {
        (self.blocks[block].as_ref()).map_or(0.0, |block| block.bound.at(sigma))
    }
}

/// An upper bound of D in a block of columns, for any σ. With D(σ) = a - σ b, D(σ) = D(σ₀) + (σ₀ - σ) b. The bound is
/// computed from the largest D(σ₀) and from the smallest and the largest b.
#[derive(Clone, Copy, Default)]
struct Bound {
    most: f64,
    sigma: f64,
    least: f64,
    greatest: f64,
}

impl Bound {
    fn of(block: &[Affine], sigma: f64) -> Self {
        let (mut most, mut terms) = (f64::NEG_INFINITY, 0.0f64);
        let (mut least, mut greatest) = (f64::INFINITY, f64::NEG_INFINITY);
        for &[constant, linear] in block {
            most = most.max(constant - sigma * linear);
            terms = terms.max(constant.abs());
            least = least.min(linear);
            greatest = greatest.max(linear);
        }
        // A slack for rounding errors: a - σ b may be a small difference of large numbers.
        let terms = terms.max(sigma * least.abs().max(greatest.abs()));
        Self {
            most: most + 1e-13 * terms,
            sigma,
            least,
            greatest,
        }
    }

    fn at(&self, sigma: f64) -> f64 {
        let by = self.sigma - sigma;
        self.most + (by * self.least).max(by * self.greatest)
    }
}
