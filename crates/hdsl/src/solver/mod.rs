//! Algorithm 1: Frank-Wolfe with away steps over sparse atoms.

mod active_rows;
mod batch;
pub(crate) mod direction;
mod engine;
mod incremental;
mod kept;
mod links;
pub(crate) mod lmo;
mod margins;
mod memory;
mod motion;
mod params;
mod partner;
mod plain;
mod streamed;
#[cfg(test)]
mod tests;
mod trace;

pub(crate) use engine::Engine;
pub use params::{Search, SolverParams, StepRule};
pub use trace::{Gap, IterateFacts, Iteration, Observer, Run, Stop};

use crate::atoms::Path;
use crate::atoms::{ActiveSet, Atom};
use crate::cancel::CancelToken;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::objective::{Problem, Scored};
use crate::random;
use crate::solver::direction::Direction;
use crate::triplets::Triplets;
pub(crate) use incremental::Incremental;
use kept::Kept;
use margins::Zones;
use plain::Plain;
use rand_chacha::ChaCha8Rng;
use std::borrow::Cow;
use std::time::{Duration, Instant};
use streamed::Streamed;

/// How many directions in a row may lead nowhere before the run counts as stationary. A random start may be unlucky
/// once; not this often. A batch is a poorer guide.
const FRUITLESS: usize = 30;
const FRUITLESS_BATCHES: usize = 300;

/// A direction along which f falls slower than this share of f leads nowhere but into rounding.
const LEAST_RATE: f64 = 1e-13;
/// So does a step along which f falls by less than this share of it.
const LEAST_FALL: f64 = 1e-12;

/// The solver's own stream of random numbers, apart from those of mining and splitting.
const STREAM: u64 = 1;

/// Alg. 1 with checked settings; made by [`SolverParams::build`].
#[derive(Clone, Debug)]
pub struct Solver {
    pub(crate) params: SolverParams,
}

impl Solver {
    /// Minimizes Eq. 1 over the triplets, starting from the best single atom.
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

    /// About how many bytes a fit takes at its busiest, beyond the rows and triplets themselves. An estimate, rather too
    /// high than too low, that costs a pass over the rows.
    ///
    /// # Panics
    /// If a triplet names a row that is not there; see [`Triplets::check`].
    pub fn memory_needed(&self, rows: &Rows, triplets: &Triplets) -> u64 {
        memory::estimate(&self.params, rows, triplets, true)
    }

    fn run(
        &self,
        rows: &Rows,
        triplets: &Triplets,
        start: Option<&ActiveSet>,
        observer: &mut dyn Observer,
    ) -> Result<Run> {
        let clock = Clock::start();
        let problem = self.problem_of(Cow::Borrowed(rows), triplets, observer.cancel())?;
        self.fit_problem(&problem, start, clock, observer)
    }

    /// The problem to solve, checked. Rows that nobody else needs are taken over, so that there is no second copy of them.
    pub(crate) fn problem_of<'a>(
        &self,
        rows: Cow<'_, Rows>,
        triplets: &'a Triplets,
        cancel: CancelToken<'_>,
    ) -> Result<Problem<'a>> {
        let params = &self.params;
        triplets.check(rows.n_rows())?;
        let copied = matches!(rows, Cow::Borrowed(_));
        memory::check(params, &rows, triplets, copied)?;
        let rows = rows.into_owned();
        Problem::taking(rows, triplets, params.scale, params.loss, cancel)
    }

    /// Minimizes over a problem of this scale and loss, by a clock that may have been running for it.
    pub(crate) fn fit_problem(
        &self,
        problem: &Problem<'_>,
        start: Option<&ActiveSet>,
        clock: Clock,
        observer: &mut dyn Observer,
    ) -> Result<Run> {
        let params = &self.params;
        let has_zones = Zones::of_loss(params.loss).is_some();
        let batch = params.batch.filter(|&size| size < problem.triplets.len());
        match (has_zones, batch) {
            (true, None) => self.iterate(
                State::new(
                    Incremental::new_until(problem, observer.cancel())?,
                    params,
                    start,
                )?,
                clock,
                observer,
            ),
            (true, batch) => self.iterate(
                State::new(Plain::<Kept>::new(problem, batch), params, start)?,
                clock,
                observer,
            ),
            (false, batch) => self.iterate(
                State::new(Plain::<Streamed>::new(problem, batch), params, start)?,
                clock,
                observer,
            ),
        }
    }

    /// Alg. 1.
    fn iterate<'p, E: Engine<'p>>(
        &self,
        mut state: State<'p, E>,
        mut clock: Clock,
        observer: &mut dyn Observer,
    ) -> Result<Run> {
        let params = &self.params;
        let problem = state.engine.problem();
        let first: Vec<(Atom, f64)> = state
            .engine
            .active()
            .iter()
            .map(|(a, w)| (problem.outside(a), w))
            .collect();
        let mut outside = ActiveSet::from_weighted(&first)?;
        let mut steps = Vec::new();
        let mut trace: Vec<IterateFacts> = Vec::new();
        let mut fruitless = 0;
        let stop = loop {
            let iter = steps.len() + 1;
            let objective = state.engine.objective();
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
            let gamma_max = direction.gamma_max(state.engine.active());
            let gamma = match view.rate() > LEAST_RATE * objective {
                true => state.engine.search_line(direction, gamma_max),
                false => 0.0,
            };
            // A batch may point along a line on which the iterate already is the best. Steps to the end make atoms leave.
            let falls = gamma * view.rate() > LEAST_FALL * objective || gamma >= gamma_max;
            if gamma <= 0.0 || !falls {
                fruitless += 1;
                let most = if params.batch.is_some() {
                    FRUITLESS_BATCHES
                } else {
                    FRUITLESS
                };
                if fruitless == most {
                    break Stop::Stationary;
                }
                continue;
            }
            fruitless = 0;
            if params
                .max_features
                .is_some_and(|most| state.features_after(direction) > most)
            {
                break Stop::FeatureBudget;
            }
            let step = direction.step(gamma, state.engine.active());
            state.engine.advance(&step, gamma);
            let step = step.map_atoms(|atom| problem.outside(atom));
            outside.apply(&step);
            steps.push(step);
            let now = Iteration {
                iter,
                step,
                gamma,
                objective: state.engine.objective(),
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
    /// How fast f falls at best, as far as this gradient can tell.
    fn rate(&self) -> f64 {
        self.forward_rate.max(self.away_rate)
    }

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

/// The policy of Alg. 1 over an engine: where to start, which atoms to look at, when to certify.
struct State<'p, E> {
    engine: E,
    params: &'p SolverParams,
    rng: ChaCha8Rng,
    next_certificate: usize,
    exact: lmo::Exact,
}

impl<'p, E: Engine<'p>> State<'p, E> {
    fn new(engine: E, params: &'p SolverParams, start: Option<&ActiveSet>) -> Result<Self> {
        let mut state = Self {
            engine,
            params,
            rng: random::rng(params.seed, STREAM),
            next_certificate: 0,
            exact: lmo::Exact::default(),
        };
        let problem = state.engine.problem();
        let active = match start {
            Some(start) => {
                let inside = problem.inside(start.atoms());
                let inside = inside.ok_or_else(|| {
                    Error::data(
                        "the solution to start from uses a feature that is in none of the rows",
                    )
                })?;
                let weighted: Vec<_> = inside
                    .into_iter()
                    .zip(start.weights().iter().copied())
                    .collect();
                ActiveSet::from_weighted(&weighted)?
            }
            None => ActiveSet::single(state.best_at_zero()),
        };
        state.engine.start_at(active);
        Ok(state)
    }

    /// The best atom for the gradient at M = 0. A random first atom, as in the paper, can put a large λ behind a
    /// bad guess, and thousands of iterations then go into undoing it.
    fn best_at_zero(&mut self) -> Atom {
        self.engine.refresh(&mut self.rng);
        let start = self.engine.best_diagonal();
        let found = lmo::alternating(&mut self.engine, start);
        match self.params.search {
            Search::Alternating => found.0,
            Search::Exact => self.exactly(found).0,
        }
    }

    /// Lines 3 and 4 of Alg. 1: the forward and the away atom.
    fn look(&mut self, iter: usize) -> View {
        self.engine.refresh(&mut self.rng);
        let problem = self.engine.problem();
        let scores = self.engine.active_scores();
        let scored = || {
            self.engine
                .active()
                .atoms()
                .iter()
                .copied()
                .zip(scores.iter().copied())
        };
        let worst = scored()
            .map(|(atom, score)| (atom, -score))
            .reduce(|a, b| problem.better(a, b));
        let worst = worst
            .filter(|_| scores.len() > 1)
            .map(|(atom, score)| (atom, -score));
        let best = scored()
            .reduce(|a, b| problem.better(a, b))
            .expect("some atom is active");
        // The best active atom is at least as good as M itself, so the forward direction always leads down.
        let found = problem.better(best, self.alternating(iter));
        let at_model = self.engine.gain_of_model();
        let estimate = self.engine.gain(found.1) - at_model;
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
            let forward = self.exactly(found);
            let gap = (self.engine.gain(forward.1) - at_model).max(0.0);
            (forward, Gap::Certified(gap))
        } else {
            (found, Gap::Estimate(estimate))
        };
        let view = View {
            forward: forward.0,
            away: worst.map(|w| w.0),
            forward_rate: self.engine.gain(forward.1) - at_model,
            away_rate: worst.map_or(0.0, |w| at_model - self.engine.gain(w.1)),
            gap,
        };
        self.judged(view, best.0)
    }

    /// What a batch puts forward as the best of many atoms is mostly luck: features in many rows vary most, so by chance
    /// one of them beats the truly best. A second batch says what there is to it, also for the best active atom, which
    /// was chosen among few.
    fn judged(&mut self, view: View, best_active: Atom) -> View {
        let mut atoms = vec![best_active, view.forward];
        atoms.extend(view.away);
        let Some(judgment) = self.engine.judge(&atoms, &mut self.rng) else {
            return view;
        };
        let rate = |at: usize| judgment.gains[at] - judgment.of_model;
        let at = usize::from(rate(1) > rate(0));
        View {
            forward: atoms[at],
            away: view.away,
            forward_rate: rate(at),
            away_rate: view.away.map_or(0.0, |_| -rate(2)),
            gap: Gap::Estimate(rate(at).max(0.0)),
        }
    }

    /// Starting from a random feature and from the best diagonal, in turn: each alone stalls on some data.
    fn alternating(&mut self, iter: usize) -> Scored {
        let start = if iter.is_multiple_of(2) {
            random::below(&mut self.rng, self.engine.problem().n_columns()) as u32
        } else {
            self.engine.best_diagonal()
        };
        lmo::alternating(&mut self.engine, start)
    }

    /// The true best of all atoms, at least as good as `found`.
    fn exactly(&mut self, found: Scored) -> Scored {
        self.engine.know_diagonal();
        self.exact.best(&self.engine, found)
    }

    /// How many features would be in use after a step along `direction`.
    fn features_after(&self, direction: Direction) -> usize {
        let active = self.engine.active();
        let gained = match direction {
            Direction::Forward(atom) | Direction::Pairwise { to: atom, .. } => [atom.i(), atom.j()]
                .into_iter()
                .filter(|&feature| !active.uses_feature(feature))
                .count(),
            Direction::Away(_) => 0,
        };
        active.n_features() + gained
    }

    fn facts(&mut self, iter: usize) -> IterateFacts {
        let objective = self.engine.objective();
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
        self.engine.refresh_all();
        let start = self.engine.best_diagonal();
        let found = lmo::alternating(&mut self.engine, start);
        let best = self.exactly(found);
        let gap = self.engine.gain(best.1) - self.engine.gain_of_model();
        Gap::Certified(gap.max(0.0))
    }
}

/// A watch that can be held while someone else works.
pub(crate) struct Clock {
    started: Instant,
    held: Duration,
}

impl Clock {
    pub(crate) fn start() -> Self {
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
