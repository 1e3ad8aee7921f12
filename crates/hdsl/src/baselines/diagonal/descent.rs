//! Accelerated proximal gradient descent with restarts, to a certified gap.
//!
//! minimize F(w) = f(w) + ψ(w),  f(w) = (1/V) Σ_t v_t ℓ(m_t),  m_t linear in w.
//!
//! From an extrapolated point y, the next iterate is the proximal map of y - ∇f(y)/c (Beck and Teboulle, SIAM J. Imaging
//! Sci. 2009), with c large enough that the parabola of curvature c through y lies above f at the next iterate.
//! Norms and gradients are taken in a diagonal metric, which evens out how much the margins depend on each weight.
//! Momentum restarts wherever the last step turned against the one before it, or where F would rise, so that F never
//! does (O'Donoghue and Candès, Found. Comput. Math. 2015).
//!
//! The certificate costs nothing: f is convex, so F(u) >= f(y) + <∇f(y), u - y> + ψ(u) for every u, and the minimum of the
//! right side over u is a lower bound of the optimum ([`Diagonal::lower_bound`]).

use super::Diagonal;
use super::products::Products;
use crate::error::{Error, Result};
use crate::objective::loss::{Loss, with_loss};
use crate::observer::{DiagonalIteration, Event, Observer, Stop, Stopwatch};
use std::mem;

/// Differences of losses below this fraction of them are lost to rounding.
const ROUNDING: f64 = 1e-12;

/// How many steps in a row without momentum may leave F unchanged, to rounding. Where F is flat they still improve the
/// gradient, and with it the bound.
const MAX_LEVEL: usize = 1000;

/// Weights with their margins and loss.
#[derive(Clone)]
struct Point {
    weights: Vec<f64>,
    margins: Vec<f64>,
    /// f.
    loss: f64,
}

/// The problem, and the metric of the steps.
pub(super) struct Descent<'a> {
    products: &'a Products,
    params: &'a Diagonal,
    /// The squared norm of a unit change of each weight.
    metric: Vec<f64>,
}

/// The iterate and the extrapolated point, from which the next step is taken.
struct State {
    now: Point,
    /// F at `now`.
    objective: f64,
    ahead: Point,
    /// Nesterov's t_k; 1 restarts.
    momentum: f64,
    /// c, the curvature of the parabola.
    curvature: f64,
    /// Steps in a row that left F unchanged.
    level: usize,
}

impl<'a> Descent<'a> {
    pub(super) fn new(products: &'a Products, params: &'a Diagonal) -> Self {
        let mut metric = products.strengths();
        // A weight that no margin depends on does not move, whatever its metric.
        let floor = 1e-12 * metric.iter().copied().fold(0.0, f64::max);
        for m in &mut metric {
            *m = if floor > 0.0 { m.max(floor) } else { 1.0 };
        }
        Self {
            products,
            params,
            metric,
        }
    }

    /// Minimizes F from feasible weights: the weights, the last iteration, and why it ended.
    pub(super) fn minimize(
        &self,
        start: Vec<f64>,
        mut clock: Stopwatch,
        observer: &mut dyn Observer,
    ) -> Result<(Vec<f64>, DiagonalIteration, Stop)> {
        let now = self.point(start);
        let mut gradient = self.gradient(&now);
        let mut state = State {
            objective: self.objective(&now),
            ahead: now.clone(),
            now,
            momentum: 1.0,
            curvature: self.first_curvature(&gradient),
            level: 0,
        };
        if !(state.objective.is_finite() && gradient.iter().all(|g| g.is_finite())) {
            return Err(Error::data(
                "products of values are too large for numbers, expected scaled rows",
            ));
        }
        let mut bound = self.bound(&state.ahead, &gradient, state.objective);
        let mut iter = 0;
        let facts = |iter, state: &State, bound: f64, seconds| DiagonalIteration {
            iter,
            objective: state.objective,
            gap: (state.objective - bound).max(0.0),
            n_features: state.now.weights.iter().filter(|&&w| w != 0.0).count(),
            seconds,
        };
        let stop = loop {
            if state.objective - bound <= self.params.tolerance * state.objective {
                break Stop::Tolerance;
            }
            if iter == self.params.max_iter {
                break Stop::MaxIter;
            }
            iter += 1;
            if !self.advance(&mut state, &gradient) {
                break Stop::Stationary;
            }
            gradient = self.gradient(&state.ahead);
            bound = (self.bound(&state.ahead, &gradient, state.objective)).max(bound);
            let now = facts(iter, &state, bound, clock.seconds());
            if clock
                .notify(observer, &Event::DiagonalIteration(&now))
                .is_break()
            {
                break Stop::ObserverAsked;
            }
        };
        let last = facts(iter, &state, bound, clock.seconds());
        Ok((state.now.weights, last, stop))
    }

    /// ∇f at w = 0.
    pub(super) fn gradient_at_zero(&self) -> Vec<f64> {
        self.gradient(&self.point(vec![0.0; self.metric.len()]))
    }

    /// One iteration from `state.ahead`, where f has this gradient. False where rounding allows no progress.
    fn advance(&self, state: &mut State, gradient: &[f64]) -> bool {
        let Some(next) = self.step(&state.ahead, gradient, &mut state.curvature) else {
            return false;
        };
        let reached = self.objective(&next);
        if reached < state.objective {
            // A step back from the extrapolated point against the direction of progress: momentum overshot.
            let overshoot: f64 = (state.ahead.weights.iter().zip(&next.weights))
                .zip(state.now.weights.iter().zip(&self.metric))
                .map(|((a, n), (w, metric))| metric * (a - n) * (n - w))
                .sum();
            let before = mem::replace(&mut state.now, next);
            state.objective = reached;
            if overshoot > 0.0 {
                state.restart();
            }
            let following = 0.5 + (0.25 + state.momentum * state.momentum).sqrt();
            let beta = (state.momentum - 1.0) / following;
            self.extrapolate(&before, &state.now, beta, &mut state.ahead);
            (state.momentum, state.level) = (following, 0);
        } else if state.ahead.weights != state.now.weights {
            state.restart();
            state.ahead.clone_from(&state.now);
        } else {
            state.level += 1;
            if state.level > MAX_LEVEL || next.weights == state.now.weights {
                return false;
            }
            state.ahead.clone_from(&next);
            state.now = next;
        }
        true
    }

    fn point(&self, weights: Vec<f64>) -> Point {
        let margins = self.products.margins(&weights);
        Point {
            weights,
            loss: self.loss(&margins),
            margins,
        }
    }

    fn loss(&self, margins: &[f64]) -> f64 {
        with_loss!(self.params.loss, loss => self.products.mean(|t| loss.value(margins[t])))
    }

    /// F.
    fn objective(&self, at: &Point) -> f64 {
        at.loss + self.params.penalty_value(&at.weights)
    }

    /// ∇f.
    fn gradient(&self, at: &Point) -> Vec<f64> {
        let slopes: Vec<f64> = with_loss!(self.params.loss, loss => (at.margins.iter().zip(&self.products.shares))
            .map(|(&m, share)| share * loss.slope(m))
            .collect());
        self.products.transposed(&slopes)
    }

    /// A lower bound of F over all weights. `objective` is F anywhere.
    fn bound(&self, at: &Point, gradient: &[f64], objective: f64) -> f64 {
        let tangent: f64 = gradient.iter().zip(&at.weights).map(|(g, w)| g * w).sum();
        at.loss - tangent + self.params.lower_bound(gradient, objective)
    }

    /// The first guess of c: that of a loss of curvature 1 along the gradient.
    fn first_curvature(&self, gradient: &[f64]) -> f64 {
        let step: Vec<f64> = (gradient.iter().zip(&self.metric))
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

    /// The proximal step from `ahead`, with c doubled until the parabola lies above f. None if no finite c will do.
    fn step(&self, ahead: &Point, gradient: &[f64], curvature: &mut f64) -> Option<Point> {
        while curvature.is_finite() {
            let c = *curvature;
            let weights: Vec<f64> = (ahead.weights.iter().zip(gradient).zip(&self.metric))
                .map(|((w, g), metric)| self.params.prox(w - g / (c * metric), c * metric))
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
        let exact = parabola > ROUNDING * (ahead.loss + next.loss);
        let above = with_loss!(self.params.loss, loss => self.products.mean(|t| {
            let (m, n) = (ahead.margins[t], next.margins[t]);
            match exact {
                true => loss.value(n) - loss.value(m) - loss.slope(m) * (n - m),
                false => 0.5 * (loss.slope(n) - loss.slope(m)) * (n - m),
            }
        }));
        above <= parabola
    }

    /// now + β (now - before), for margins as for weights.
    fn extrapolate(&self, before: &Point, now: &Point, beta: f64, into: &mut Point) {
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

impl State {
    /// Without momentum, and with a longer step to try.
    fn restart(&mut self) {
        (self.momentum, self.curvature) = (1.0, 0.5 * self.curvature);
    }
}
