//! Section 5: the error of smaller models along the path (Fig. 3 for this model).

use crate::input::Input;
use crate::ranking::Rankings;
use crate::sample::spaced;
use hdsl::Result;
use hdsl::knn::evaluate_similarity;
use hdsl::model::ValidationMeasure;
use serde::Serialize;

/// Iterates evaluated on test rows.
const N_POINTS: usize = 30;
/// Test rows per evaluation. All rows would take as long as the rest of the report.
const MAX_ROWS: usize = 2000;
/// With fewer validation errors, the suggestion is based on test errors if there are any.
const MIN_VALIDATION_POINTS: usize = 6;

/// Errors along the path, up to the iterate in use.
#[derive(Serialize)]
pub(crate) struct DimensionSection {
    /// On validation rows, during training.
    valid: Vec<Point>,
    /// On test rows.
    test: Vec<Point>,
    /// Test rows per evaluation, and in total.
    n_evaluated: usize,
    n_test: usize,
    dot_error: Option<f64>,
    suggestion: Option<Suggestion>,
}

#[derive(Serialize, Clone, Copy)]
struct Point {
    iteration: usize,
    n_features: usize,
    n_atoms: usize,
    error: f64,
}

/// The smallest model with an error close to the lowest one.
#[derive(Serialize)]
struct Suggestion {
    point: Point,
    lowest_error: f64,
    tolerance: f64,
    /// Whether validation rows were used; a selection on test rows is descriptive only.
    on_validation: bool,
    /// The option or call that selects this model.
    selected_by: String,
}

impl DimensionSection {
    pub(crate) fn of(input: &Input<'_>, rankings: Option<&Rankings>) -> Result<Option<Self>> {
        let model = input.model;
        let counts = model.path().counts();
        let point = |iteration: usize, error: f64| Point {
            iteration,
            n_features: counts[iteration].1,
            n_atoms: counts[iteration].0,
            error,
        };
        let valid: Vec<Point> = model
            .parts()
            .evaluations
            .iter()
            .filter(|e| e.0 as usize <= model.chosen())
            .map(|&(iteration, error)| point(iteration as usize, error))
            .collect();
        let mut section = Self {
            valid,
            test: Vec::new(),
            n_evaluated: 0,
            n_test: 0,
            dot_error: None,
            suggestion: None,
        };
        if let (Some(r), Some(test), Some((_, labels))) =
            (rankings, input.test, input.labeled_train())
            && let Some(truth) = test.labels
        {
            let sample = spaced(test.rows.n_rows(), MAX_ROWS);
            let (rows, truth) = (r.learned.test.select(&sample), truth.select(&sample));
            for iteration in evaluated_iterates(model.chosen()) {
                let iterate = model.at(iteration)?;
                let similarity = iterate.similarity();
                let train = &r.learned.train;
                let evaluation =
                    evaluate_similarity(similarity, train, labels, &rows, &truth, &r.rule)?;
                section.test.push(point(iteration, evaluation.error));
            }
            section.n_evaluated = sample.len();
            section.n_test = test.rows.n_rows();
            section.dot_error = r.dot.evaluation.as_ref().map(|e| e.error);
        }
        // Errors on triplets or queries do not belong beside errors of predictions.
        let measure = model.parts().config.validation_measure();
        let is_other = measure.is_some_and(|m| m != ValidationMeasure::PredictionError);
        if is_other && !section.test.is_empty() {
            section.valid.clear();
        }
        let on_validation = section.valid.len() >= MIN_VALIDATION_POINTS || section.test.is_empty();
        section.suggestion = match on_validation {
            true => suggestion(input, &section.valid, true),
            false => suggestion(input, &section.test, false),
        };
        Ok((!section.valid.is_empty() || !section.test.is_empty()).then_some(section))
    }
}

/// Iterates at logarithmic distances, the first and the last included.
fn evaluated_iterates(last: usize) -> Vec<usize> {
    let mut iterates: Vec<usize> = (0..N_POINTS)
        .map(|at| {
            ((last as f64 + 1.0).powf(at as f64 / (N_POINTS - 1) as f64) - 1.0).round() as usize
        })
        .chain([last])
        .filter(|&iteration| iteration <= last)
        .collect();
    iterates.sort_unstable();
    iterates.dedup();
    iterates
}

/// How far the error of the suggested model may be above the lowest one.
const TOLERANCE: f64 = 0.01;

fn suggestion(input: &Input<'_>, points: &[Point], on_validation: bool) -> Option<Suggestion> {
    let lowest_error = points.iter().map(|p| p.error).min_by(f64::total_cmp)?;
    let point = smallest(points, lowest_error + TOLERANCE)?;
    Some(Suggestion {
        point,
        selected_by: input.select_iterate(point.iteration),
        lowest_error,
        tolerance: TOLERANCE,
        on_validation,
    })
}

/// The smallest model with at most this error.
fn smallest(points: &[Point], max_error: f64) -> Option<Point> {
    let accepted = points.iter().filter(|p| p.error <= max_error);
    accepted
        .min_by_key(|p| (p.n_features, p.n_atoms, p.iteration))
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_and_last_iterates_are_evaluated() {
        assert_eq!(evaluated_iterates(0), [0]);
        assert_eq!(evaluated_iterates(3), [0, 1, 2, 3]);
        let long = evaluated_iterates(1000);
        assert_eq!((long[0], *long.last().unwrap()), (0, 1000));
        assert!(long.len() <= N_POINTS + 1 && long.windows(2).all(|w| w[0] < w[1]));
    }

    #[test]
    fn the_smallest_model_within_the_tolerance_is_suggested() {
        let point = |iteration, n_features, error| Point {
            iteration,
            n_features,
            n_atoms: iteration,
            error,
        };
        let points = [
            point(0, 2, 0.4),
            point(10, 8, 0.105),
            point(20, 16, 0.1),
            point(30, 20, 0.12),
        ];
        assert_eq!(smallest(&points, 0.11).unwrap().iteration, 10);
        assert!(smallest(&[], 1.0).is_none());
    }
}
