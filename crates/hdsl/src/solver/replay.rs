//! Recording of a run for a checkpoint, and taking the recorded steps again.
//!
//! A recorded step needs no search for an atom and no line search: the affected triplets are listed, and the solver state
//! advances by the recorded γ. Afterwards the state is bitwise that of the recorded run.

use super::curvature::Curvatures;
use super::direction::Direction;
use super::engine::{Engine, Gradient};
use super::lmo::Oracle;
use super::trace::{IterateFacts, Run, Trace};
use crate::atoms::{ActiveSet, Step};
use crate::checkpoint::{RecordedGap, RecordedStep, RunEnd, RunRecord, SearchState};
use crate::error::{Error, Result};
use crate::objective::Features;
use crate::observer::{Event, Gap, Iteration, Observer, Stop, Stopwatch};
use rand_chacha::ChaCha8Rng;

/// What is known of the run that begins now; `None` if nothing is, or nothing is recorded.
pub(super) fn begin(observer: &mut dyn Observer) -> Option<RunRecord> {
    let known = observer.recorder()?.begin_run();
    known.filter(|known| !known.start.is_empty())
}

/// The first iterate of a known run, in internal feature indices.
pub(super) fn start(known: &RunRecord, features: &Features) -> Result<ActiveSet> {
    let start = ActiveSet::from_weighted(&known.start)?;
    super::internal(features, &start)
}

/// A known run that had ended. Its events are sent again.
pub(super) fn ended(
    known: &RunRecord,
    clock: &mut Stopwatch,
    observer: &mut dyn Observer,
) -> Result<Option<Run>> {
    let Some(end) = &known.end else {
        return Ok(None);
    };
    let path = known.path()?;
    let mut active = path.at(0)?;
    start_record(observer, &known.start);
    for (iter, recorded) in (1..).zip(&known.steps) {
        active.apply(&recorded.step);
        tell_again(recorded, iter, &active, clock, observer);
        keep(observer, recorded.clone(), known.state);
    }
    let last = facts(end.last);
    let trace = known.steps.iter().map(|recorded| facts(recorded.before));
    let run = Run {
        active,
        trace: trace.chain([last]).collect(),
        stop: end.stop.parse()?,
        seconds: end.seconds,
        path,
    };
    clock.resume_at(end.seconds);
    end_record(observer, &run);
    Ok(Some(run))
}

/// Takes the recorded steps. Returns whether the observer asks to stop.
pub(super) fn replay<'p>(
    known: &RunRecord,
    engine: &mut impl Engine<'p>,
    (oracle, curvatures, rng): (&mut Oracle, &mut Curvatures, &mut ChaCha8Rng),
    trace: &mut Trace<'_>,
    clock: &mut Stopwatch,
    observer: &mut dyn Observer,
) -> Result<bool> {
    let mut asked = false;
    let steps = internal_steps(known, engine.gradient().features())?;
    let expected = known.steps.first().map(|first| first.before.0);
    check(expected, engine, observer)?;
    for (step, recorded) in steps.into_iter().zip(&known.steps) {
        // With γ_max = 0, this lists the affected triplets and searches nothing.
        engine.search_line(direction_of(&step), 0.0)?;
        engine.advance(&step, recorded.gamma)?;
        let active = engine.gradient().active();
        curvatures.learn(&step, recorded.rate, recorded.gamma, active);
        trace.record(recorded.before.0, gap(recorded.before.1));
        trace.record(recorded.before.0, gap(recorded.gap));
        let iteration = trace.advance(step, recorded.objective, recorded.seconds);
        let event = Event::Iteration(&iteration, trace.active());
        asked |= clock.notify(observer, &event).is_break();
        keep(observer, recorded.clone(), known.state);
    }
    check(
        known.steps.last().map(|last| last.objective),
        engine,
        observer,
    )?;
    if let Some(last) = known.steps.last() {
        rng.set_word_pos(known.state.random_position);
        oracle.set_state(known.state.oracle);
        clock.resume_at(last.seconds);
    }
    if let Some(recorder) = observer.recorder() {
        recorder.end_replay(known.state);
    }
    Ok(asked)
}

/// The first iterate goes into the record.
pub(super) fn start_record(observer: &mut dyn Observer, start: &[(crate::atoms::Atom, f64)]) {
    if let Some(recorder) = observer.recorder() {
        recorder.start_run(start);
    }
}

/// A step that was just taken goes into the record. The time that takes is not counted.
pub(super) fn record(
    observer: &mut dyn Observer,
    clock: &mut Stopwatch,
    trace: &Trace<'_>,
    (rate, gamma, iteration): (f64, f64, &Iteration),
    rng: &ChaCha8Rng,
    oracle: &Oracle,
) {
    if observer.recorder().is_none() {
        return;
    }
    let state = SearchState {
        random_position: rng.get_word_pos(),
        oracle: oracle.state(),
    };
    let (step, before) = trace.last_step();
    let recorded = RecordedStep {
        step,
        gamma,
        rate,
        before: (before.objective, recorded_gap(before.gap)),
        gap: recorded_gap(iteration.gap),
        objective: iteration.objective,
        seconds: iteration.seconds,
    };
    clock.pause(|| keep(observer, recorded, state));
}

/// A run that ended by itself is not searched again. One that its observer ended goes on when it is resumed.
pub(super) fn end_record(observer: &mut dyn Observer, run: &Run) {
    let end = RunEnd {
        last: (run.objective(), recorded_gap(run.gap())),
        stop: run.stop.to_string(),
        seconds: run.seconds,
    };
    if let Some(recorder) = observer.recorder()
        && run.stop != Stop::ObserverAsked
    {
        recorder.end_run(end);
    }
}

/// Puts a step into the record, and passes on what the recorder has to say.
fn keep(observer: &mut dyn Observer, step: RecordedStep, state: SearchState) {
    let note = observer.recorder().and_then(|recorder| {
        recorder.record(step, state);
        recorder.take_note()
    });
    if let Some(note) = note {
        // The solver asks the observer after every step.
        let _ = observer.on_event(&Event::Note(&note));
    }
}

fn tell_again(
    recorded: &RecordedStep,
    iter: usize,
    active: &ActiveSet,
    clock: &mut Stopwatch,
    observer: &mut dyn Observer,
) {
    let iteration = Iteration {
        iter,
        objective: recorded.objective,
        gap: gap(recorded.gap),
        seconds: recorded.seconds,
    };
    // A run that has ended cannot be ended earlier.
    let _ = clock.notify(observer, &Event::Iteration(&iteration, active));
}

/// The objective of a resumed run is that of the recorded one, unless files have changed that the configuration names:
/// bit for bit, or up to rounding errors if the triplets are on other shards now.
fn check<'p>(
    expected: Option<f64>,
    engine: &mut impl Engine<'p>,
    observer: &mut dyn Observer,
) -> Result<()> {
    let Some(expected) = expected else {
        return Ok(());
    };
    let found = engine.objective()?;
    let is_equal = found.to_bits() == expected.to_bits()
        || (found - expected).abs() <= engine.rounding() * expected.abs();
    match (is_equal, observer.recorder()) {
        (false, Some(recorder)) => Err(Error::file(
            recorder.path(),
            format!(
                "does not belong to these triplets: the objective is {found}, and was {expected}; remove it, or start \
                 again without resuming"
            ),
        )),
        _ => Ok(()),
    }
}

/// The recorded steps in internal feature indices.
fn internal_steps(known: &RunRecord, features: &Features) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = known.steps.iter().map(|recorded| recorded.step).collect();
    let atoms = steps.iter_mut().flat_map(Step::atoms_mut);
    let external: Vec<_> = atoms.map(|atom| *atom).collect();
    let internal = features
        .internal(&external)
        .ok_or_else(|| Error::data("the checkpoint uses a feature that is in none of the rows"))?;
    let places = steps.iter_mut().flat_map(Step::atoms_mut);
    for (place, atom) in places.zip(internal) {
        *place = atom;
    }
    Ok(steps)
}

/// The direction that a step was taken in.
fn direction_of(step: &Step) -> Direction {
    match *step {
        Step::Forward { atom, .. } => Direction::Forward(atom),
        Step::Away { atom, .. } | Step::Drop { atom } => Direction::Away(atom),
        Step::Pairwise { to, from, .. } | Step::Swap { to, from } => {
            Direction::Pairwise { to, from }
        }
    }
}

fn facts((objective, of_gap): (f64, RecordedGap)) -> IterateFacts {
    let gap = gap(of_gap);
    IterateFacts { objective, gap }
}

fn gap((value, is_certified): RecordedGap) -> Gap {
    match is_certified {
        true => Gap::Certified(value),
        false => Gap::Estimate(value),
    }
}

fn recorded_gap(gap: Gap) -> RecordedGap {
    (gap.value(), gap.is_certified())
}
