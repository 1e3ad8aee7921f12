//! Section 5: what the error would be with fewer features and dimensions (Fig. 3 for this model).

use crate::input::Input;
use crate::ranking::Rankings;
use crate::sample::spaced;
use hdsl::Result;
use hdsl::knn::evaluate_similarity;
use serde::Serialize;

/// Points of the path at which test rows are judged.
const POINTS: usize = 30;
/// Test rows judged at each of them, at most: all of them would take as long as the rest of the report together.
const MOST_ROWS: usize = 2000;
/// How much above the lowest error the point to cut at may be.
const SLACK: f64 = 0.01;
/// Fewer points of validation than this are not chosen by, if there are test rows to look at.
const FEWEST: usize = 6;

/// Errors along the path, up to the iterate in use.
#[derive(Serialize)]
pub(crate) struct DimensionStory {
    /// On validation rows, as training saw them.
    valid: Vec<Point>,
    /// On test rows.
    test: Vec<Point>,
    /// Test rows judged at each point, and how many there are.
    n_judged: usize,
    n_test: usize,
    dot_error: Option<f64>,
    cut: Option<Cut>,
}

#[derive(Serialize, Clone, Copy)]
struct Point {
    iteration: usize,
    n_features: usize,
    n_atoms: usize,
    error: f64,
}

/// The smallest model that is nearly as good as the best.
#[derive(Serialize)]
struct Cut {
    point: Point,
    best: f64,
    slack: f64,
    /// Whether it was chosen on validation rows: by test rows it is a look back, not a choice.
    by_valid: bool,
}

impl DimensionStory {
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
        let mut story = Self {
            valid,
            test: Vec::new(),
            n_judged: 0,
            n_test: 0,
            dot_error: None,
            cut: None,
        };
        if let (Some(r), Some(test), Some((_, labels))) =
            (rankings, input.test, input.labeled_train())
            && let Some(truth) = test.labels
        {
            let judged = spaced(test.rows.n_rows(), MOST_ROWS);
            let (rows, truth) = (r.test.select(&judged), truth.select(&judged));
            for iteration in stops(model.chosen()) {
                let at = model.at(iteration)?;
                let by = at.similarity();
                let found = evaluate_similarity(by, &r.train, labels, &rows, &truth, &r.rule)?;
                story.test.push(point(iteration, found.error));
            }
            story.n_judged = judged.len();
            story.n_test = test.rows.n_rows();
            story.dot_error = r.dot.evaluation.as_ref().map(|e| e.error);
        }
        // A few validation points say little about what lies between them.
        let by_valid = story.valid.len() >= FEWEST || story.test.is_empty();
        story.cut = match by_valid {
            true => cut(&story.valid, true),
            false => cut(&story.test, false),
        };
        Ok((!story.valid.is_empty() || !story.test.is_empty()).then_some(story))
    }
}

/// Iterates to look at: the first few one by one, then wider and wider apart, the last included.
fn stops(last: usize) -> Vec<usize> {
    let mut stops: Vec<usize> = (0..POINTS)
        .map(|at| {
            ((last as f64 + 1.0).powf(at as f64 / (POINTS - 1) as f64) - 1.0).round() as usize
        })
        .chain([last])
        .filter(|&iteration| iteration <= last)
        .collect();
    stops.sort_unstable();
    stops.dedup();
    stops
}

fn cut(points: &[Point], by_valid: bool) -> Option<Cut> {
    let best = points.iter().map(|p| p.error).min_by(f64::total_cmp)?;
    let point = points
        .iter()
        .filter(|p| p.error <= best + SLACK)
        .min_by_key(|p| (p.n_features, p.n_atoms, p.iteration))?;
    Some(Cut {
        point: *point,
        best,
        slack: SLACK,
        by_valid,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_begin_and_end_where_the_path_does() {
        assert_eq!(stops(0), [0]);
        assert_eq!(stops(3), [0, 1, 2, 3]);
        let long = stops(1000);
        assert_eq!((long[0], *long.last().unwrap()), (0, 1000));
        assert!(long.len() <= POINTS + 1 && long.windows(2).all(|w| w[0] < w[1]));
    }

    #[test]
    fn the_cut_is_the_smallest_that_is_nearly_best() {
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
        assert_eq!(cut(&points, true).unwrap().point.iteration, 10);
        assert!(cut(&[], true).is_none());
    }
}
