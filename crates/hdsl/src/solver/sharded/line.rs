//! The line search over shards: φ' of all shards together, piecewise linear and increasing.

/// φ'(γ) on an interval: its value and slope at the lower end, and the breakpoints at which its slope changes.
pub(super) struct PiecewiseSlope {
    pub(super) low: f64,
    pub(super) high: f64,
    /// φ' and φ'' at `low`, summed over shards.
    pub(super) at_low: (f64, f64),
    /// (γ, change of φ'').
    pub(super) breakpoints: Vec<(f64, f64)>,
}

impl PiecewiseSlope {
    /// The root of φ' in the interval, or the end that is nearest to it.
    pub(super) fn root(mut self) -> f64 {
        self.breakpoints.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut gamma, (mut slope, mut curvature)) = (self.low, self.at_low);
        for (next, change) in self.breakpoints {
            let at_next = slope + curvature * (next - gamma);
            if at_next >= 0.0 {
                break;
            }
            (gamma, slope, curvature) = (next, at_next, curvature + change);
        }
        match slope < 0.0 && curvature > 0.0 {
            true => (gamma - slope / curvature).min(self.high),
            false if slope < 0.0 => self.high,
            false => gamma,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_of_a_kinked_slope_is_exact() {
        // φ' = -3 up to 0.2, then rises with slope 10, kinks at 0.4, then slope 1 through 0 at γ = 1.4.
        let of = |low: f64, high: f64, at_low| PiecewiseSlope {
            low,
            high,
            at_low,
            breakpoints: vec![(0.4, -9.0), (0.2, 10.0)],
        };
        assert!((of(0.0, 5.0, (-3.0, 0.0)).root() - 1.4).abs() < 1e-12);
        assert_eq!(of(0.0, 0.3, (-3.0, 0.0)).root(), 0.3);
        assert_eq!(of(0.1, 5.0, (0.0, 1.0)).root(), 0.1);
    }
}
