//! D over the triplets of one shard, in blocks of columns; blocks where it is 0 throughout are not stored.
//!
//! Of millions of columns most are in so few rows that no pair of a shard shares them.

use crate::objective::COLUMNS;
use crate::objective::margins::Affine;

/// The relative change of σ after which the bounds of D are computed again.
const MAX_DRIFT: f64 = 0.1;
/// The place of a block that is not stored.
const NONE: u32 = u32::MAX;

pub(crate) struct Diagonal {
    /// The place of each block of columns in the lists below.
    places: Vec<u32>,
    blocks: Vec<Block>,
    /// An upper bound of D in each stored block, and whether D changed since the bound was computed.
    bounds: Vec<Bound>,
    stale: Vec<bool>,
}

type Block = [Affine; COLUMNS];

impl Diagonal {
    /// All 0.
    pub(crate) fn new(n_columns: usize) -> Self {
        Self {
            places: vec![NONE; n_columns.div_ceil(COLUMNS)],
            blocks: Vec::new(),
            bounds: Vec::new(),
            stale: Vec::new(),
        }
    }

    /// All 0 again.
    pub(crate) fn reset(&mut self) {
        self.blocks.fill([[0.0; 2]; COLUMNS]);
        self.stale.fill(true);
    }

    #[inline]
    pub(crate) fn get(&self, column: u32) -> Affine {
        let place = self.places[column as usize / COLUMNS];
        match self.blocks.get(place as usize) {
            Some(block) => block[column as usize % COLUMNS],
            None => [0.0; 2],
        }
    }

    /// Adds to D of a column: the linear part, and the constant one if it changes.
    #[inline]
    pub(crate) fn add<const BOTH: bool>(&mut self, column: u32, by: Affine) {
        let mut place = self.places[column as usize / COLUMNS];
        if place == NONE {
            place = self.store(column as usize / COLUMNS);
        }
        let sum = &mut self.blocks[place as usize][column as usize % COLUMNS];
        if BOTH {
            sum[0] += by[0];
        }
        sum[1] += by[1];
        self.stale[place as usize] = true;
    }

    #[cold]
    fn store(&mut self, block: usize) -> u32 {
        let place = self.blocks.len() as u32;
        self.places[block] = place;
        self.blocks.push([[0.0; 2]; COLUMNS]);
        self.bounds.push(Bound::default());
        self.stale.push(true);
        place
    }

    /// Computes the bounds of blocks where D changed, or all of them if σ has changed much.
    pub(crate) fn tighten(&mut self, sigma: f64) {
        let blocks = self.blocks.iter().zip(&mut self.bounds);
        for ((block, bound), stale) in blocks.zip(&mut self.stale) {
            if std::mem::take(stale) || (bound.sigma - sigma).abs() > MAX_DRIFT * sigma {
                *bound = Bound::of(block, sigma);
            }
        }
    }

    /// An upper bound of D in a block of columns.
    #[inline]
    pub(crate) fn bound(&self, block: usize, sigma: f64) -> f64 {
        match self.places[block] {
            NONE => 0.0,
            place => self.bounds[place as usize].at(sigma),
        }
    }
}

/// An upper bound of D in a block of columns, for any σ: D(σ) = D(σ₀) + (σ₀ - σ) (its linear part).
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
        // Room for the rounding of a small difference.
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
