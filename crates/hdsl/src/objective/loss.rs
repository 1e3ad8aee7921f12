//! What a margin costs: four convex losses behind one small trait.

use crate::error::Error;
use std::fmt;
use std::str::FromStr;

/// A convex, decreasing, continuously differentiable penalty on the margin
/// m = S(anchor, near) - S(anchor, far) of a triplet.
///
/// To add one, implement this, give it a variant in [`LossKind`], and the table of cases in this file's tests
/// checks it; `CONTRIBUTING.md` walks through it.
pub trait Loss: Copy + Send + Sync {
    /// ℓ(m).
    fn value(self, m: f64) -> f64;
    /// ℓ'(m), never above 0.
    fn slope(self, m: f64) -> f64;
    /// ℓ''(m) where it exists, one of the two one-sided values where it does not. The line search uses it to
    /// guess, and checks the guess.
    fn curvature(self, m: f64) -> f64;
}

/// The paper's loss: 0 from margin 1 on, a parabola between 0 and 1, a straight line below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmoothedHinge;

impl Loss for SmoothedHinge {
    fn value(self, m: f64) -> f64 {
        if m >= 1.0 {
            0.0
        } else if m <= 0.0 {
            0.5 - m
        } else {
            0.5 * (1.0 - m) * (1.0 - m)
        }
    }
    fn slope(self, m: f64) -> f64 {
        -(1.0 - m).clamp(0.0, 1.0)
    }
    fn curvature(self, m: f64) -> f64 {
        f64::from(u8::from(m > 0.0 && m < 1.0))
    }
}

/// ½ max(0, 1 - m)²: as the smoothed hinge above 0, and ever steeper below. The half makes the two agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SquaredHinge;

impl Loss for SquaredHinge {
    fn value(self, m: f64) -> f64 {
        let short = (1.0 - m).max(0.0);
        0.5 * short * short
    }
    fn slope(self, m: f64) -> f64 {
        -(1.0 - m).max(0.0)
    }
    fn curvature(self, m: f64) -> f64 {
        f64::from(u8::from(m < 1.0))
    }
}

/// ln(1 + e^-m): never quite satisfied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logistic;

impl Loss for Logistic {
    fn value(self, m: f64) -> f64 {
        (-m).max(0.0) + (-m.abs()).exp().ln_1p()
    }
    fn slope(self, m: f64) -> f64 {
        let e = (-m.abs()).exp();
        if m >= 0.0 {
            -e / (1.0 + e)
        } else {
            -1.0 / (1.0 + e)
        }
    }
    fn curvature(self, m: f64) -> f64 {
        let e = (-m.abs()).exp();
        e / ((1.0 + e) * (1.0 + e))
    }
}

/// e^-m, continued as a straight line below m = -30 so that no margin can overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exponential;

impl Exponential {
    const STEEPEST: f64 = -30.0;
}

impl Loss for Exponential {
    fn value(self, m: f64) -> f64 {
        let bent = m.max(Self::STEEPEST);
        (-bent).exp() * (1.0 + (bent - m))
    }
    fn slope(self, m: f64) -> f64 {
        -(-m.max(Self::STEEPEST)).exp()
    }
    fn curvature(self, m: f64) -> f64 {
        if m < Self::STEEPEST { 0.0 } else { (-m).exp() }
    }
}

/// Which loss to minimize.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossKind {
    /// [`SmoothedHinge`], the paper's and the default.
    #[default]
    SmoothedHinge,
    /// [`SquaredHinge`].
    SquaredHinge,
    /// [`Logistic`].
    Logistic,
    /// [`Exponential`].
    Exponential,
}

/// Runs an expression with the loss as a value of its own type, so that hot loops are compiled for each.
macro_rules! with_loss {
    ($kind:expr, $loss:ident => $body:expr) => {
        match $kind {
            $crate::objective::loss::LossKind::SmoothedHinge => {
                let $loss = $crate::objective::loss::SmoothedHinge;
                $body
            }
            $crate::objective::loss::LossKind::SquaredHinge => {
                let $loss = $crate::objective::loss::SquaredHinge;
                $body
            }
            $crate::objective::loss::LossKind::Logistic => {
                let $loss = $crate::objective::loss::Logistic;
                $body
            }
            $crate::objective::loss::LossKind::Exponential => {
                let $loss = $crate::objective::loss::Exponential;
                $body
            }
        }
    };
}
pub(crate) use with_loss;

impl LossKind {
    /// Every loss there is.
    pub const ALL: [LossKind; 4] = [
        LossKind::SmoothedHinge,
        LossKind::SquaredHinge,
        LossKind::Logistic,
        LossKind::Exponential,
    ];

    /// Its name on the command line and in model files.
    pub fn name(self) -> &'static str {
        match self {
            LossKind::SmoothedHinge => "smoothed-hinge",
            LossKind::SquaredHinge => "squared-hinge",
            LossKind::Logistic => "logistic",
            LossKind::Exponential => "exponential",
        }
    }
}

impl fmt::Display for LossKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LossKind {
    type Err = Error;
    fn from_str(name: &str) -> Result<Self, Error> {
        LossKind::ALL
            .into_iter()
            .find(|loss| loss.name() == name)
            .ok_or_else(|| {
                Error::param(
                    "loss",
                    name,
                    "smoothed-hinge, squared-hinge, logistic or exponential",
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slope_is_the_derivative_of_value_and_curvature_of_slope() {
        for kind in LossKind::ALL {
            for m in [-40.0, -2.0, -0.01, 0.25, 0.99, 1.5, 3.0] {
                with_loss!(kind, loss => {
                    let h = 1e-6;
                    let scale = 1.0 + loss.value(m).abs();
                    let first = (loss.value(m + h) - loss.value(m - h)) / (2.0 * h);
                    let second = (loss.slope(m + h) - loss.slope(m - h)) / (2.0 * h);
                    assert!((loss.slope(m) - first).abs() < 1e-6 * scale, "{kind} slope at {m}");
                    assert!((loss.curvature(m) - second).abs() < 1e-6 * scale, "{kind} curvature at {m}");
                });
            }
        }
    }

    #[test]
    fn losses_are_convex_decreasing_and_finite_at_any_margin() {
        let margins = [
            -1e300, -1e12, -700.0, -30.0, -1.0, 0.0, 0.5, 1.0, 30.0, 1e12, 1e300,
        ];
        for kind in LossKind::ALL {
            with_loss!(kind, loss => {
                let slopes: Vec<f64> = margins.iter().map(|&m| loss.slope(m)).collect();
                assert!(slopes.iter().all(|&s| s <= 0.0 && s.is_finite()), "{kind}: {slopes:?}");
                assert!(slopes.windows(2).all(|w| w[0] <= w[1]), "{kind}: {slopes:?}");
                assert!(margins.iter().all(|&m| loss.value(m) >= 0.0), "{kind}");
            });
        }
    }

    #[test]
    fn names_parse_back() {
        for kind in LossKind::ALL {
            assert_eq!(kind.name().parse::<LossKind>().unwrap(), kind);
        }
        assert!("hinge".parse::<LossKind>().is_err());
    }
}
