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
    n_validation: usize,
}

/// A point with its score: its error, shrunk towards that of its neighborhood.
pub(super) type Scored<'a> = (&'a Point, f64);

impl<'a> Choice<'a> {
    pub(super) fn new(points: impl IntoIterator<Item = &'a Point>, n_validation: usize) -> Self {
        let mut points: Vec<&Point> = points.into_iter().collect();
        points.sort_by_key(|p| (p.neighborhood(), p.iteration, p.rule));
        Self {
            points,
            n_validation,
        }
    }

    /// The point to take; none if there are no points.
    pub(super) fn best(&self) -> Option<Scored<'a>> {
        self.pick(&self.scored(&vec![1; self.n_validation]))
    }

    /// The best point of each trial, the best trial first.
    pub(super) fn by_trial(&self) -> Vec<Scored<'a>> {
        let scored = self.scored(&vec![1; self.n_validation]);
        let trials = scored.chunk_by(|a, b| a.0.trial == b.0.trial);
        let mut best: Vec<_> = trials.filter_map(|trial| self.pick(trial)).collect();
        best.sort_by(|a, b| {
            let key = |of: &Scored<'_>| (of.0.features, of.0.trial);
            a.1.total_cmp(&b.1).then(key(a).cmp(&key(b)))
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
            let picked = self.pick(&self.scored(&times));
            if let (Some((point, _)), true) = (picked, left_out > 0) {
                let wrong = point.wrong.iter();
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

    /// All points, where row r counts `times[r]` times.
    fn scored(&self, times: &[u32]) -> Vec<Scored<'a>> {
        let n = self.n_validation as f64;
        let total: u32 = times.iter().sum();
        let error = |point: &&Point| {
            let wrong = point.wrong.iter().map(|&row| times[row as usize]);
            f64::from(wrong.sum::<u32>()) / f64::from(total)
        };
        let mut scored = Vec::with_capacity(self.points.len());
        let same = |a: &&Point, b: &&Point| a.neighborhood() == b.neighborhood();
        for near in self.points.chunk_by(same) {
            let errors: Vec<f64> = near.iter().map(error).collect();
            let mean = errors.iter().sum::<f64>() / errors.len() as f64;
            scored.extend(near.iter().zip(errors).map(|(&point, error)| {
                let shrunk = (n * error + NEIGHBORHOOD * mean) / (n + NEIGHBORHOOD);
                match point.n_estimators {
                    1 => (point, shrunk),
                    _ => (point, shrunk - ENSEMBLE_BONUS * self.deviation(shrunk)),
                }
            }));
        }
        scored
    }

    /// The standard error of an error.
    fn deviation(&self, error: f64) -> f64 {
        (error * (1.0 - error) / self.n_validation as f64)
            .max(0.0)
            .sqrt()
    }

    /// The point with the fewest features of those nearly as good as the best.
    fn pick(&self, scored: &[Scored<'a>]) -> Option<Scored<'a>> {
        let least = scored.iter().map(|s| s.1).min_by(f64::total_cmp)?;
        let most = least + SPARSITY * self.deviation(least);
        let nearly = scored.iter().copied().filter(|s| s.1 <= most);
        nearly.min_by(|a, b| {
            let by_features = a.0.features.cmp(&b.0.features);
            by_features.then(a.1.total_cmp(&b.1))
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
        assert_eq!(best.0, &steady[0]);
        // (20 · 1/20 + 150 · 1/20) / 170
        assert!((best.1 - 0.05).abs() < 1e-12);
        let trials: Vec<usize> = choice.by_trial().iter().map(|c| c.0.trial).collect();
        assert_eq!(trials, [1, 0]);
        assert_eq!(choice.by_trial()[1].0, &lucky[1]);
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
        assert_eq!(Choice::new(&near, 200).best().unwrap().0, &near[1]);
        let far = [single, of_several(&wrong)];
        assert_eq!(Choice::new(&far, 200).best().unwrap().0, &far[0]);
    }

    #[test]
    fn of_equals_the_sparsest_is_taken() {
        let points = [point(0, 9, 50, &[3]), point(0, 5, 20, &[4])];
        let choice = Choice::new(&points, 30);
        assert_eq!(choice.best().unwrap().0.features, 20);
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
        let own = choice.best().unwrap().0.wrong.len() as f64 / f64::from(n);
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
