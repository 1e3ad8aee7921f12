//! The losses ℓ(m) of a triplet's margin m = S(anchor, near) - S(anchor, far).
//!
//! This is the only file of the library that knows which losses there are. A new loss needs three things here: an
//! implementation of [`Loss`], a variant of [`LossKind`], and its name in `with_loss!`. `CONTRIBUTING.md` walks through
//! it.

use crate::named::named_enum;

/// A convex, decreasing, continuously differentiable function of the margin.
pub(crate) trait Loss: Copy + Send + Sync {
    /// ℓ(m).
    fn value(self, m: f64) -> f64;
    /// ℓ'(m), at most 0.
    fn slope(self, m: f64) -> f64;
    /// ℓ''(m) where it exists, and otherwise one of the two one-sided values. The line search uses it for its Newton
    /// steps, which are safeguarded.
    fn curvature(self, m: f64) -> f64;
    /// The segments of a hinge loss. If there are some, the solver updates the gradient incrementally instead of
    /// recomputing it.
    fn segments(self) -> Option<Segments> {
        None
    }
}

/// The segments of a hinge loss. The loss is 0 for m >= 1 (flat) and (1 - m)² / 2 below (quadratic). If it has a linear
/// segment, it is 1/2 - m for m <= 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segments {
    /// Whether the loss is linear below margin 0.
    pub(crate) has_linear: bool,
}

/// The loss of the paper: 0 from margin 1 on, a parabola between 0 and 1, linear below.
#[derive(Clone, Copy)]
pub(crate) struct SmoothedHinge;

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
    fn segments(self) -> Option<Segments> {
        Some(Segments { has_linear: true })
    }
}

/// ½ max(0, 1 - m)²: equal to the smoothed hinge above margin 0, quadratic below.
#[derive(Clone, Copy)]
pub(crate) struct SquaredHinge;

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
    fn segments(self) -> Option<Segments> {
        Some(Segments { has_linear: false })
    }
}

/// ln(1 + e^-m): above 0 at every margin.
#[derive(Clone, Copy)]
pub(crate) struct Logistic;

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
#[derive(Clone, Copy)]
pub(crate) struct Exponential;

impl Exponential {
    const LINEAR_BELOW: f64 = -30.0;
}

impl Loss for Exponential {
    fn value(self, m: f64) -> f64 {
        let curved = m.max(Self::LINEAR_BELOW);
        (-curved).exp() * (1.0 + (curved - m))
    }
    fn slope(self, m: f64) -> f64 {
        -(-m.max(Self::LINEAR_BELOW)).exp()
    }
    fn curvature(self, m: f64) -> f64 {
        if m < Self::LINEAR_BELOW {
            0.0
        } else {
            (-m).exp()
        }
    }
}

named_enum! {
/// Which loss of the margins to minimize.
#[non_exhaustive]
pub enum LossKind as "loss" = "smoothed-hinge" | "squared-hinge" | "logistic" | "exponential", default SmoothedHinge {
    /// 0 from margin 1 on, a parabola between 0 and 1, linear below: the loss of the paper.
    SmoothedHinge,
    /// ½ max(0, 1 - m)².
    SquaredHinge,
    /// ln(1 + e^-m).
    Logistic,
    /// e^-m.
    Exponential,
}
}

/// Evaluates an expression with the loss as a value of its own type, so that hot loops are compiled for each loss.
macro_rules! with_loss {
    ($kind:expr, $loss:ident => $body:expr) => {
        $crate::objective::loss::with_loss!($kind, $loss => $body;
            SmoothedHinge
            SquaredHinge
            Logistic
            Exponential
        )
    };
    ($kind:expr, $loss:ident => $body:expr; $($name:ident)+) => {
        match $kind {
            $($crate::objective::loss::LossKind::$name => {
                let $loss = $crate::objective::loss::$name;
                $body
            })+
        }
    };
}
pub(crate) use with_loss;

impl LossKind {
    /// The segments of a hinge loss; `None` for other losses.
    pub(crate) fn segments(self) -> Option<Segments> {
        with_loss!(self, loss => loss.segments())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks slope and curvature by finite differences between breakpoints, and that the loss is convex, decreasing
    /// and finite at any margin.
    fn check(loss: impl Loss, name: &str) {
        for m in [-40.0, -2.0, -0.01, 0.25, 0.99, 1.5, 3.0] {
            let h = 1e-6;
            let scale = 1.0 + loss.value(m).abs();
            let first = (loss.value(m + h) - loss.value(m - h)) / (2.0 * h);
            let second = (loss.slope(m + h) - loss.slope(m - h)) / (2.0 * h);
            let close = |a: f64, b: f64| (a - b).abs() < 1e-6 * scale;
            assert!(close(loss.slope(m), first), "{name}: slope at {m}");
            assert!(close(loss.curvature(m), second), "{name}: curvature at {m}");
        }
        let margins = [
            -1e300, -1e12, -700.0, -30.0, -1.0, 0.0, 0.5, 1.0, 30.0, 1e12, 1e300,
        ];
        let slopes = margins.map(|m| loss.slope(m));
        assert!(slopes.iter().all(|&s| s <= 0.0 && s.is_finite()), "{name}");
        assert!(slopes.is_sorted(), "{name}: {slopes:?}");
        assert!(margins.iter().all(|&m| loss.value(m) >= 0.0), "{name}");
    }

    #[test]
    fn losses_are_convex_and_slopes_and_curvatures_are_derivatives() {
        for kind in LossKind::ALL {
            with_loss!(kind, loss => check(loss, kind.name()));
        }
    }

    #[test]
    fn segments_say_what_the_loss_is() {
        for kind in LossKind::ALL {
            let Some(Segments { has_linear }) = kind.segments() else {
                continue;
            };
            with_loss!(kind, loss => for k in -40..40 {
                let m = f64::from(k) / 8.0;
                let want = match m {
                    m if m >= 1.0 => 0.0,
                    m if m <= 0.0 && has_linear => 0.5 - m,
                    m => 0.5 * (1.0 - m) * (1.0 - m),
                };
                assert!((loss.value(m) - want).abs() < 1e-15, "{kind} at {m}");
            });
        }
    }
}
