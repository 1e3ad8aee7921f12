//! Successive halving: rungs of trials, run side by side. Plain similarities come first, since they cost least; each rung
//! after that doubles the iterations of fewer trials, as long as their errors fall.

use super::choice::{Choice, Point, Scored};
use super::configuration;
use super::folds::Folds;
use super::params::{Ablation, Preset, TuneConfig};
use super::search::{Search, lock};
use super::trial::{Grow, Reached, Trial};
use crate::data::Preprocess;
use crate::error::{Error, Result};
use crate::observer::Event;
use crate::parallel;
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// With more training rows than the first number, the first rung runs on a sample of that size, and computes errors on a
/// sample of at most the second number of validation rows.
pub(super) const SAMPLE: [usize; 2] = [8000, 2000];

/// How many trials continue to each rung after the first; the last number holds for all later ones.
const SURVIVORS: [usize; 4] = [8, 5, 3, 2];

/// Mining rounds at most.
const MOST_ROUNDS: usize = 3;

/// The share of the time left that a rung may take: the references, the first rung, later ones.
const TIME_SHARES: [f64; 3] = [0.4, 0.4, 0.7];

/// Time reserved for the final training, as a multiple of what it took in the search.
const RESERVE: f64 = 1.2;

/// The trials that are cross-validated at the end.
const FINALISTS: usize = 5;

/// The share of the time that is reserved for them, and of what is left for ensembles.
const RESERVED: [f64; 2] = [0.4, 0.25];

/// The trials of a search, and the folds their errors are computed on.
pub(super) struct Found<'f> {
    pub(super) trials: Vec<Trial>,
    pub(super) folds: &'f Folds,
}

impl<'f> Found<'f> {
    fn new(folds: &'f Folds) -> Self {
        Self {
            trials: Vec::new(),
            folds,
        }
    }

    /// The points to choose among. References have no size to be limited.
    pub(super) fn choice(&self, params: &TuneConfig, without: Option<Ablation>) -> Choice<'_> {
        let trials = self.trials.iter();
        let allowed = trials.filter(|trial| !(trial.is_plain && params.is_limited()));
        let points = allowed.flat_map(|trial| {
            let uses = move |point: &&Point| {
                let part = without.filter(|_| !trial.is_plain);
                part.is_some_and(|part| part.is_used_by(&trial.config, point))
            };
            trial.points.iter().filter(move |point| !uses(point))
        });
        let points = points.filter(|point| params.allows(point));
        Choice::new(points.collect(), self.folds)
    }

    /// The references.
    pub(super) fn references(&self) -> Choice<'_> {
        let plain = self.trials.iter().filter(|trial| trial.is_plain);
        Choice::new(plain.flat_map(|trial| &trial.points).collect(), self.folds)
    }

    /// The number of points of all trials.
    pub(super) fn n_points(&self) -> usize {
        self.trials.iter().map(|trial| trial.points.len()).sum()
    }

    /// The trials with a path that have points, the best first.
    fn ranked(&self, params: &TuneConfig) -> Vec<usize> {
        let best = self.choice(params, None).by_trial();
        let trials = best.iter().map(|(point, _)| point.trial);
        trials.filter(|&at| !self.trials[at].is_plain).collect()
    }

    /// The preprocessings of the references, the best first.
    fn ranked_references(&self) -> Vec<Preprocess> {
        let best = self.references().by_trial();
        let trials = best.iter().map(|(point, _)| &self.trials[point.trial]);
        trials.map(|trial| trial.config.preprocess).collect()
    }
}

/// What a trial does in a rung.
#[derive(Clone, Copy)]
enum Work {
    Evaluate,
    Grow(Grow),
    /// All that is planned.
    Replay,
}

impl Search<'_> {
    /// All rungs. The first uses the sample, and the last all folds, where they are given.
    pub(super) fn run<'f>(
        &mut self,
        folds: &'f Folds,
        sample: Option<&'f Folds>,
        finals: Option<&'f Folds>,
    ) -> Result<Found<'f>> {
        let for_finals = if finals.is_some() { RESERVED[0] } else { 0.0 };
        let found = self.screen(folds, sample, for_finals)?;
        self.reserved = 0.0;
        match finals {
            Some(all) if !self.stops() => self.finals(found, all),
            _ => {
                self.finished &= finals.is_none();
                Ok(found)
            }
        }
    }

    /// The best trials again, on all folds, as far as they went. What was done on the first is not done again.
    fn finals<'f>(&mut self, screened: Found<'f>, all: &'f Folds) -> Result<Found<'f>> {
        let mut found = Found::new(all);
        self.references(&mut found)?;
        let mut active = Vec::new();
        for at in screened.ranked(self.params).into_iter().take(FINALISTS) {
            let trial = &screened.trials[at];
            active.push((found.trials.len(), Work::Replay));
            let mut again = Trial::new(trial.config.clone(), all);
            again.planned = trial.segments.clone();
            found.trials.push(again);
        }
        self.rung(1.0, &mut found, &active)?;
        let none = found
            .trials
            .iter()
            .all(|t| t.is_plain || t.points.is_empty());
        Ok(if none { screened } else { found })
    }

    /// All rungs but the last.
    fn screen<'f>(
        &mut self,
        folds: &'f Folds,
        sample: Option<&'f Folds>,
        for_finals: f64,
    ) -> Result<Found<'f>> {
        let for_ensembles = if self.has_ensembles() {
            RESERVED[1]
        } else {
            0.0
        };
        self.reserved = for_finals + (1.0 - for_finals) * for_ensembles;
        let first = sample.unwrap_or(folds);
        let mut found = Found::new(first);
        match self.first_rungs(&mut found) {
            Err(Error::Stopped) => self.finished = false,
            done => done?,
        }
        if self.params.preset == Preset::Paper || self.stops() {
            return Ok(found);
        }
        if sample.is_some() {
            let on_all = self.on_all_rows(&found, folds)?;
            // If there was no time for all rows, the sample decides.
            if on_all
                .trials
                .iter()
                .all(|t| t.is_plain || t.points.is_empty())
            {
                return Ok(found);
            }
            found = on_all;
        }
        self.double(&mut found)?;
        self.reserved = for_finals;
        self.ensembles(&mut found)?;
        Ok(found)
    }

    /// The references, and the first configurations.
    fn first_rungs(&mut self, found: &mut Found<'_>) -> Result<()> {
        let folds = found.folds;
        self.references(found)?;
        self.deadline = self.share_of_time(TIME_SHARES[1], found);
        let ranked = found.ranked_references();
        let new = configuration::first(self, folds, &ranked)?;
        let work = Work::Grow(self.first_segment(folds));
        let first = found.trials.len();
        found
            .trials
            .extend(new.into_iter().map(|c| Trial::new(c, folds)));
        let active: Vec<_> = (first..found.trials.len()).map(|at| (at, work)).collect();
        self.rung(TIME_SHARES[1], found, &active)?;
        if found.ranked(self.params).is_empty() && !self.stops() {
            // There was no time for all of them: the first gets what is left.
            self.rung(1.0, found, &active[..active.len().min(1)])?;
        }
        Ok(())
    }

    fn first_segment(&self, folds: &Folds) -> Grow {
        configuration::first_segment(self.params, &folds.folds[0].labels)
    }

    /// The plain similarities.
    fn references(&mut self, found: &mut Found<'_>) -> Result<()> {
        let folds = found.folds;
        for kind in configuration::references(self.params, &folds.folds[0].train) {
            let config = configuration::reference(self.params, kind);
            found.trials.push(Trial::plain(config, folds));
        }
        let all: Vec<_> = (0..found.trials.len())
            .map(|at| (at, Work::Evaluate))
            .collect();
        self.rung(TIME_SHARES[0], found, &all)?;
        if found.n_points() == 0 && !self.stops() {
            // There was no time for all of them: the first gets what is left.
            self.rung(1.0, found, &all[..1])?;
        }
        Ok(())
    }

    /// The best configurations of a sample, on all rows.
    fn on_all_rows<'f>(&mut self, sampled: &Found<'_>, folds: &'f Folds) -> Result<Found<'f>> {
        let mut found = Found::new(folds);
        self.references(&mut found)?;
        let ranked = sampled.ranked(self.params);
        let best = self.survivors(&ranked, sampled, SURVIVORS[0]);
        let work = Work::Grow(self.first_segment(folds));
        let mut active = Vec::new();
        for at in best {
            active.push((found.trials.len(), work));
            let config = sampled.trials[at].config.clone();
            found.trials.push(Trial::new(config, folds));
        }
        self.rung(TIME_SHARES[2], &mut found, &active)?;
        Ok(found)
    }

    /// Whether there is no more time, or the observer asked to stop.
    fn stops(&self) -> bool {
        let time = self.params.time.map(|time| self.started.checked_add(time));
        let is_over = time.flatten().is_some_and(|end| Instant::now() >= end);
        is_over || self.stopped.load(std::sync::atomic::Ordering::SeqCst)
    }

    /// The rungs after the first, each with fewer trials of twice the iterations, or one more mining round.
    fn double(&mut self, found: &mut Found<'_>) -> Result<()> {
        let mut in_race: Vec<usize> = (0..found.trials.len()).collect();
        for rung in 0.. {
            let keep = SURVIVORS[rung.min(SURVIVORS.len() - 1)];
            let mut ranked = found.ranked(self.params);
            ranked.retain(|at| in_race.contains(at));
            let mut active: Vec<(usize, Work)> = Vec::new();
            for at in self.survivors(&ranked, found, keep) {
                active.extend(next(&found.trials[at]).map(|grow| (at, Work::Grow(grow))));
            }
            if rung == 0 {
                self.add_around(found, &mut active, &ranked);
            }
            if rung == 1 {
                self.add_mining(found, &mut active, &ranked);
            }
            if active.is_empty() || self.stops() {
                return Ok(());
            }
            let before = found.n_points();
            self.rung(TIME_SHARES[2], found, &active)?;
            if found.n_points() == before {
                return Ok(());
            }
            in_race = active.iter().map(|active| active.0).collect();
            for (at, trial) in found.trials.iter_mut().enumerate() {
                if !in_race.contains(&at) {
                    trial.models.iter_mut().for_each(Vec::clear);
                }
            }
        }
        Ok(())
    }

    /// The best trials that may continue. Each of the three manners to learn (on a base, alone from neighbors, alone from
    /// random triplets) stays in the first rungs: they gain from iterations and mining rounds in different ways.
    fn survivors(&self, ranked: &[usize], found: &Found<'_>, keep: usize) -> Vec<usize> {
        let manner = |at: usize| {
            let trial = &found.trials[at];
            (trial.config.base.is_none(), trial.is_random())
        };
        let open: Vec<usize> = ranked
            .iter()
            .copied()
            .filter(|&at| next(&found.trials[at]).is_some())
            .collect();
        let mut kept: Vec<usize> = open.iter().copied().take(keep).collect();
        if keep > SURVIVORS[2] {
            for &at in &open {
                if kept.iter().all(|&other| manner(other) != manner(at)) {
                    kept.push(at);
                }
            }
        }
        kept
    }

    /// New configurations around the best two.
    fn add_around(&self, found: &mut Found<'_>, active: &mut Vec<(usize, Work)>, ranked: &[usize]) {
        let near = |&at: &usize| configuration::around(self.params, &found.trials[at].config);
        let near: Vec<_> = ranked.iter().take(2).flat_map(near).collect();
        let Grow::Extend(first) = self.first_segment(found.folds) else {
            return;
        };
        for new in near {
            if found.trials.iter().all(|trial| trial.config != new) {
                active.push((found.trials.len(), Work::Grow(Grow::Extend(2 * first))));
                found.trials.push(Trial::new(new, found.folds));
            }
        }
    }

    /// The best configurations again, with mining rounds: the best on a base and the best two learned alone.
    fn add_mining(&self, found: &mut Found<'_>, active: &mut Vec<(usize, Work)>, ranked: &[usize]) {
        if !self.params.uses(Ablation::MiningRounds) {
            return;
        }
        let is_alone = |at: &usize| found.trials[*at].config.base.is_none();
        let open = ranked
            .iter()
            .copied()
            .filter(|&at| found.trials[at].may_mine);
        let (alone, on_base): (Vec<usize>, Vec<usize>) = open.partition(is_alone);
        let chosen: Vec<usize> = on_base
            .into_iter()
            .take(1)
            .chain(alone.into_iter().take(2))
            .collect();
        for at in chosen {
            let fork = found.trials[at].fork();
            let length = Reached::after(&fork.segments).iteration;
            active.push((found.trials.len(), Work::Grow(Grow::Mine(length))));
            found.trials.push(fork);
        }
    }

    /// Whether averages of several models are tried. Not if features or atoms are limited: each model would be within the
    /// limit, but not their average.
    fn has_ensembles(&self) -> bool {
        !self.params.is_limited() && self.params.uses(Ablation::Ensembles)
    }

    /// The last rung: averages of several models of the best two configurations, and of the best with random triplets if
    /// that is nearly as good, each up to its best iterate.
    fn ensembles(&mut self, found: &mut Found<'_>) -> Result<()> {
        if !self.has_ensembles() || self.stops() {
            return Ok(());
        }
        let choice = found.choice(self.params, None);
        let mut learned = choice.by_trial();
        learned.retain(|scored| !found.trials[scored.0.trial].is_plain);
        let Some(&(_, least)) = learned.first() else {
            return Ok(());
        };
        let near = least + choice.deviation(least);
        let mut chosen: Vec<&Point> = learned.iter().take(2).map(|scored| scored.0).collect();
        let is_random = |scored: &&Scored<'_>| found.trials[scored.0.trial].is_random();
        let random = learned.iter().find(is_random);
        let random = random.filter(|scored| scored.1 <= near);
        if let Some(&(point, _)) = random.filter(|scored| !chosen.contains(&scored.0)) {
            chosen.push(point);
        }
        let average = |point: &Point| {
            let single = &found.trials[point.trial];
            let mut trial = Trial::new(configuration::ensemble(&single.config), found.folds);
            trial.planned = single.segments[..=point.segment].to_vec();
            trial
        };
        let new: Vec<Trial> = chosen.into_iter().map(average).collect();
        let first = found.trials.len();
        found.trials.extend(new);
        let active: Vec<_> = (first..found.trials.len())
            .map(|at| (at, Work::Replay))
            .collect();
        self.rung(1.0, found, &active)
    }

    /// One rung. Trials begin in the order given, so that the most promising are done first if there is not enough time.
    /// The memory is divided among the runs that go on side by side; a trial that needs more than its share is run again
    /// at the end, alone.
    fn rung(&mut self, share: f64, found: &mut Found<'_>, active: &[(usize, Work)]) -> Result<()> {
        self.rung += 1;
        self.deadline = self.share_of_time(share, found);
        self.tell(&Event::RungStarted {
            configurations: active.len(),
            rows: found.folds.folds[0].train.n_rows(),
        });
        self.trials(found, active)?;
        let is_large =
            |found: &mut Found<'_>, at: usize| std::mem::take(&mut found.trials[at].is_too_large);
        let mut large = active.to_vec();
        large.retain(|&(at, _)| is_large(found, at));
        self.is_sequential = true;
        for one in large {
            self.trials(found, &[one])?;
            if is_large(found, one.0) {
                // Not even alone.
                let trial = &mut found.trials[one.0];
                (trial.may_extend, trial.may_mine) = (false, false);
                self.finished = false;
            }
        }
        self.is_sequential = false;
        Ok(())
    }

    /// Trials of a rung.
    fn trials(&mut self, found: &mut Found<'_>, active: &[(usize, Work)]) -> Result<()> {
        let folds = found.folds;
        let search = &*self;
        let n_done = Mutex::new(0);
        let run = |(number, trial, work): (usize, &mut Trial, Work)| {
            let before = trial.points.len();
            let complete = match work {
                Work::Evaluate => trial.evaluate(number, folds, search),
                Work::Grow(grow) => trial.grow(number, grow, folds, search),
                Work::Replay => trial.replay(number, folds, search),
            }?;
            let mut n_done = lock(&n_done);
            *n_done += 1;
            if trial.points.len() > before {
                search.tell(&Event::TrialDone {
                    configuration: &trial.config.to_string(),
                    is_reference: trial.is_plain,
                    error: trial.error(folds.n_validation),
                    done: *n_done,
                    of: active.len(),
                });
            }
            Ok(complete)
        };
        let mut trials: Vec<Option<&mut Trial>> = found.trials.iter_mut().map(Some).collect();
        let mut order = 0..;
        let active: Vec<_> = active
            .iter()
            .filter_map(|&(at, work)| {
                let trial = trials[at].take()?;
                trial.order = order.next()?;
                Some((at, trial, work))
            })
            .collect();
        // Folds run side by side. If there are many, trials are done one after the other, so that some are done early.
        let complete: Result<Vec<bool>> = match folds.folds.len() > 2 {
            _ if search.runner.is_some() => waited_for(active, run),
            true => active.into_iter().map(run).collect(),
            false => parallel::try_map_in_order(active, run),
        };
        self.finished &= complete?.into_iter().all(|complete| complete);
        Ok(())
    }

    /// When a rung has to be done that may take this share of the time left for the search.
    fn share_of_time(&self, share: f64, found: &Found<'_>) -> Option<Instant> {
        let budget = (1.0 - self.reserved) * self.params.time?.as_secs_f64();
        let spent = lock(&self.journal).spent + self.started.elapsed().as_secs_f64();
        let left = (budget - spent - self.final_seconds(found)).max(0.0);
        // A time beyond what the clock can represent is no limit.
        Instant::now().checked_add(Duration::try_from_secs_f64(share * left).ok()?)
    }

    /// Seconds that the final training will take if the best trial continues once more.
    fn final_seconds(&self, found: &Found<'_>) -> f64 {
        let Some(&best) = found.ranked(self.params).first() else {
            return 0.0;
        };
        let more_rows = self.all_rows as f64 / found.folds.folds[0].train.n_rows() as f64;
        let per_fold = found.trials[best].seconds / found.folds.folds.len() as f64;
        RESERVE * more_rows * 2.0 * per_fold
    }
}

/// The next segment of a trial, if it may continue: as many iterations as it has had so far, or a mining round.
fn next(trial: &Trial) -> Option<Grow> {
    let at = Reached::after(&trial.segments);
    let grows = trial.is_improving() && !trial.points.is_empty();
    match trial.mines() {
        false if grows && trial.may_extend => Some(Grow::Extend(at.iteration)),
        true if grows && trial.may_mine && at.round < MOST_ROUNDS => Some(Grow::Mine(at.iteration)),
        _ => None,
    }
}

/// All trials at once, each in a thread of its own that does nothing but wait for other processes. Those have the order of
/// the trials and do the first ones first.
fn waited_for<T: Send>(
    trials: Vec<T>,
    run: impl Fn(T) -> Result<bool> + Sync,
) -> Result<Vec<bool>> {
    let run = &run;
    std::thread::scope(|scope| {
        let threads = trials.into_iter().map(|one| scope.spawn(move || run(one)));
        // All of them begin before the first is waited for.
        let threads: Vec<_> = threads.collect();
        let join = |thread: ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    })
}
