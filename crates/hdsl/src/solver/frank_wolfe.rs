//! Algorithm 1: Frank-Wolfe with away steps over sparse atoms.
//!
//! minimize f(M) over M in conv{ λ(e_i ± e_j)(e_i ± e_j)ᵀ }, with f of Eq. 1.
//!
//! The parts are beside this file: the oracle of line 3 in [`lmo`](super::lmo), the forward and away atoms in
//! [`candidates`](super::candidates), directions in [`direction`](super::direction), the line search and the update of
//! the iterate in the [`engine`](super::engine), the reasons to end in [`stop`](super::stop), and the record of a run,
//! in external feature numbering, in [`trace`](super::trace).

use super::SolverParams;
use super::candidates::Candidates;
use super::direction::Direction;
use super::engine::Engine;
use super::lmo::Oracle;
use super::stop::StopRules;
use super::trace::{Run, Trace};
use crate::atoms::ActiveSet;
use crate::error::Result;
use crate::observer::{Event, Gap, Observer, Stop, Stopwatch};
use crate::random;

/// The solver's stream of random numbers; mining and splitting have others.
const STREAM: u64 = 1;

/// A direction is not one of descent, to rounding, if f falls at a rate below this share of f.
const LEAST_RATE: f64 = 1e-13;
/// A step makes no progress, to rounding, if f falls by less than this share of f.
const LEAST_FALL: f64 = 1e-12;

/// Runs Alg. 1 from `start`, or from the best single atom. A random initial atom, as in the paper, can be a bad one for
/// a large λ, and thousands of iterations are then spent on undoing it.
pub(super) fn frank_wolfe<'p>(
    engine: &mut impl Engine<'p>,
    oracle: &mut Oracle,
    start: Option<ActiveSet>,
    params: &SolverParams,
    clock: &mut Stopwatch,
    observer: &mut dyn Observer,
) -> Result<Run> {
    let (mut rng, mut stop) = (random::rng(params.seed, STREAM), StopRules::new(params));
    // Line 1: initialize M^(0) to an atom.
    let start = start.unwrap_or_else(|| {
        engine.refresh(&mut rng);
        ActiveSet::single(oracle.best(engine.gradient(), params.search).0)
    });
    engine.start_at(start);
    let gradient = engine.gradient();
    let mut trace = Trace::new(gradient.problem(), gradient.active())?;
    // Line 2: for k = 0, 1, 2, ...
    let reason = loop {
        let objective = engine.objective();
        if objective == 0.0 {
            trace.record(objective, Gap::Certified(0.0));
            break stop.at_zero();
        }
        // Lines 3 and 4: the forward atom B_F and the away atom B_A.
        engine.refresh(&mut rng);
        let candidates = Candidates::find(engine, oracle, trace.iteration(), &mut rng);
        trace.record(objective, candidates.gap);
        if let Some(reason) = stop.at_iterate(trace.iteration(), candidates.gap, clock.elapsed()) {
            break reason;
        }
        // Lines 5 to 9: the direction D of steeper descent.
        let direction = candidates.direction(params.steps);
        // Line 10: γ in [0, γ_max] minimizes f(M + γ D).
        let Some(gamma) = line_search(engine, direction, candidates.rate(), objective) else {
            if stop.is_stationary() {
                break Stop::Stationary;
            }
            continue;
        };
        if stop.exceeds_budget(direction, engine.gradient().active()) {
            break Stop::FeatureBudget;
        }
        // Line 11: M ← M + γ D.
        let step = direction.step(gamma, engine.gradient().active());
        engine.advance(&step, gamma);
        let iteration = trace.advance(step, engine.objective(), clock.seconds());
        let event = Event::Iteration(&iteration, trace.active());
        stop.requested = clock.tell(observer, &event).is_break();
    };
    Ok(trace.finish(reason, clock.seconds()))
}

/// The step length along a direction on which f falls at this rate; none if the iteration is stalled: a batch may give
/// a direction along which the iterate is the minimum already. A step of full length, which removes an atom, is taken
/// in any case.
fn line_search<'p>(
    engine: &mut impl Engine<'p>,
    direction: Direction,
    rate: f64,
    objective: f64,
) -> Option<f64> {
    if rate <= LEAST_RATE * objective {
        return None;
    }
    let gamma_max = direction.gamma_max(engine.gradient().active());
    let gamma = engine.search_line(direction, gamma_max);
    let progresses = gamma * rate > LEAST_FALL * objective || gamma >= gamma_max;
    (gamma > 0.0 && progresses).then_some(gamma)
}
