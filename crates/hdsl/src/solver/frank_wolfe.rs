//! Algorithm 1: Frank-Wolfe with away steps over sparse atoms.
//!
//! minimize f(M) over M in conv{ λ(e_i ± e_j)(e_i ± e_j)ᵀ }, with f of Eq. 1.
//!
//! The parts are in files beside this one:
//! - [`lmo`](super::lmo): the linear minimization oracle of line 3;
//! - [`candidates`](super::candidates): the forward and the away atom;
//! - [`direction`](super::direction): directions, and the line search along one;
//! - [`engine`](super::engine): the trait of a solver state (iterate, gradient, margins);
//! - [`replay`](super::replay): the record for checkpoints, and its steps taken again;
//! - [`stop`](super::stop): the stopping rules;
//! - [`trace`](super::trace): the record of a run, in external feature indices.

use super::SolverParams;
use super::candidates::Candidates;
use super::direction::Direction;
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

/// A direction counts as a descent direction if <D, -∇f> / f is above this. Smaller rates may be rounding errors.
const MIN_RELATIVE_RATE: f64 = 1e-13;
/// A step counts as progress if its predicted decrease γ <D, -∇f> / f is above this. Smaller ones may be rounding
/// errors.
const MIN_RELATIVE_DECREASE: f64 = 1e-12;

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
        stop.requested =
            replay::replay(known, engine, oracle, &mut trace, &mut rng, clock, observer)?;
    }
    let mut parts = (engine, oracle, &mut rng);
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

/// The iterations of Alg. 1, until a stopping rule holds.
fn iterate<'p, E: Engine<'p>>(
    (engine, oracle, rng): &mut (&mut E, &mut Oracle, &mut ChaCha8Rng),
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
        // A stalled iteration is tried again with the next kind of start.
        let turn = trace.iteration() + stop.n_stalled();
        let candidates = Candidates::find(*engine, oracle, turn, rng)?;
        trace.record(objective, candidates.gap);
        if let Some(reason) = stop.at_iterate(trace.iteration(), candidates.gap, clock.elapsed()) {
            break reason;
        }
        // Lines 5 to 9: the direction D, the steeper of D_F and D_A; with pairwise steps, their sum B_F - B_A.
        let active = engine.gradient().active();
        let (direction, rate) = candidates.direction(params.steps, active);
        // Line 10: γ in [0, γ_max] minimizes f(M + γ D).
        let Some(gamma) = step_length(*engine, direction, rate, objective)? else {
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
        let iteration = trace.advance(step, engine.objective()?, clock.seconds());
        let event = Event::Iteration(&iteration, trace.active());
        stop.requested = clock.notify(observer, &event).is_break();
        replay::record(observer, clock, trace, (gamma, &iteration), rng, oracle);
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

/// The step length γ along a direction D, or `None` if the iteration is stalled. `rate` is <D, -∇f>; for a pairwise
/// direction, it is the larger of the rates of D_F and D_A.
///
/// An iteration is stalled if D is not a descent direction or the step makes no progress. This is common with
/// mini-batches: D comes from a batch, and f over all triplets may not decrease along it. A step of length γ_max is
/// taken even without progress, because it removes an atom.
fn step_length<'p>(
    engine: &mut impl Engine<'p>,
    direction: Direction,
    rate: f64,
    objective: f64,
) -> Result<Option<f64>> {
    if rate <= MIN_RELATIVE_RATE * objective {
        return Ok(None);
    }
    let gamma_max = direction.gamma_max(engine.gradient().active());
    let gamma = engine.search_line(direction, gamma_max)?;
    let progresses = gamma * rate > MIN_RELATIVE_DECREASE * objective || gamma >= gamma_max;
    Ok((gamma > 0.0 && progresses).then_some(gamma))
}
