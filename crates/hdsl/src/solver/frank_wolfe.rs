//! Algorithm 1: Frank-Wolfe with away steps over sparse atoms.
//!
//! minimize f(M) over M in conv{ λ(e_i ± e_j)(e_i ± e_j)ᵀ }, with f of Eq. 1.
//!
//! The parts are in files beside this one:
//! - [`lmo`](super::lmo): the linear minimization oracle of line 3;
//! - [`candidates`](super::candidates): the forward and the away atom, and the choice between their directions;
//! - [`curvature`](super::curvature): the predicted decrease of f along active atoms;
//! - [`direction`](super::direction): directions, and the line search along one;
//! - [`engine`](super::engine): the trait of a solver state (iterate, gradient, margins);
//! - [`replay`](super::replay): the record for checkpoints, and its steps taken again;
//! - [`stop`](super::stop): the stopping rules;
//! - [`trace`](super::trace): the record of a run, in external feature indices.

use super::SolverParams;
use super::candidates::{Candidates, Move};
use super::curvature::Curvatures;
use super::engine::{Engine, Gradient};
use super::lmo::Oracle;
use super::replay;
use super::stop::StopRules;
use super::trace::{Run, Trace};
use crate::atoms::ActiveSet;
use crate::checkpoint::RunRecord;
use crate::error::{Error, Result};
use crate::observer::{Event, Gap, Observer, Stop, Stopwatch};
use crate::random;
use rand_chacha::ChaCha8Rng;

/// The number of the solver's random stream. Other parts of the library use other numbers.
const STREAM: u64 = 1;

/// Runs Alg. 1 from `start`. Without it, the run starts from the atom that the oracle finds for the gradient at M = 0.
/// The paper starts from a random atom. If λ is large and the random atom is a bad one, thousands of iterations are
/// needed to reduce its weight. The steps of a run that is `known` from a checkpoint are taken first.
pub(super) fn frank_wolfe<'p>(
    engine: &mut impl Engine<'p>,
    oracle: &mut Oracle,
    start: Option<ActiveSet>,
    known: Option<&RunRecord>,
    params: &SolverParams,
    clock: &mut Stopwatch,
    observer: &mut dyn Observer,
) -> Result<Run> {
    let (mut rng, mut stop) = (random::rng(params.seed, STREAM), StopRules::new(params));
    let mut curvatures = Curvatures::default();
    // Line 1: initialize M^(0) to an atom.
    let known_start = known.map(|known| replay::start(known, engine.gradient().features()));
    let start = match known_start.transpose()?.or(start) {
        Some(start) => start,
        None => initial_atom(engine, oracle, params, &mut rng)?,
    };
    engine.start_at(start)?;
    let mut trace = Trace::new(engine.gradient())?;
    replay::start_record(observer, trace.start());
    if let Some(known) = known {
        let search = (&mut *oracle, &mut curvatures, &mut rng);
        stop.requested = replay::replay(known, engine, search, &mut trace, clock, observer)?;
    }
    let mut parts = (engine, oracle, &mut curvatures, &mut rng);
    let reason = match iterate(&mut parts, &mut trace, &mut stop, params, clock, observer) {
        // The iterates so far are still there.
        Err(Error::DataLost(_)) if trace.iteration() > 1 => {
            trace.close();
            Stop::ObserverAsked
        }
        reason => reason?,
    };
    Ok(trace.finish(reason, clock.seconds()))
}

/// What an iteration changes: the solver state, and what the choice of steps depends on beside it.
type Parts<'a, E> = (
    &'a mut E,
    &'a mut Oracle,
    &'a mut Curvatures,
    &'a mut ChaCha8Rng,
);

/// The iterations of Alg. 1, until a stopping rule holds.
fn iterate<'p, E: Engine<'p>>(
    (engine, oracle, curvatures, rng): &mut Parts<'_, E>,
    trace: &mut Trace<'p>,
    stop: &mut StopRules<'_>,
    params: &SolverParams,
    clock: &mut Stopwatch,
    observer: &mut dyn Observer,
) -> Result<Stop> {
    // Line 2: for k = 0, 1, 2, ...
    Ok(loop {
        let objective = engine.objective()?;
        if objective == 0.0 {
            trace.record(objective, Gap::Certified(0.0));
            break stop.at_zero_objective();
        }
        // Lines 3 and 4: the forward atom B_F and the away atom B_A.
        engine.refresh(rng)?;
        let turn = trace.iteration() + stop.n_stalled();
        let due = stop.due(trace.iteration(), clock.elapsed());
        // A stalled iteration is tried again with another start, and the gap of the last iterate is that of a search.
        let must_search = stop.n_stalled() > 0 || due.is_some();
        let at = (turn, must_search);
        let candidates = Candidates::find(*engine, oracle, curvatures, params.rule(), at, rng)?;
        trace.record(objective, candidates.gap);
        if let Some(reason) = stop.at_iterate(due, candidates.gap) {
            break reason;
        }
        // Lines 5 to 10: the direction D, and the γ in [0, γ_max] that minimizes f(M + γ D).
        let chosen = candidates.choose(*engine, oracle, params.rule(), objective, turn)?;
        let Some(Move {
            direction,
            rate,
            gamma,
        }) = chosen
        else {
            if stop.count_stalled() {
                break Stop::Stationary;
            }
            continue;
        };
        if stop.exceeds_budget(direction, engine.gradient().active()) {
            break Stop::FeatureBudget;
        }
        // Line 11: M ← M + γ D.
        let step = direction.step(gamma, engine.gradient().active());
        oracle.plan(engine.gradient(), trace.iteration() + 1, rng);
        engine.advance(&step, gamma)?;
        curvatures.learn(&step, rate, gamma, engine.gradient().active());
        let iteration = trace.advance(step, engine.objective()?, clock.seconds());
        let event = Event::Iteration(&iteration, trace.active());
        stop.requested = clock.notify(observer, &event).is_break();
        replay::record(
            observer,
            clock,
            trace,
            (rate, gamma, &iteration),
            rng,
            oracle,
        );
    })
}

/// The atom that the oracle finds for the gradient at M = 0.
fn initial_atom<'p>(
    engine: &mut impl Engine<'p>,
    oracle: &mut Oracle,
    params: &SolverParams,
    rng: &mut ChaCha8Rng,
) -> Result<ActiveSet> {
    engine.refresh(rng)?;
    let best = oracle.best(engine.gradient(), params.search)?;
    Ok(ActiveSet::single(best.0))
}
