//! The choice of a point, and the error to expect of it.
//!
//! Thousands of points are compared on a few hundred rows, so the lowest error is mostly luck. Two things are done about
//! it. The error of a point is shrunk towards that of its neighborhood (the same path, round and normalization), the more
//! the fewer validation rows there are. And the error to expect is not that of the chosen point, but that of the *choice*
//! on rows it did not see (bootstrap bias-corrected cross-validation: Tsamardinos, Greasidou and Borboudakis, Machine
//! Learning 2018): rows are drawn with replacement, the choice is made by those drawn, and its error is computed on those
//! left out.

use crate::knn::PredictionRule;
use crate::random;
use crate::similarity::Normalization;

/// The number of rows at which a point's own error weighs as much as that of its neighborhood.
const NEIGHBORHOOD: f64 = 150.0;

/// Fewer features are preferred among points within this share of the standard error of the best.
const SPARSITY: f64 = 0.1;

/// The score of an ensemble is lowered by this many of its standard errors. It has a tenth of the points that single
/// models have, so it is less often the luckiest; and luck is lost when the winner is trained on more rows.
const ENSEMBLE_BONUS: f64 = 1.0;

/// Bootstrap samples.
const DRAWS: usize = 200;

/// Their stream of random numbers.
const STREAM: u64 = 0x7475_6e65;

/// A model to choose: an iterate of a path, and a prediction rule.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    /// The trial that the path is of.
    pub(super) trial: usize,
    /// The round.
    pub(super) round: usize,
    /// Iterations of the round.
    pub(super) iteration: usize,
    /// Atoms there; the most of all folds.
    pub(super) atoms: usize,
    /// Features they use; the most of all folds.
    pub(super) features: usize,
    /// Models it is the average of.
    pub(super) n_estimators: usize,
    /// How classes are predicted.
    pub(super) rule: PredictionRule,
    /// The validation rows it predicts wrong.
    pub(super) wrong: Vec<u32>,
}

impl Point {
    /// Points of the same neighborhood have similar errors.
    fn neighborhood(&self) -> (usize, usize, Normalization) {
        (self.trial, self.round, self.rule.normalization)
    }
}

/// Points to choose among, sorted by neighborhood.
pub(super) struct Choice<'a> {
    points: Vec<&'a Point>,
    /// Where each neighborhood begins, and where the last ends.
    starts: Vec<usize>,
    n_validation: usize,
}

/// A point with its score.
pub(super) struct Chosen<'a> {
    pub(super) point: &'a Point,
    /// Its error, shrunk towards that of its neighborhood: what it was chosen by.
    pub(super) score: f64,
}

impl<'a> Choice<'a> {
    pub(super) fn new(points: impl IntoIterator<Item = &'a Point>, n_validation: usize) -> Self {
        let mut points: Vec<&Point> = points.into_iter().collect();
        points.sort_by_key(|p| (p.neighborhood(), p.iteration, p.rule));
        let mut starts: Vec<usize> = (0..points.len())
            .filter(|&at| at == 0 || points[at].neighborhood() != points[at - 1].neighborhood())
            .collect();
        starts.push(points.len());
        Self {
            points,
            starts,
            n_validation,
        }
    }

    /// The point to take; none if there are no points.
    pub(super) fn best(&self) -> Option<Chosen<'a>> {
        let errors = self.errors(&vec![1; self.n_validation]);
        let scores = self.scores(&errors);
        let at = self.pick(&scores)?;
        Some(Chosen {
            point: self.points[at],
            score: scores[at],
        })
    }

    /// The best point of each trial, the best trial first.
    pub(super) fn by_trial(&self) -> Vec<Chosen<'a>> {
        let errors = self.errors(&vec![1; self.n_validation]);
        let scores = self.scores(&errors);
        let mut trials: Vec<usize> = self.points.iter().map(|p| p.trial).collect();
        trials.dedup();
        let mut best: Vec<Chosen<'a>> = trials
            .into_iter()
            .filter_map(|trial| {
                let range = self.points.partition_point(|p| p.trial < trial)
                    ..self.points.partition_point(|p| p.trial <= trial);
                let at = range.start + self.pick_among(range.clone(), &scores)?;
                Some(Chosen {
                    point: self.points[at],
                    score: scores[at],
                })
            })
            .collect();
        best.sort_by(|a, b| {
            let key = |c: &Chosen<'_>| (c.point.features, c.point.trial);
            a.score.total_cmp(&b.score).then(key(a).cmp(&key(b)))
        });
        best
    }

    /// The error to expect of the choice on new rows, and its standard deviation over bootstrap samples. None if there are
    /// too few rows to leave any out.
    pub(super) fn expected_error(&self, seed: u64) -> Option<(f64, f64)> {
        let n = self.n_validation;
        let mut rng = random::rng(seed, STREAM);
        let mut errors = Vec::with_capacity(DRAWS);
        for _ in 0..DRAWS {
            let mut times = vec![0u32; n];
            for _ in 0..n {
                times[random::below(&mut rng, n)] += 1;
            }
            let left_out = times.iter().filter(|&&t| t == 0).count();
            let at = self.pick(&self.scores(&self.errors(&times)));
            if let (Some(at), true) = (at, left_out > 0) {
                let wrong = self.points[at].wrong.iter();
                let missed = wrong.filter(|&&row| times[row as usize] == 0).count();
                errors.push(missed as f64 / left_out as f64);
            }
        }
        if errors.is_empty() {
            return None;
        }
        let count = errors.len() as f64;
        let mean = errors.iter().sum::<f64>() / count;
        let variance = errors.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / count;
        Some((mean, variance.sqrt()))
    }

    /// The error of each point, where row r counts `times[r]` times.
    fn errors(&self, times: &[u32]) -> Vec<f64> {
        let total: u64 = times.iter().map(|&t| u64::from(t)).sum();
        let wrong = |p: &&Point| {
            let times = p.wrong.iter().map(|&row| u64::from(times[row as usize]));
            times.sum::<u64>() as f64 / total as f64
        };
        self.points.iter().map(wrong).collect()
    }

    /// Errors, shrunk towards the mean of their neighborhood.
    fn scores(&self, errors: &[f64]) -> Vec<f64> {
        let n = self.n_validation as f64;
        let mut scores = Vec::with_capacity(errors.len());
        for ends in self.starts.windows(2) {
            let mine = &errors[ends[0]..ends[1]];
            let mean = mine.iter().sum::<f64>() / mine.len() as f64;
            let is_ensemble = self.points[ends[0]].n_estimators > 1;
            scores.extend(mine.iter().map(|e| {
                let shrunk = (n * e + NEIGHBORHOOD * mean) / (n + NEIGHBORHOOD);
                match is_ensemble {
                    true => shrunk - ENSEMBLE_BONUS * self.deviation(shrunk),
                    false => shrunk,
                }
            }));
        }
        scores
    }

    /// The standard error of an error.
    fn deviation(&self, error: f64) -> f64 {
        (error * (1.0 - error) / self.n_validation as f64)
            .max(0.0)
            .sqrt()
    }

    fn pick(&self, scores: &[f64]) -> Option<usize> {
        self.pick_among(0..self.points.len(), scores)
    }

    /// The point with the fewest features of those nearly as good as the best; where in `range`.
    fn pick_among(&self, range: std::ops::Range<usize>, scores: &[f64]) -> Option<usize> {
        let scores = &scores[range.clone()];
        let least = scores.iter().copied().min_by(f64::total_cmp)?;
        let most = least + SPARSITY * self.deviation(least);
        (0..scores.len())
            .filter(|&at| scores[at] <= most)
            .min_by(|&a, &b| {
                let features = |at: usize| self.points[range.start + at].features;
                let by_features = features(a).cmp(&features(b));
                by_features.then(scores[a].total_cmp(&scores[b]))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(trial: usize, iteration: usize, features: usize, wrong: &[u32]) -> Point {
        Point {
            trial,
            round: 0,
            iteration,
            atoms: features,
            features,
            n_estimators: 1,
            rule: PredictionRule::default(),
            wrong: wrong.to_vec(),
        }
    }

    #[test]
    fn a_lucky_point_in_a_bad_neighborhood_loses() {
        let lucky = [
            point(0, 1, 4, &[0, 1, 2, 3, 4, 5]),
            point(0, 2, 6, &[]),
            point(0, 3, 8, &[0, 1, 2, 3, 4, 5]),
        ];
        let steady = [
            point(1, 1, 4, &[0]),
            point(1, 2, 6, &[1]),
            point(1, 3, 8, &[0]),
        ];
        let choice = Choice::new(lucky.iter().chain(&steady), 20);
        let best = choice.best().unwrap();
        assert_eq!(best.point, &steady[0]);
        // (20 · 1/20 + 150 · 1/20) / 170
        assert!((best.score - 0.05).abs() < 1e-12);
        let trials: Vec<usize> = choice.by_trial().iter().map(|c| c.point.trial).collect();
        assert_eq!(trials, [1, 0]);
        assert_eq!(choice.by_trial()[1].point, &lucky[1]);
    }

    #[test]
    fn a_mean_is_believed_to_be_better_than_its_rows_say() {
        let wrong: Vec<u32> = (0..24).collect();
        let single = point(0, 1, 10, &wrong[..19]);
        let of_several = |wrong: &[u32]| Point {
            n_estimators: 3,
            ..point(1, 1, 30, wrong)
        };
        // √(0.1 · 0.9 / 200) is 2.1%: four rows.
        let near = [single.clone(), of_several(&wrong[..22])];
        assert_eq!(Choice::new(&near, 200).best().unwrap().point, &near[1]);
        let far = [single, of_several(&wrong)];
        assert_eq!(Choice::new(&far, 200).best().unwrap().point, &far[0]);
    }

    #[test]
    fn of_equals_the_sparsest_is_taken() {
        let points = [point(0, 9, 50, &[3]), point(0, 5, 20, &[4])];
        let choice = Choice::new(&points, 30);
        assert_eq!(choice.best().unwrap().point.features, 20);
    }

    #[test]
    fn the_expected_error_sees_through_luck() {
        // A thousand points that guess: the luckiest looks good, and the truth is one half.
        let n = 40;
        let mut rng = random::rng(1, 1);
        let points: Vec<Point> = (0..1000)
            .map(|trial| {
                let wrong: Vec<u32> = (0..n).filter(|_| random::below(&mut rng, 2) == 0).collect();
                point(trial, 1, 2, &wrong)
            })
            .collect();
        let choice = Choice::new(&points, n as usize);
        let own = choice.best().unwrap().point.wrong.len() as f64 / f64::from(n);
        let (expected, deviation) = choice.expected_error(0).unwrap();
        assert!(own < 0.3, "{own}");
        assert!((expected - 0.5).abs() < 0.07, "{expected} ± {deviation}");
        assert_eq!(choice.expected_error(0), Some((expected, deviation)));
    }

    #[test]
    fn nothing_to_choose_from_is_no_choice() {
        assert!(Choice::new(&[], 5).best().is_none());
        assert!(Choice::new(&[], 5).expected_error(0).is_none());
    }
}
