//! Algorithm 1: Frank-Wolfe with away steps over sparse atoms.

mod params;
#[cfg(test)]
mod tests;
mod trace;

pub use params::{Search, SolverParams, StepRule};
pub use trace::{Gap, IterateFacts, Iteration, Observer, Run, Stop};

use crate::atoms::{ActiveSet, Atom, Step};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::gradient::{Gradient, RowAtoms, Scratch};
use crate::lmo::{self, Scored, better};
use crate::model::Path;
use crate::objective::Problem;
use crate::random;
use crate::step::{Deltas, Direction, line_search};
use crate::triplets::Triplets;
use rand_chacha::ChaCha8Rng;
use std::time::{Duration, Instant};

/// How many directions in a row may lead nowhere before the run counts as stationary. A random start or batch may
/// be unlucky once; not this often.
const FRUITLESS: usize = 30;

/// The solver's own stream of random numbers, apart from those of mining and splitting.
const STREAM: u64 = 1;

/// Alg. 1 with checked settings; made by [`SolverParams::build`].
#[derive(Clone, Debug)]
pub struct Solver {
    pub(crate) params: SolverParams,
}

impl Solver {
    /// Minimises Eq. 1 over the triplets, starting from the best single atom.
    ///
    /// Time and memory depend on the non-zeros of the rows and the number of triplets, not on d.
    /// ```
    /// use hdsl::{Rows, SolverParams, Triplets};
    /// // Feature 0 marks one class and feature 2 the other; feature 1 is in everything.
    /// let rows = Rows::from_parts(3, vec![0, 2, 4, 6], vec![0, 1, 0, 1, 1, 2], vec![1.0; 6])?;
    /// let mut triplets = Triplets::new();
    /// triplets.push(0, 1, 2);
    /// triplets.push(1, 0, 2);
    /// let run = SolverParams::new(1.0).max_iter(10).build()?.fit(&rows, &triplets, &mut ())?;
    /// assert_eq!(run.objective(), 0.0);
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn fit(
        &self,
        rows: &Rows,
        triplets: &Triplets,
        observer: &mut dyn Observer,
    ) -> Result<Run> {
        self.run(rows, triplets, None, observer)
    }

    /// The same, going on from an earlier solution (of this λ or another).
    pub fn fit_from(
        &self,
        start: &ActiveSet,
        rows: &Rows,
        triplets: &Triplets,
        observer: &mut dyn Observer,
    ) -> Result<Run> {
        self.run(rows, triplets, Some(start), observer)
    }

    fn run(
        &self,
        rows: &Rows,
        triplets: &Triplets,
        start: Option<&ActiveSet>,
        observer: &mut dyn Observer,
    ) -> Result<Run> {
        let mut clock = Clock::start();
        let params = &self.params;
        let problem = Problem::new(rows, triplets, params.scale, params.loss)?;
        let mut state = State::new(&problem, params, start)?;
        let first: Vec<(Atom, f64)> = state
            .active
            .iter()
            .map(|(a, w)| (problem.outside(a), w))
            .collect();
        let mut outside = ActiveSet::from_weighted(&first)?;
        let mut steps = Vec::new();
        let mut trace: Vec<IterateFacts> = Vec::new();
        let mut fruitless = 0;
        let stop = loop {
            let iter = steps.len() + 1;
            let objective = state.objective();
            if objective == 0.0 {
                break Stop::Satisfied;
            }
            let view = state.look(iter);
            if trace.len() < iter {
                trace.push(IterateFacts {
                    objective,
                    gap: view.gap,
                });
            }
            if view.gap.is_certified() && params.tolerance.is_some_and(|t| view.gap.value() <= t) {
                break Stop::Tolerance;
            }
            if iter > params.max_iter {
                break Stop::MaxIter;
            }
            if params
                .time_limit
                .is_some_and(|limit| clock.elapsed() >= limit)
            {
                break Stop::TimeLimit;
            }
            let direction = view.direction(params.step_rule);
            let gamma_max = direction.gamma_max(&state.active);
            let Some(gamma) = state.search_line(direction, gamma_max) else {
                fruitless += 1;
                if fruitless == FRUITLESS {
                    break Stop::Stationary;
                }
                continue;
            };
            fruitless = 0;
            if params
                .max_features
                .is_some_and(|most| state.features_after(direction) > most)
            {
                break Stop::FeatureBudget;
            }
            let step = direction.step(gamma, &state.active);
            state.advance(&step, gamma);
            let step = step.map_atoms(|atom| problem.outside(atom));
            outside.apply(&step);
            steps.push(step);
            let now = Iteration {
                iter,
                step,
                gamma,
                objective: state.objective(),
                gap: view.gap,
                n_atoms: outside.len(),
                n_active_features: outside.n_features(),
                seconds: clock.elapsed().as_secs_f64(),
            };
            if clock.pause(|| observer.after(&now, &outside)).is_break() {
                break Stop::ObserverAsked;
            }
        };
        if trace.len() == steps.len() {
            trace.push(state.facts(steps.len() + 1));
        }
        if params.certify {
            let last = trace.last_mut().expect("the last iterate has its facts");
            if !last.gap.is_certified() {
                last.gap = state.certificate();
            }
        }
        Ok(Run {
            path: Path::new(first, steps)?,
            active: outside,
            trace,
            stop,
            seconds: clock.elapsed().as_secs_f64(),
        })
    }
}

/// What the gradient at an iterate offers.
struct View {
    forward: Atom,
    away: Option<Atom>,
    /// <D_F, -∇f> and <D_A, -∇f>: how fast f falls along each direction.
    forward_rate: f64,
    away_rate: f64,
    gap: Gap,
}

impl View {
    /// The choice of Alg. 1, lines 5 to 9.
    fn direction(&self, rule: StepRule) -> Direction {
        match (rule, self.away) {
            (StepRule::Away, Some(atom)) if self.away_rate > self.forward_rate => {
                Direction::Away(atom)
            }
            (StepRule::Pairwise, Some(from)) if from != self.forward => Direction::Pairwise {
                to: self.forward,
                from,
            },
            _ => Direction::Forward(self.forward),
        }
    }
}

/// Everything that changes from iteration to iteration.
struct State<'p> {
    problem: &'p Problem<'p>,
    params: &'p SolverParams,
    rng: ChaCha8Rng,
    active: ActiveSet,
    margins: Vec<f64>,
    pushes: Vec<f64>,
    gradient: Gradient,
    table: RowAtoms,
    deltas: Deltas,
    scratch: Scratch,
    next_certificate: usize,
}

impl<'p> State<'p> {
    fn new(
        problem: &'p Problem<'p>,
        params: &'p SolverParams,
        start: Option<&ActiveSet>,
    ) -> Result<Self> {
        let mut state = Self {
            problem,
            params,
            rng: random::rng(params.seed, STREAM),
            active: ActiveSet::default(),
            margins: vec![0.0; problem.triplets.len()],
            pushes: Vec::new(),
            gradient: Gradient::full(problem),
            table: RowAtoms::new(problem.rows.n_rows()),
            deltas: Deltas::default(),
            scratch: Scratch::new(problem),
            next_certificate: 0,
        };
        state.active = match start {
            Some(start) => {
                let inside: Option<Vec<_>> = start
                    .iter()
                    .map(|(a, w)| Some((problem.inside(a)?, w)))
                    .collect();
                let inside = inside.ok_or_else(|| {
                    Error::data(
                        "the solution to start from uses a feature that is in none of the rows",
                    )
                })?;
                ActiveSet::from_weighted(&inside)?
            }
            None => ActiveSet::single(state.best_at_zero()),
        };
        state.margins = problem.margins(&state.active);
        state.table.follow(problem, &state.active);
        Ok(state)
    }

    /// The best atom for the gradient at M = 0. A random first atom, as in the paper, can put a large λ behind a
    /// bad guess, and thousands of iterations then go into undoing it.
    fn best_at_zero(&mut self) -> Atom {
        self.refresh_all();
        let start = highest(self.gradient.diagonal());
        let found = lmo::alternating(self.problem, &self.gradient, start, &mut self.scratch);
        match self.params.search {
            Search::Alternating => found.0,
            Search::Exact => {
                lmo::exact(self.problem, &self.gradient, found, &mut self.scratch)
                    .0
                    .0
            }
        }
    }

    fn objective(&self) -> f64 {
        self.problem.value(&self.margins)
    }

    /// The gradient over all triplets, at the margins of now.
    fn refresh_all(&mut self) {
        self.problem.pushes(&self.margins, &mut self.pushes);
        self.gradient
            .refresh(&self.problem.rows, &self.pushes, &self.margins);
    }

    /// The gradient over all triplets, or over a fresh batch of them.
    fn refresh(&mut self) {
        match self.params.batch {
            Some(size) if size < self.problem.triplets.len() => {
                let which = random::sample(&mut self.rng, self.problem.triplets.len(), size);
                self.problem.pushes(&self.margins, &mut self.pushes);
                let pick = |from: &[f64]| -> Vec<f64> {
                    which.iter().map(|&t| from[t as usize]).collect()
                };
                self.gradient = Gradient::batch(self.problem, &which);
                let (pushes, margins) = (pick(&self.pushes), pick(&self.margins));
                self.gradient.refresh(&self.problem.rows, &pushes, &margins);
            }
            _ => self.refresh_all(),
        }
    }

    /// Lines 3 and 4 of Alg. 1: the forward and the away atom.
    fn look(&mut self, iter: usize) -> View {
        self.refresh();
        let scores = self.gradient.active_scores(&self.table, self.active.len());
        let scored = || {
            self.active
                .atoms()
                .iter()
                .copied()
                .zip(scores.iter().copied())
        };
        let worst = scored().reduce(|a, b| {
            if b.1 < a.1 || (b.1 == a.1 && b.0 < a.0) {
                b
            } else {
                a
            }
        });
        let best = scored().reduce(better).expect("some atom is active");
        // The best active atom is at least as good as M itself, so the forward direction always leads down.
        let found = better(best, self.alternating(iter));
        let at_model = self.gradient.gain_of_model(self.problem);
        let estimate = self.gradient.gain(found.1) - at_model;
        let whole = self
            .params
            .batch
            .is_none_or(|size| size >= self.problem.triplets.len());
        let wanted = match self.params.search {
            Search::Exact => true,
            // A heuristic gap above the tolerance already says that the true one is.
            Search::Alternating => {
                self.params.tolerance.is_some_and(|t| estimate <= t)
                    && iter >= self.next_certificate
            }
        };
        let (forward, gap) = if wanted {
            self.next_certificate = iter + 10 + iter / 10;
            let (forward, _) = lmo::exact(self.problem, &self.gradient, found, &mut self.scratch);
            let gap = (self.gradient.gain(forward.1) - at_model).max(0.0);
            (
                forward,
                if whole {
                    Gap::Certified(gap)
                } else {
                    Gap::Estimate(gap)
                },
            )
        } else {
            (found, Gap::Estimate(estimate))
        };
        let away = worst.filter(|_| self.active.len() > 1);
        View {
            forward: forward.0,
            away: away.map(|w| w.0),
            forward_rate: self.gradient.gain(forward.1) - at_model,
            away_rate: away.map_or(0.0, |w| at_model - self.gradient.gain(w.1)),
            gap,
        }
    }

    /// Starting from a random feature and from the best diagonal, in turn: each alone stalls on some data.
    fn alternating(&mut self, iter: usize) -> Scored {
        let diagonal = self.gradient.diagonal();
        let start = if iter % 2 == 0 {
            random::below(&mut self.rng, diagonal.len()) as u32
        } else {
            highest(diagonal)
        };
        lmo::alternating(self.problem, &self.gradient, start, &mut self.scratch)
    }

    /// The γ that minimises f along the direction over *all* triplets; none if f does not fall.
    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> Option<f64> {
        let deltas = self.deltas.along(self.problem, direction, &self.margins);
        let (problem, margins) = (self.problem, &self.margins);
        let gamma = line_search(gamma_max, |gamma| problem.along(margins, deltas, gamma));
        (gamma > 0.0).then_some(gamma)
    }

    /// How many features would be in use after a step along `direction`.
    fn features_after(&self, direction: Direction) -> usize {
        let gained = match direction {
            Direction::Forward(atom) | Direction::Pairwise { to: atom, .. } => [atom.i(), atom.j()]
                .into_iter()
                .filter(|&feature| !self.active.uses_feature(feature))
                .count(),
            Direction::Away(_) => 0,
        };
        self.active.n_features() + gained
    }

    /// Lines 10 and 11 of Alg. 1. The deltas are those of the line search just done.
    fn advance(&mut self, step: &Step, gamma: f64) {
        self.deltas.apply(gamma, &mut self.margins);
        self.active.apply(step);
        self.table.follow(self.problem, &self.active);
    }

    fn facts(&mut self, iter: usize) -> IterateFacts {
        let objective = self.objective();
        // The loss cannot go below 0, so at 0 there is nothing left to gain.
        let gap = if objective == 0.0 {
            Gap::Certified(0.0)
        } else {
            self.look(iter).gap
        };
        IterateFacts { objective, gap }
    }

    /// The certified gap at the iterate of now, whatever the settings of the run.
    fn certificate(&mut self) -> Gap {
        if self.params.batch.is_some() {
            self.gradient = Gradient::full(self.problem);
        }
        self.refresh_all();
        let start = highest(self.gradient.diagonal());
        let found = lmo::alternating(self.problem, &self.gradient, start, &mut self.scratch);
        let (best, _) = lmo::exact(self.problem, &self.gradient, found, &mut self.scratch);
        let gap = self.gradient.gain(best.1) - self.gradient.gain_of_model(self.problem);
        Gap::Certified(gap.max(0.0))
    }
}

/// Where the largest number is, the first of equals.
fn highest(numbers: &[f64]) -> u32 {
    let mut at = 0;
    for (i, &number) in numbers.iter().enumerate() {
        if number > numbers[at] {
            at = i;
        }
    }
    at as u32
}

/// A watch that can be held while someone else works.
struct Clock {
    started: Instant,
    held: Duration,
}

impl Clock {
    fn start() -> Self {
        Self {
            started: Instant::now(),
            held: Duration::ZERO,
        }
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed() - self.held
    }

    fn pause<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let done = work();
        self.held += begin.elapsed();
        done
    }
}
