//! For benchmarks: a run of Alg. 1 that measures the parts of its iterations, and counts the memory that each part must
//! read at least.

use super::direction::Direction;
use super::engine::{Engine, Gradient};
use super::gradient::SymmetrizedGradient;
use super::gradient::traffic::Traffic;
use super::lmo::{Exact, Oracle};
use super::{Incremental, SolverParams, frank_wolfe};
use crate::atoms::{ActiveSet, Atom, Step};
use crate::cancel::CancelToken;
use crate::error::Result;
use crate::objective::{Features, Problem, Scored};
use crate::observer::Stopwatch;
use rand_chacha::ChaCha8Rng;
use std::time::Instant;

/// A part of all iterations of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Phase {
    /// The time it took.
    pub seconds: f64,
    /// The memory that it must read at least.
    pub traffic: Traffic,
}

impl Phase {
    fn add(&mut self, seconds: f64, traffic: Traffic) {
        self.seconds += seconds;
        self.traffic.bytes += traffic.bytes;
        self.traffic.lines += traffic.lines;
    }
}

/// The parts of all iterations of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Phases {
    /// The number of iterations.
    pub iterations: usize,
    /// The time of all iterations, without that of counting.
    pub seconds: f64,
    /// u = C X_{:,i} of the oracle.
    pub product: Phase,
    /// The largest entry of a row of H = Xᵀ u. All values of the rows with u ≠ 0 are counted, although bounds exclude most.
    pub row: Phase,
    /// The affected triplets, and the minimum along the direction.
    pub line_search: Phase,
    /// Margins, C, D and the active atoms after a step.
    pub update: Phase,
}

/// Runs Alg. 1 on a problem.
pub(crate) fn phases(problem: &Problem<'_>, params: &SolverParams) -> Result<Phases> {
    let mut engine = Timed {
        engine: Incremental::new(problem, CancelToken::NEVER)?,
        phases: Phases::default(),
        counting: 0.0,
    };
    let (mut oracle, mut clock) = (Oracle::new(params), Stopwatch::start());
    let run = frank_wolfe(
        &mut engine,
        &mut oracle,
        None,
        None,
        params,
        &mut clock,
        &mut (),
    )?;
    Ok(Phases {
        iterations: run.trace.len() - 1,
        seconds: run.seconds - engine.counting,
        ..engine.phases
    })
}

struct Timed<'p> {
    engine: Incremental<'p>,
    phases: Phases,
    /// Seconds spent on counting.
    counting: f64,
}

impl<'p> Timed<'p> {
    fn inner(&self) -> &SymmetrizedGradient<'p> {
        &self.engine.gradient
    }

    /// Counts the memory that a part must read.
    fn count(&mut self, of: impl FnOnce(&SymmetrizedGradient<'p>) -> Traffic) -> Traffic {
        let since = Instant::now();
        let traffic = of(self.inner());
        self.counting += since.elapsed().as_secs_f64();
        traffic
    }
}

impl<'p> Gradient<'p> for Timed<'p> {
    fn features(&self) -> &'p Features {
        Gradient::features(self.inner())
    }
    fn active(&self) -> &ActiveSet {
        self.inner().active()
    }
    fn gain(&self, score: f64) -> f64 {
        self.inner().gain(score)
    }
    fn gain_of_model(&self) -> f64 {
        self.inner().gain_of_model()
    }
    fn active_scores(&self) -> Vec<f64> {
        self.inner().active_scores()
    }
    fn best_diagonal(&mut self) -> Result<u32> {
        Ok(self.engine.gradient.best_diagonal())
    }
    fn best_partner(&mut self, feature: u32, floor: Option<Scored>) -> Result<Scored> {
        let traffic = self.count(|gradient| gradient.product_traffic(feature));
        let since = Instant::now();
        self.engine.gradient.multiply(feature);
        self.phases
            .product
            .add(since.elapsed().as_secs_f64(), traffic);
        let traffic = self.count(SymmetrizedGradient::row_traffic);
        let since = Instant::now();
        let found = self.engine.gradient.best_of_product(feature, floor);
        self.phases.row.add(since.elapsed().as_secs_f64(), traffic);
        Ok(found)
    }
    fn best_atom(&mut self, exact: &mut Exact, found: Scored) -> Result<Scored> {
        self.engine.gradient.best_atom(exact, found)
    }
}

impl<'p> Engine<'p> for Timed<'p> {
    type Gradient = Self;

    fn gradient(&mut self) -> &mut Self {
        self
    }
    fn refresh(&mut self, rng: &mut ChaCha8Rng) -> Result<()> {
        Engine::refresh(&mut self.engine, rng)
    }
    fn refresh_all(&mut self) -> Result<()> {
        Engine::refresh_all(&mut self.engine)
    }
    fn reestimated_rates(
        &mut self,
        atoms: &[Atom],
        rng: &mut ChaCha8Rng,
    ) -> Result<Option<Vec<f64>>> {
        Engine::reestimated_rates(&mut self.engine, atoms, rng)
    }
    fn objective(&mut self) -> Result<f64> {
        Engine::objective(&mut self.engine)
    }
    fn start_at(&mut self, active: ActiveSet) -> Result<()> {
        Engine::start_at(&mut self.engine, active)
    }
    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> Result<f64> {
        let since = Instant::now();
        let gamma = Engine::search_line(&mut self.engine, direction, gamma_max)?;
        let seconds = since.elapsed().as_secs_f64();
        let traffic = self.count(SymmetrizedGradient::line_search_traffic);
        self.phases.line_search.add(seconds, traffic);
        Ok(gamma)
    }
    fn advance(&mut self, step: &Step, gamma: f64) -> Result<()> {
        let before = self.inner().n_changed();
        let since = Instant::now();
        Engine::advance(&mut self.engine, step, gamma)?;
        let seconds = since.elapsed().as_secs_f64();
        let traffic = self.count(|gradient| gradient.update_traffic(&before));
        self.phases.update.add(seconds, traffic);
        Ok(())
    }
}
