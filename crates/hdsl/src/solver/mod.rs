//! Algorithm 1: Frank-Wolfe with away steps over sparse atoms.
//!
//! The order of the files, each using only those before it: parameters and bounds; directions; margins of all triplets;
//! partner search, the gradient, the trait of an engine; linear minimization oracles; engines (incremental, recomputed,
//! mini-batches); stop rules, curvatures, candidates for a step, the trace; checkpoints; the algorithm. For benchmarks, an engine
//! that times its parts.

mod bounds;
mod candidates;
mod curvature;
pub(crate) mod direction;
pub(crate) mod engine;
mod frank_wolfe;
pub(crate) mod gradient;
mod incremental;
pub(crate) mod lmo;
mod margin_store;
pub(crate) mod memory;
mod minibatch;
mod motion;
mod params;
mod partner;
mod recomputed;
mod replay;
pub(crate) mod sharded;
#[cfg(test)]
mod step_rule_tests;
mod stop;
#[cfg(test)]
mod tests;
#[cfg(feature = "bench")]
pub(crate) mod timed;
mod trace;

pub use params::{Search, Solver, SolverParams, StepRule};
pub use trace::{IterateFacts, Run};

use crate::atoms::ActiveSet;
use crate::cancel::CancelToken;
use crate::checkpoint::RunRecord;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::objective::{Base, Features, Problem};
use crate::observer::{Gap, Observer, Stopwatch};
use crate::triplets::Triplets;
use frank_wolfe::frank_wolfe;
pub(crate) use incremental::Incremental;
use lmo::Oracle;
use minibatch::StoredMargins;
use recomputed::{AllMargins, Recomputed};
use std::borrow::Cow;

/// Bytes that this process can still allocate, according to the operating system; none if that is unknown.
pub fn available_memory() -> Option<u64> {
    memory::budget(None)
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
    /// let run = SolverParams::new(1.0).build()?.fit(&rows, &triplets, &mut ())?;
    /// assert_eq!(run.objective(), 0.0);
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn fit(
        &self,
        rows: &Rows,
        triplets: &Triplets,
        observer: &mut dyn Observer,
    ) -> Result<Run> {
        self.fit_from(rows, triplets, None, observer)
    }

    /// The same, starting from an earlier solution (for this λ or another) if there is one.
    pub(crate) fn fit_from(
        &self,
        rows: &Rows,
        triplets: &Triplets,
        start: Option<&ActiveSet>,
        observer: &mut dyn Observer,
    ) -> Result<Run> {
        let clock = Stopwatch::start();
        let problem = self.problem_of(Cow::Borrowed(rows), triplets, observer.cancel_token())?;
        self.fit_problem(&problem, start, clock, observer)
    }

    /// An estimate of the bytes that a fit allocates at its peak, beyond the rows and triplets themselves. It is meant to
    /// be too high rather than too low, and takes a pass over the rows.
    ///
    /// # Panics
    /// If a triplet names a row that does not exist; see [`Triplets::check`].
    pub fn memory_needed(&self, rows: &Rows, triplets: &Triplets) -> u64 {
        memory::Sizes::of(rows, triplets, true).needed(&self.params) as u64
    }

    /// The problem to solve, checked. Owned rows are taken over, so that there is no second copy of them.
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
        let problem = Problem::taking(rows, triplets, params.lambda, params.loss, cancel)?;
        Ok(problem.with_base(Base::new(params.base)))
    }

    /// Minimizes over a problem of this λ and loss. The clock may have been running while the problem was set up.
    pub(crate) fn fit_problem(
        &self,
        problem: &Problem<'_>,
        start: Option<&ActiveSet>,
        mut clock: Stopwatch,
        observer: &mut dyn Observer,
    ) -> Result<Run> {
        let known = replay::begin(observer);
        if let Some(known) = &known
            && let Some(run) = replay::ended(known, &mut clock, observer)?
        {
            return Ok(run);
        }
        let start = start
            .map(|start| internal(&problem.features, start))
            .transpose()?;
        // A batch of all triplets is none.
        let size = self.params.batch;
        let batch = size.filter(|&size| size < problem.triplets.len());
        let params = SolverParams {
            batch,
            ..self.params.clone()
        };
        match (params.loss.segments(), batch) {
            (Some(_), None) => {
                let engine = Incremental::new(problem, observer.cancel_token())?;
                fit_engine(engine, &params, start, known.as_ref(), clock, observer)
            }
            (Some(_), batch) => {
                let cancel = observer.cancel_token();
                let engine = Recomputed::<StoredMargins>::new(problem, batch, cancel)?;
                fit_engine(engine, &params, start, known.as_ref(), clock, observer)
            }
            (None, batch) => {
                let cancel = observer.cancel_token();
                let engine = Recomputed::<AllMargins>::new(problem, batch, cancel)?;
                fit_engine(engine, &params, start, known.as_ref(), clock, observer)
            }
        }
    }

    /// Minimizes over triplets on shards, which are at M = 0. Features and V are those of all shards.
    pub(crate) fn fit_sharded(
        &self,
        shards: &dyn sharded::Shards,
        features: &Features,
        total_weight: f64,
        start: Option<&ActiveSet>,
        mut clock: Stopwatch,
        observer: &mut dyn Observer,
    ) -> Result<Run> {
        let known = replay::begin(observer);
        if let Some(known) = &known
            && let Some(run) = replay::ended(known, &mut clock, observer)?
        {
            return Ok(run);
        }
        let params = &self.params;
        if let Some(batch) = params.batch {
            let want = "no mini-batches where triplets are on several machines";
            return Err(Error::param("batch", batch, want));
        }
        let start = start.map(|start| internal(features, start)).transpose()?;
        let has_segments = params.loss.segments().is_some();
        let engine =
            sharded::Sharded::new(shards, features, params.lambda, total_weight, has_segments)?;
        fit_engine(engine, params, start, known.as_ref(), clock, observer)
    }
}

fn fit_engine<'p>(
    mut engine: impl engine::Engine<'p>,
    params: &SolverParams,
    start: Option<ActiveSet>,
    known: Option<&RunRecord>,
    mut clock: Stopwatch,
    observer: &mut dyn Observer,
) -> Result<Run> {
    let clock = &mut clock;
    let mut oracle = Oracle::new(params);
    let (engine, oracle) = (&mut engine, &mut oracle);
    let mut run = frank_wolfe(engine, oracle, start, known, params, clock, observer)?;
    if params.certify && !run.gap().is_certified() {
        use engine::Gradient as _;
        engine.refresh_all()?;
        let gradient = engine.gradient();
        let best = oracle.best(gradient, Search::Exact)?;
        let gap = gradient.gain(best.1) - gradient.gain_of_model();
        let last = run.trace.last_mut().expect("the last iterate is recorded");
        last.gap = Gap::Certified(gap.max(0.0));
        run.seconds = clock.seconds();
    }
    replay::end_record(observer, &run);
    Ok(run)
}

/// An active set in internal feature numbering.
fn internal(features: &Features, external: &ActiveSet) -> Result<ActiveSet> {
    let atoms = features.internal(external.atoms()).ok_or_else(|| {
        Error::data("the solution to start from uses a feature that is in none of the rows")
    })?;
    let weighted = atoms.into_iter().zip(external.weights());
    ActiveSet::from_weighted(&weighted.collect::<Vec<_>>())
}
