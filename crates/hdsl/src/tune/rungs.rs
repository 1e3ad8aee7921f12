//! Successive halving: rungs of trials, run side by side. Each rung gives its trials one more mining round, and the best
//! of them continue to the next.

use super::choice::{Choice, Point};
use super::configuration;
use super::folds::Folds;
use super::params::{Ablation, Preset, TuneConfig};
use super::search::{Search, lock};
use super::trial::Trial;
use crate::error::Result;
use crate::model::TrainConfig;
use crate::observer::Event;
use crate::parallel::prelude::*;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// With more training rows than the first number, the first rung runs on a sample of that size, and computes errors on a
/// sample of at most the second number of validation rows.
const SAMPLE: [usize; 2] = [4000, 2000];

/// How many trials continue to each rung after the first.
const SURVIVORS: [usize; 3] = [5, 3, 2];

/// Models of an ensemble.
const N_ESTIMATORS: usize = 3;

/// Rungs at most: a first one, one per further round, and one for ensembles.
const RUNGS: usize = SURVIVORS.len() + 2;

/// When each rung has to be done, as a share of the time for the search.
const TIME_SHARES: [f64; RUNGS] = [0.35, 0.6, 0.72, 0.8, 1.0];

/// Time reserved for the final training, as a multiple of what it took in the search.
const RESERVE: f64 = 1.5;

/// The trials of a search, and the number of rows their errors are computed on.
pub(super) struct Found {
    pub(super) trials: Vec<Trial>,
    pub(super) n_validation: usize,
}

impl Found {
    fn new(configurations: impl IntoIterator<Item = TrainConfig>, folds: &Folds) -> Self {
        let configurations = configurations.into_iter();
        Self {
            trials: configurations.map(|c| Trial::new(c, folds)).collect(),
            n_validation: folds.n_validation,
        }
    }

    /// The choice among the points within the limits of a model that do not use a part of the search.
    pub(super) fn choice(&self, params: &TuneConfig, without: Option<Ablation>) -> Choice<'_> {
        let points = self.trials.iter().flat_map(|trial| {
            let uses = move |point: &&Point| {
                without.is_some_and(|part| part.is_used_by(&trial.config, point))
            };
            trial.points.iter().filter(move |point| !uses(point))
        });
        let points = points.filter(|point| params.allows(point));
        Choice::new(points, self.n_validation)
    }
}

/// A stage of the search.
#[derive(Clone, Copy)]
struct Rung {
    /// Which, from 0.
    number: usize,
    /// The round up to which its trials run.
    round: usize,
    n_estimators: usize,
    /// Whether on a sample of the rows.
    sampled: bool,
}

impl Search<'_> {
    /// Whether there are rungs after the first.
    fn halves(&self) -> bool {
        self.params.preset == Preset::Best
    }

    /// All rungs.
    pub(super) fn run(&mut self, folds: &Folds) -> Result<Found> {
        let train = &folds.folds[0].train;
        let max_iter = self.checkpoints[self.checkpoints.len() - 1];
        let configurations = configuration::first(self.params, train, max_iter);
        let sample = match self.halves() && train.n_rows() > SAMPLE[0] {
            true => Some(folds.sampled(SAMPLE, self.params.seed)?),
            false => None,
        };
        let first = Rung {
            number: 0,
            round: 0,
            n_estimators: 1,
            sampled: sample.is_some(),
        };
        let first_folds = sample.as_ref().unwrap_or(folds);
        let mut found = Found::new(configurations, first_folds);
        let every: Vec<usize> = (0..found.trials.len()).collect();
        self.rung(first, first_folds, &mut found, &every)?;
        if !self.halves() {
            return Ok(found);
        }
        let mut ranked = self.ranked(&found);
        let mut on_sample = None;
        if first.sampled {
            let again = ranked.iter().map(|&at| found.trials[at].config.clone());
            let on_all = Found::new(again, folds);
            on_sample = Some(std::mem::replace(&mut found, on_all));
            ranked = (0..ranked.len()).collect();
        }
        self.halve(&mut found, ranked, folds)?;
        self.ensembles(&mut found, folds)?;
        match on_sample {
            // There was no time for all rows.
            Some(on_sample) if found.trials.iter().all(|t| t.points.is_empty()) => Ok(on_sample),
            _ => Ok(found),
        }
    }

    /// The rungs after the first, each with fewer trials and one more mining round.
    fn halve(&mut self, found: &mut Found, mut ranked: Vec<usize>, folds: &Folds) -> Result<()> {
        let mines = self.params.uses(Ablation::MiningRounds);
        // Without mining rounds there is one more rung, for the configurations around the best.
        let n_rungs = if mines { SURVIVORS.len() } else { 1 };
        for (at, &keep) in SURVIVORS[..n_rungs].iter().enumerate() {
            let may_continue = ranked.iter().filter(|&&at| found.trials[at].may_continue);
            let mut active: Vec<usize> = may_continue.take(keep).copied().collect();
            if at == 0 {
                self.add_promising(found, &mut active, &ranked, folds);
            }
            let rung = Rung {
                number: at + 1,
                round: if mines { at + 1 } else { 0 },
                n_estimators: 1,
                sampled: false,
            };
            self.rung(rung, folds, found, &active)?;
            for (at, trial) in found.trials.iter_mut().enumerate() {
                if !active.contains(&at) {
                    trial.models.iter_mut().for_each(Vec::clear);
                }
            }
            ranked = self.ranked(found);
        }
        Ok(())
    }

    /// After the first rung: trials of the other triplet source, and new ones around the best two.
    fn add_promising(
        &self,
        found: &mut Found,
        active: &mut Vec<usize>,
        ranked: &[usize],
        folds: &Folds,
    ) {
        let trials = &mut found.trials;
        // Triplets of neighbors gain most from mining rounds: they are not given up before the first.
        let others = ranked.iter().copied().filter(|&at| {
            let other_source = trials[at].is_random() != trials[ranked[0]].is_random();
            trials[at].may_continue && other_source
        });
        let others: Vec<usize> = others.take(2).filter(|at| !active.contains(at)).collect();
        active.extend(others);
        let near = |&at: &usize| configuration::around(self.params, &trials[at].config);
        let near: Vec<TrainConfig> = ranked.iter().take(2).flat_map(near).collect();
        for new in near {
            if trials.iter().all(|trial| trial.config != new) {
                active.push(trials.len());
                trials.push(Trial::new(new, folds));
            }
        }
    }

    /// The last rung: an ensemble of the best configuration with random triplets, up to its best round. Models of the
    /// same neighbors would be too similar for their average to be any better.
    ///
    /// There is none if features or atoms are limited: each model would be within the limit, but not their average.
    fn ensembles(&mut self, found: &mut Found, folds: &Folds) -> Result<()> {
        let limited = self.params.max_features.is_some() || self.params.max_atoms.is_some();
        if limited || !self.params.uses(Ablation::Ensembles) {
            return Ok(());
        }
        let best = found.choice(self.params, None).by_trial();
        let random = best.iter().find(|b| found.trials[b.0.trial].is_random());
        let Some(&(best, _)) = random else {
            return Ok(());
        };
        let rung = Rung {
            number: RUNGS - 1,
            round: best.round,
            n_estimators: N_ESTIMATORS,
            sampled: false,
        };
        let ensemble = TrainConfig {
            n_estimators: N_ESTIMATORS,
            ..found.trials[best.trial].config.clone()
        };
        let at = found.trials.len();
        found.trials.push(Trial::new(ensemble, folds));
        self.rung(rung, folds, found, &[at])
    }

    /// The trials that have points, the best first.
    fn ranked(&self, found: &Found) -> Vec<usize> {
        let best = found.choice(self.params, None).by_trial();
        best.iter().map(|(point, _)| point.trial).collect()
    }

    /// One rung: each of the `active` trials does the rounds it lacks, up to that of the rung. Trials begin in the order
    /// given, so that the most promising are done first if there is not enough time.
    fn rung(
        &mut self,
        rung: Rung,
        folds: &Folds,
        found: &mut Found,
        active: &[usize],
    ) -> Result<()> {
        self.tell(&Event::RungStarted {
            rung: rung.number,
            of: if self.halves() { RUNGS } else { 1 },
            configurations: active.len(),
            n_estimators: rung.n_estimators,
            sampled: rung.sampled,
        });
        self.deadline = self.deadline_of(rung, found, folds);
        let search = &*self;
        let n_done = Mutex::new(0);
        let run = |(number, trial): (usize, &mut Trial)| {
            let before = trial.rounds;
            let complete = trial.run(number, rung.round, folds, rung.sampled, search)?;
            let mut n_done = lock(&n_done);
            *n_done += 1;
            if trial.rounds > before {
                search.tell(&Event::TrialDone {
                    configuration: &trial.config.to_string(),
                    error: trial.error(folds.n_validation),
                    done: *n_done,
                    of: active.len(),
                });
            }
            Ok(complete)
        };
        let mut trials: Vec<Option<&mut Trial>> = found.trials.iter_mut().map(Some).collect();
        let active = active
            .iter()
            .filter_map(|&at| Some((at, trials[at].take()?)));
        let complete: Result<Vec<bool>> = active.par_bridge().map(run).collect();
        self.finished &= complete?.into_iter().all(|complete| complete);
        Ok(())
    }

    /// When a rung has to be done.
    fn deadline_of(&self, rung: Rung, found: &Found, folds: &Folds) -> Option<Instant> {
        let budget = self.params.time?.as_secs_f64();
        let spent = lock(&self.journal).spent;
        let last = self.ranked(found).first().map_or(0.0, |&at| {
            let trial = &found.trials[at];
            let more = self.all_rows as f64 / folds.folds[0].train.n_rows() as f64;
            let per_round = trial.seconds / (trial.rounds * folds.folds.len()) as f64;
            RESERVE * more * per_round * ((rung.round + 1) * rung.n_estimators) as f64
        });
        let search = (budget - spent - last).max(0.0) * TIME_SHARES[rung.number];
        // A time beyond what the clock can represent is no limit.
        self.started
            .checked_add(Duration::try_from_secs_f64(search).ok()?)
    }
}
