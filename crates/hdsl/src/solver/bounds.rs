//! Upper bounds of |v · x|, which spare the product: |v · x| <= min(‖v‖_∞ ‖x‖_1, ‖v‖_2 ‖x‖_2).

use crate::atoms::{Atom, Sign};
use crate::objective::{Problem, Scored};

/// Bounds and products round differently: leave room for that.
pub(super) const SLACK: f64 = 1.0 + 1e-9;

/// ‖v‖_∞ and ‖v‖_2 of a vector. If no x is negative, only the entries of v of one sign can count, and `length` is the
/// larger of the two lengths.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    pub(super) largest: f64,
    pub(super) length: f64,
}

impl Size {
    pub(super) fn of(v: &[f64], non_negative: bool) -> Self {
        // Four of each side by side: a sum has to wait for the one before. And unlike `f64::max`, a plain comparison is
        // one instruction.
        let greater = |a: f64, b: f64| if a > b { a } else { b };
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

    /// The larger of each.
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            largest: self.largest.max(other.largest),
            length: self.length.max(other.length),
        }
    }

    /// A bound of the product with a vector of these 1- and 2-norms.
    pub(super) fn times(self, [sum, length]: [f64; 2]) -> f64 {
        SLACK * (self.largest * sum).min(self.length * length)
    }
}

/// The better of `best` and the best atom of these two features, given D_i + D_j and H_ij.
pub(super) fn better_pair(
    problem: &Problem<'_>,
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
    problem.better(best, (atom, score))
}
