//! Accelerated proximal gradient with restarts, down to a certified gap.
//!
//! minimize F(w) = f(w) + ψ(w),  f(w) = (1/V) Σ_t v_t ℓ(m_t),  m_t linear in w.
//!
//! From a point y ahead of the iterate w, the next iterate is the proximal map of y - ∇f(y)/c (Beck and Teboulle, SIAM J.
//! Imaging Sci. 2009), with c large enough that the parabola of curvature c through y lies above f at the next iterate.
//! Lengths and gradients are in a diagonal metric that evens out how much margins depend on each weight.
//! y is w without momentum wherever the last step turned against the one before it, or where F would rise, so that F never
//! does (O'Donoghue and Candès, Found. Comput. Math. 2015).
//!
//! The certificate costs nothing: f is convex, so F(u) >= f(y) + <∇f(y), u - y> + ψ(u) for every u, and the least of the
//! right side over u is a bound of F* from below ([`Regularizer::least`]).

use super::Diagonal;
use super::penalty::Regularizer;
use super::products::Products;
use crate::error::{Error, Result};
use crate::objective::loss::{Loss, with_loss};
use crate::observer::{DiagonalIteration, Event, Observer, Stop, Stopwatch};
use std::mem;

/// Differences of losses below this share of them are lost in rounding.
const ROUNDING: f64 = 1e-12;

/// Plain steps in a row that may leave F level, to rounding. Where F is flat they still improve the gradient, and with it
/// the bound.
const LEVEL: usize = 1000;

/// Where a run ended.
pub(super) struct Outcome {
    pub(super) weights: Vec<f64>,
    pub(super) last: DiagonalIteration,
    pub(super) stop: Stop,
}

/// Weights and what follows from them.
#[derive(Clone)]
struct Point {
    weights: Vec<f64>,
    margins: Vec<f64>,
    /// f.
    loss: f64,
}

struct Descent<'a> {
    products: &'a Products<'a>,
    params: &'a Diagonal,
    regularizer: Regularizer,
    /// How long a weight is: steps are along the gradient in this metric.
    metric: Vec<f64>,
}

/// Runs `params` from `start`, which must be allowed by the regularizer.
pub(super) fn minimize<'a>(
    products: &'a Products<'a>,
    params: &'a Diagonal,
    start: Vec<f64>,
    mut clock: Stopwatch,
    observer: &mut dyn Observer,
) -> Result<Outcome> {
    let descent = Descent::new(products, params);
    let mut now = descent.point(start);
    let mut objective = descent.objective(&now);
    let mut ahead = now.clone();
    let (mut momentum, mut iter, mut level) = (1.0f64, 0, 0);
    let mut gradient = descent.gradient(&ahead);
    if !(objective.is_finite() && gradient.iter().all(|g| g.is_finite())) {
        return Err(Error::data(
            "products of values are too large for numbers, expected scaled rows",
        ));
    }
    let mut curvature = descent.first_curvature(&gradient);
    let mut bound = descent.bound(&ahead, &gradient, objective);
    let facts = |iter, now: &Point, objective: f64, bound: f64, seconds| DiagonalIteration {
        iter,
        objective,
        gap: (objective - bound).max(0.0),
        n_features: now.weights.iter().filter(|&&w| w != 0.0).count(),
        seconds,
    };
    let stop = loop {
        if objective - bound <= params.tolerance * objective {
            break Stop::Tolerance;
        }
        if iter == params.max_iter {
            break Stop::MaxIter;
        }
        iter += 1;
        let Some(next) = descent.step(&ahead, &gradient, &mut curvature) else {
            break Stop::Stationary;
        };
        let reached = descent.objective(&next);
        if reached < objective {
            // Momentum carries past the minimum where the step looks back.
            let back: f64 = (ahead.weights.iter().zip(&next.weights).zip(&now.weights))
                .zip(&descent.metric)
                .map(|(((a, n), w), metric)| metric * (a - n) * (n - w))
                .sum();
            let before = mem::replace(&mut now, next);
            objective = reached;
            if back > 0.0 {
                (momentum, curvature) = (1.0, 0.5 * curvature);
            }
            let following = 0.5 + (0.25 + momentum * momentum).sqrt();
            descent.look_ahead(&before, &now, (momentum - 1.0) / following, &mut ahead);
            (momentum, level) = (following, 0);
        } else if ahead.weights != now.weights {
            (momentum, curvature) = (1.0, 0.5 * curvature);
            ahead.clone_from(&now);
        } else {
            level += 1;
            if level > LEVEL || next.weights == now.weights {
                break Stop::Stationary;
            }
            ahead.clone_from(&next);
            now = next;
        }
        gradient = descent.gradient(&ahead);
        bound = descent.bound(&ahead, &gradient, objective).max(bound);
        let now_facts = facts(iter, &now, objective, bound, clock.seconds());
        if clock
            .tell(observer, &Event::DiagonalIteration(&now_facts))
            .is_break()
        {
            break Stop::ObserverAsked;
        }
    };
    Ok(Outcome {
        last: facts(iter, &now, objective, bound, clock.seconds()),
        weights: now.weights,
        stop,
    })
}

/// ∇f where every weight is 0.
pub(super) fn gradient_at_zero(products: &Products<'_>, params: &Diagonal) -> Vec<f64> {
    let descent = Descent::new(products, params);
    descent.gradient(&descent.point(vec![0.0; products.columns().len()]))
}

impl<'a> Descent<'a> {
    fn new(products: &'a Products<'a>, params: &'a Diagonal) -> Self {
        let mut metric = products.strengths();
        // A weight that no margin depends on does not move, whatever its metric.
        let floor = 1e-12 * metric.iter().copied().fold(0.0, f64::max);
        for m in &mut metric {
            *m = if floor > 0.0 { m.max(floor) } else { 1.0 };
        }
        Self {
            products,
            params,
            regularizer: params.regularizer(),
            metric,
        }
    }

    fn point(&self, weights: Vec<f64>) -> Point {
        let mut margins = vec![0.0; self.products.n_triplets()];
        self.products.margins(&weights, &mut margins);
        let loss = self.loss(&margins);
        Point {
            weights,
            margins,
            loss,
        }
    }

    fn loss(&self, margins: &[f64]) -> f64 {
        with_loss!(self.params.loss, loss => self.products.mean(|t| loss.value(margins[t])))
    }

    /// F.
    fn objective(&self, at: &Point) -> f64 {
        at.loss + self.regularizer.value(&at.weights)
    }

    /// ∇f.
    fn gradient(&self, at: &Point) -> Vec<f64> {
        let slopes: Vec<f64> = with_loss!(self.params.loss, loss => (at.margins.iter().enumerate())
            .map(|(t, &m)| self.products.share(t) * loss.slope(m))
            .collect());
        self.products.transposed(&slopes)
    }

    /// No F(u) is below this. `objective` is F somewhere.
    fn bound(&self, at: &Point, gradient: &[f64], objective: f64) -> f64 {
        let tangent: f64 = gradient.iter().zip(&at.weights).map(|(g, w)| g * w).sum();
        at.loss - tangent + self.regularizer.least(gradient, objective)
    }

    /// A first guess of c: that of a loss of curvature 1 along the gradient.
    fn first_curvature(&self, gradient: &[f64]) -> f64 {
        let step: Vec<f64> = gradient
            .iter()
            .zip(&self.metric)
            .map(|(g, m)| g / m)
            .collect();
        let squares: f64 = step.iter().zip(&self.metric).map(|(s, m)| m * s * s).sum();
        let along = self.point(step).margins;
        let curvature = self.products.mean(|t| along[t] * along[t]) / squares;
        match curvature.is_finite() && curvature > 0.0 {
            true => curvature,
            false => 1.0,
        }
    }

    /// The proximal step from `ahead`, with c doubled until the parabola holds. None if no c will do.
    fn step(&self, ahead: &Point, gradient: &[f64], curvature: &mut f64) -> Option<Point> {
        while curvature.is_finite() {
            let c = *curvature;
            let weights: Vec<f64> = (ahead.weights.iter().zip(gradient).zip(&self.metric))
                .map(|((w, g), metric)| self.regularizer.prox(w - g / (c * metric), c * metric))
                .collect();
            let squares: f64 = (weights.iter().zip(&ahead.weights).zip(&self.metric))
                .map(|((n, w), metric)| metric * (n - w) * (n - w))
                .sum();
            let next = self.point(weights);
            if self.lies_below(ahead, &next, 0.5 * c * squares) {
                return Some(next);
            }
            *curvature = 2.0 * c;
        }
        None
    }

    /// Whether f(next) - f(ahead) - <∇f(ahead), next - ahead> is at most `parabola`. It is summed triplet by triplet, where
    /// less is lost to rounding. If still too much is, half the change of the slopes along the step stands for it, which is
    /// the same wherever f is quadratic, and over so short a step it is.
    fn lies_below(&self, ahead: &Point, next: &Point, parabola: f64) -> bool {
        let margins = |t: usize| (ahead.margins[t], next.margins[t]);
        let above = with_loss!(self.params.loss, loss => {
            if parabola > ROUNDING * (ahead.loss + next.loss) {
                self.products.mean(|t| {
                    let (m, n) = margins(t);
                    loss.value(n) - loss.value(m) - loss.slope(m) * (n - m)
                })
            } else {
                self.products.mean(|t| {
                    let (m, n) = margins(t);
                    0.5 * (loss.slope(n) - loss.slope(m)) * (n - m)
                })
            }
        });
        above <= parabola
    }

    /// now + β (now - before), of margins as of weights.
    fn look_ahead(&self, before: &Point, now: &Point, beta: f64, into: &mut Point) {
        let along = |before: &[f64], now: &[f64], into: &mut [f64]| {
            for ((y, n), b) in into.iter_mut().zip(now).zip(before) {
                *y = n + beta * (n - b);
            }
        };
        along(&before.weights, &now.weights, &mut into.weights);
        along(&before.margins, &now.margins, &mut into.margins);
        into.loss = self.loss(&into.margins);
    }
}
