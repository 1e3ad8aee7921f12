//! Upper bounds of a dot product that avoid computing it: |v · x| <= min(‖v‖_∞ ‖x‖_1, ‖v‖_2 ‖x‖_2).

use crate::atoms::{Atom, Sign};
use crate::objective::{Features, Scored};

/// A factor for bounds, because bounds and products have different rounding errors.
pub(super) const SLACK: f64 = 1.0 + 1e-9;

/// The norms of a vector v that bound its dot products.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Norms {
    /// ‖v‖_∞.
    pub(super) largest: f64,
    /// ‖v‖_2. If no x is negative, |v · x| is at most the larger of v⁺ · x and v⁻ · x, so this is the larger of ‖v⁺‖_2
    /// and ‖v⁻‖_2, where v⁺ and v⁻ are the positive and the negative part of v.
    pub(super) length: f64,
}

/// The larger of two numbers. Unlike `f64::max`, which handles NaN, a plain comparison is one instruction.
#[inline]
fn greater(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// The largest absolute value; 0 of an empty list. Independent partial results hide the latency of comparisons.
pub(super) fn largest_abs(v: &[f64]) -> f64 {
    let mut largest = [0.0; 8];
    let (eights, rest) = v.as_chunks::<8>();
    for eight in eights {
        (0..8).for_each(|k| largest[k] = greater(largest[k], eight[k].abs()));
    }
    let largest = largest.into_iter().fold(0.0, greater);
    rest.iter().fold(largest, |a, b| greater(a, b.abs()))
}

impl Norms {
    pub(super) fn of(v: &[f64], non_negative: bool) -> Self {
        // Four partial sums hide the latency of the additions.
        let (mut largest, mut above, mut below) = ([0.0; 4], [0.0; 4], [0.0; 4]);
        let mut add = |v: &[f64; 4]| {
            for k in 0..4 {
                let up = greater(v[k], 0.0);
                let down = up - v[k];
                largest[k] = greater(largest[k], greater(up, down));
                above[k] += up * up;
                below[k] += down * down;
            }
        };
        let (fours, rest) = v.as_chunks::<4>();
        fours.iter().for_each(&mut add);
        let mut last = [0.0; 4];
        last[..rest.len()].copy_from_slice(rest);
        add(&last);
        let (above, below): (f64, f64) = (above.iter().sum(), below.iter().sum());
        let square = match non_negative {
            true => above.max(below),
            false => above + below,
        };
        Self {
            largest: largest.into_iter().fold(0.0, greater),
            length: square.sqrt(),
        }
    }

    /// The larger of each norm.
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            largest: self.largest.max(other.largest),
            length: self.length.max(other.length),
        }
    }

    /// An upper bound of |v · x|, given ‖x‖_1 and ‖x‖_2.
    pub(super) fn bound(self, [norm1, norm2]: [f64; 2]) -> f64 {
        SLACK * (self.largest * norm1).min(self.length * norm2)
    }
}

/// The better of `best` and the best atom of these two features, given D_i + D_j and H_ij.
#[inline]
pub(super) fn better_pair(
    features: &Features,
    best: Scored,
    [i, j]: [u32; 2],
    diagonals: f64,
    h: f64,
) -> Scored {
    let score = diagonals + h.abs();
    if score < best.1 {
        return best;
    }
    let sign = if h < 0.0 { Sign::Minus } else { Sign::Plus };
    let atom = Atom::new(i, j, sign).expect("a partner is another feature");
    features.better(best, (atom, score))
}
