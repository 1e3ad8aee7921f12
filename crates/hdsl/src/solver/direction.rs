//! Directions of Alg. 1 and the line search along them.

use crate::atoms::{ActiveSet, Atom, Step};

/// A direction of descent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Direction {
    /// D_F = B - M.
    Forward(Atom),
    /// D_A = M - B.
    Away(Atom),
    /// B_F - B_A.
    Pairwise { to: Atom, from: Atom },
}

impl Direction {
    /// The longest step that keeps every weight at 0 or above.
    pub(crate) fn gamma_max(self, active: &ActiveSet) -> f64 {
        match self {
            Direction::Forward(_) => 1.0,
            Direction::Away(atom) => longest_away(active.weight(atom)),
            Direction::Pairwise { from, .. } => active.weight(from),
        }
    }

    /// How many features the step adds to those of the active atoms.
    pub(crate) fn new_features(self, active: &ActiveSet) -> usize {
        let (Direction::Forward(to) | Direction::Pairwise { to, .. }) = self else {
            return 0;
        };
        let features = [to.i(), to.j()].into_iter();
        features.filter(|&f| !active.uses_feature(f)).count()
    }

    /// The step of length `gamma`. An away or pairwise step of length `gamma_max` sets a weight to 0 and so removes
    /// that atom.
    pub(crate) fn step(self, gamma: f64, active: &ActiveSet) -> Step {
        let is_longest = gamma >= self.gamma_max(active);
        let (step, removal) = match self {
            Direction::Forward(atom) => return Step::Forward { atom, gamma },
            Direction::Away(atom) => (Step::Away { atom, gamma }, Step::Drop { atom }),
            Direction::Pairwise { to, from } => {
                (Step::Pairwise { to, from, gamma }, Step::Swap { to, from })
            }
        };
        // If gamma is just below gamma_max, rounding can make the remaining weight 0 or negative.
        if is_longest || !active.accepts(&step) {
            removal
        } else {
            step
        }
    }
}

/// The longest step away from an atom with this weight.
pub(super) fn longest_away(weight: f64) -> f64 {
    weight / (1.0 - weight)
}

/// The minimizer in [0, gamma_max] of a convex φ with the given φ' and φ''.
///
/// The root of φ' is found by Newton's method, safeguarded by a bracket. For piecewise quadratic losses, φ' is
/// piecewise linear: a Newton step from the linear piece that contains the root is exact, which takes 3 to 5
/// evaluations. For the other losses, the method ends when the width of the bracket is at the level of rounding errors.
/// The result is 0 if φ does not decrease at 0.
pub(crate) fn line_search(gamma_max: f64, mut derivatives: impl FnMut(f64) -> (f64, f64)) -> f64 {
    let (first, second) = derivatives(0.0);
    if first >= 0.0 || gamma_max <= 0.0 {
        return 0.0;
    }
    let tolerance = 1e-14 * first.abs();
    let (mut low, mut high) = (0.0, gamma_max);
    let mut high_evaluated = false;
    let mut guess = -first / second;
    for _ in 0..200 {
        let gamma = if guess > low && guess < high {
            guess
        } else if !high_evaluated {
            // The Newton step leaves the bracket. Evaluate its upper end first, if that has not been done.
            high_evaluated = true;
            high
        } else if low > 0.0 && high / low > 4.0 {
            // Bisection on a logarithmic scale, for minimizers of any magnitude.
            (low * high).sqrt()
        } else {
            0.5 * (low + high)
        };
        let (slope, curvature) = derivatives(gamma);
        if slope.abs() <= tolerance || (gamma == gamma_max && slope <= 0.0) {
            return gamma;
        }
        if slope < 0.0 {
            low = gamma;
        } else {
            high = gamma;
            high_evaluated = true;
        }
        if high - low <= 1e-15 * high {
            break;
        }
        guess = gamma - slope / curvature;
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_search_finds_the_root_of_a_kinked_slope() {
        // φ' = -3 up to 0.2, then rises with slope 10, kinks at 0.4, then slope 1 through 0 at γ = 1.4.
        let slope = |g: f64| match g {
            g if g < 0.2 => (-3.0, 0.0),
            g if g < 0.4 => (-3.0 + 10.0 * (g - 0.2), 10.0),
            g => (-1.0 + (g - 0.4), 1.0),
        };
        assert!((line_search(5.0, slope) - 1.4).abs() < 1e-12);
        assert_eq!(line_search(0.3, slope), 0.3);
        assert_eq!(line_search(1.0, |_| (0.5, 1.0)), 0.0);
    }

    #[test]
    fn line_search_copes_with_tiny_steps_and_no_curvature() {
        let found = line_search(1.0, |g: f64| (g.powf(0.25) - 1e-3, 0.0));
        assert!((found - 1e-12).abs() < 1e-20, "{found}");
        let found = line_search(1.0, |g: f64| ((g - 3e-9) * 1e9, 1e9));
        assert!((found - 3e-9).abs() < 1e-20, "{found}");
    }
}
