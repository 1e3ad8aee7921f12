//! The choice of a point, and the error to expect of it.
//!
//! Thousands of points are compared on a few hundred rows, so the lowest error is mostly luck. Two things are done about
//! it. The error of a point is shrunk towards that of its neighborhood (the same segment of a path, normalization, and kind of vote), the more
//! the fewer validation rows there are. And the error to expect is not that of the chosen point, but that of the *choice*
//! on rows it did not see (bootstrap bias-corrected cross-validation: Tsamardinos, Greasidou and Borboudakis, Machine
//! Learning 2018): rows are drawn with replacement, the choice is made by those drawn, and its error is computed on those
//! left out.

use super::folds::Folds;
use super::journal::Losses;
use crate::knn::PredictionRule;
use crate::random;
use crate::similarity::Normalization;
use crate::sort::{sort_by, sort_by_key};

/// The number of rows at which a point's own error weighs as much as that of its neighborhood.
const NEIGHBORHOOD: f64 = 150.0;

/// Fewer features are preferred among points within this share of the standard error of the best.
const SPARSITY: f64 = 0.1;

/// The score of an ensemble is lowered by this many of its standard errors, but not below that of a plain similarity that is
/// better. It has a tenth of the points that single models have, so it is less often the luckiest; and luck is lost when the winner
/// is trained on more rows.
const ENSEMBLE_BONUS: f64 = 1.0;

/// Bootstrap samples.
const DRAWS: usize = 200;

/// The points that a bootstrap sample chooses among: the best of all. The others would never be chosen.
const CONTENDERS: usize = 500;

/// Their stream of random numbers.
const STREAM: u64 = 0x7475_6e65;

/// A model to choose: an iterate of a path, and a prediction rule.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    /// The trial that the path is of.
    pub(super) trial: usize,
    /// The segment of the path.
    pub(super) segment: usize,
    /// The mining round.
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
    /// Its losses on the validation rows.
    pub(super) losses: Losses,
}

impl Point {
    /// Whether nothing is learned.
    fn is_plain(&self) -> bool {
        self.atoms == 0
    }

    /// Points of the same neighborhood have similar errors.
    fn neighborhood(&self) -> (usize, usize, Normalization, bool) {
        let has_k = self.rule.vote.has_k();
        (self.trial, self.segment, self.rule.normalization, has_k)
    }
}

/// Points to choose among, sorted by neighborhood.
pub(super) struct Choice<'a> {
    points: Vec<&'a Point>,
    /// The validation row of each prediction, and the number of rows.
    rows: (&'a [u32], usize),
    /// The number of rows of a test set that the expected error is for.
    n_test: usize,
}

/// A point with its score: its error, shrunk towards that of its neighborhood if it is learned.
pub(super) type Scored<'a> = (&'a Point, f64);

impl<'a> Choice<'a> {
    pub(super) fn new(points: Vec<&'a Point>, folds: &'a Folds) -> Self {
        let n_test = folds.n_validation / folds.folds.len();
        Self::of(points, (&folds.row_of, folds.n_rows), n_test)
    }

    fn of(mut points: Vec<&'a Point>, rows: (&'a [u32], usize), n_test: usize) -> Self {
        sort_by_key(&mut points, |p| (p.neighborhood(), p.iteration, p.rule));
        Self {
            points,
            rows,
            n_test,
        }
    }

    /// The point to take; none if there are no points.
    pub(super) fn best(&self) -> Option<Scored<'a>> {
        self.pick(&self.scored(&vec![1; self.rows.1]))
    }

    /// The best point of each trial, the best trial first.
    pub(super) fn by_trial(&self) -> Vec<Scored<'a>> {
        let scored = self.scored(&vec![1; self.rows.1]);
        let trials = scored.chunk_by(|a, b| a.0.trial == b.0.trial);
        let mut best: Vec<_> = trials.filter_map(|trial| self.pick(trial)).collect();
        sort_by(&mut best, |a, b| {
            let key = |of: &Scored<'_>| (of.0.features, of.0.trial);
            a.1.total_cmp(&b.1).then(key(a).cmp(&key(b)))
        });
        best
    }

    /// The error to expect of the choice on new rows, and its standard deviation on a test set as large as a fold: the
    /// estimate varies over bootstrap samples, and the error varies with the test rows. None if there are too few rows to
    /// leave any out.
    pub(super) fn expected_error(&self, seed: u64) -> Option<(f64, f64)> {
        let n = self.rows.1;
        let contenders = self.contenders();
        let mut rng = random::rng(seed, STREAM);
        let mut errors = Vec::with_capacity(DRAWS);
        for _ in 0..DRAWS {
            let mut times = vec![0u32; n];
            for _ in 0..n {
                times[random::below(&mut rng, n)] += 1;
            }
            let is_left_out = |prediction: u32| times[self.row_of(prediction)] == 0;
            let predictions = 0..self.rows.0.len() as u32;
            let left_out = predictions.filter(|&p| is_left_out(p)).count();
            let picked = contenders.pick(&contenders.scored(&times));
            if let (Some((point, _)), true) = (picked, left_out > 0) {
                let missed = point.losses.iter().filter(|loss| is_left_out(loss.0));
                // The sum of nothing is -0.
                errors.push(0.0 + missed.map(|loss| loss.1).sum::<f64>() / left_out as f64);
            }
        }
        if errors.is_empty() {
            return None;
        }
        let count = errors.len() as f64;
        let mean = errors.iter().sum::<f64>() / count;
        let variance = errors.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / count;
        let of_test_rows = mean * (1.0 - mean) / self.n_test.max(1) as f64;
        Some((mean, (variance + of_test_rows.max(0.0)).sqrt()))
    }

    fn row_of(&self, prediction: u32) -> usize {
        // A journal may have been changed by hand.
        self.rows
            .0
            .get(prediction as usize)
            .map_or(0, |&row| row as usize)
    }

    /// The points that may be chosen in a bootstrap sample: whole neighborhoods, until there are enough.
    fn contenders(&self) -> Self {
        let scored = self.scored(&vec![1; self.rows.1]);
        let same = |a: &Scored<'_>, b: &Scored<'_>| a.0.neighborhood() == b.0.neighborhood();
        let mut near: Vec<&[Scored<'a>]> = scored.chunk_by(same).collect();
        let least = |of: &[Scored<'_>]| of.iter().map(|s| s.1).fold(f64::INFINITY, f64::min);
        sort_by(&mut near, |a, b| least(a).total_cmp(&least(b)));
        let mut points = Vec::new();
        for near in near {
            if points.len() >= CONTENDERS {
                break;
            }
            points.extend(near.iter().map(|scored| scored.0));
        }
        Self::of(points, self.rows, self.n_test)
    }

    /// All points, where row r counts `times[r]` times.
    fn scored(&self, times: &[u32]) -> Vec<Scored<'a>> {
        let n = self.rows.0.len() as f64;
        let each = self.rows.0.iter().map(|&row| times[row as usize]);
        let total = f64::from(each.sum::<u32>());
        let error = |point: &&Point| {
            let losses = point.losses.iter();
            let weighted = losses.map(|(at, loss)| f64::from(times[self.row_of(at)]) * loss);
            weighted.sum::<f64>() / total
        };
        let mut scored = Vec::with_capacity(self.points.len());
        let same = |a: &&Point, b: &&Point| a.neighborhood() == b.neighborhood();
        for near in self.points.chunk_by(same) {
            let errors: Vec<f64> = near.iter().map(error).collect();
            let mean = errors.iter().sum::<f64>() / errors.len() as f64;
            scored.extend(near.iter().zip(errors).map(|(&point, error)| {
                match point.is_plain() {
                    // There are few of them, so none is lucky; and nothing learned that is worse shall win.
                    true => (point, error),
                    false => (
                        point,
                        (n * error + NEIGHBORHOOD * mean) / (n + NEIGHBORHOOD),
                    ),
                }
            }));
        }
        let plain = scored.iter().filter(|scored| scored.0.is_plain());
        let plain = plain.map(|scored| scored.1).fold(f64::INFINITY, f64::min);
        for (point, score) in &mut scored {
            if point.n_estimators > 1 {
                let lowered = *score - ENSEMBLE_BONUS * self.deviation(*score);
                *score = match *score <= plain {
                    true => lowered,
                    false => lowered.max(plain),
                };
            }
        }
        scored
    }

    /// The standard error of an error.
    pub(super) fn deviation(&self, error: f64) -> f64 {
        let n = self.rows.1 as f64;
        (error * (1.0 - error) / n).max(0.0).sqrt()
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
            segment: 0,
            round: 0,
            iteration,
            atoms: features,
            features,
            n_estimators: 1,
            rule: PredictionRule::default(),
            losses: Losses::wrong(wrong.to_vec()),
        }
    }

    /// As many rows, each predicted once.
    const EACH: [u32; 200] = {
        let mut rows = [0; 200];
        let mut at = 0;
        while at < 200 {
            rows[at] = at as u32;
            at += 1;
        }
        rows
    };

    fn choice<'a>(points: impl IntoIterator<Item = &'a Point>, n: usize) -> Choice<'a> {
        Choice::of(points.into_iter().collect(), (&EACH[..n], n), n)
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
        let chosen = choice(lucky.iter().chain(&steady), 20);
        let best = chosen.best().unwrap();
        assert_eq!(best.0, &steady[0]);
        // (20 · 1/20 + 150 · 1/20) / 170
        assert!((best.1 - 0.05).abs() < 1e-12);
        let trials: Vec<usize> = chosen.by_trial().iter().map(|c| c.0.trial).collect();
        assert_eq!(trials, [1, 0]);
        assert_eq!(chosen.by_trial()[1].0, &lucky[1]);
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
        assert_eq!(choice(&near, 200).best().unwrap().0, &near[1]);
        let far = [single, of_several(&wrong)];
        assert_eq!(choice(&far, 200).best().unwrap().0, &far[0]);
    }

    #[test]
    fn nothing_learned_wins_against_a_plain_similarity_that_is_better() {
        let wrong: Vec<u32> = (0..30).collect();
        let plain = point(0, 0, 0, &wrong[..20]);
        // One of three rules of a path is as good as the plain similarity, the others are worse.
        let single = [20, 24, 24].map(|n| point(1, 9, 6, &wrong[..n]));
        let average = Point {
            n_estimators: 5,
            ..point(2, 9, 6, &wrong[..22])
        };
        let all = [&plain, &single[0], &single[1], &single[2], &average];
        assert_eq!(choice(all, 200).best().unwrap().0, &plain);
        let better = Point {
            n_estimators: 5,
            ..point(2, 9, 6, &wrong[..19])
        };
        let all = [&plain, &single[0], &single[1], &single[2], &better];
        assert_eq!(choice(all, 200).best().unwrap().0, &better);
    }

    #[test]
    fn of_equals_the_sparsest_is_taken() {
        let points = [point(0, 9, 50, &[3]), point(0, 5, 20, &[4])];
        let chosen = choice(&points, 30);
        assert_eq!(chosen.best().unwrap().0.features, 20);
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
        let chosen = choice(&points, n as usize);
        let own = chosen.best().unwrap().0.losses.sum() / f64::from(n);
        let (expected, deviation) = chosen.expected_error(0).unwrap();
        assert!(own < 0.3, "{own}");
        assert!((expected - 0.5).abs() < 0.07, "{expected} ± {deviation}");
        assert_eq!(chosen.expected_error(0), Some((expected, deviation)));
    }

    #[test]
    fn nothing_to_choose_from_is_no_choice() {
        assert!(choice(&[], 5).best().is_none());
        assert!(choice(&[], 5).expected_error(0).is_none());
    }
}
