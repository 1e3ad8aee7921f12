//! Section 6: rows projected to two principal components, before and after the learned transformation.

mod components;

use crate::classes::Classes;
use crate::input::Input;
use crate::ranking::dot_preprocessor;
use crate::sample::{rounded, spaced};
use components::Components;
use hdsl::{Rows, SparseRow};
use serde::Serialize;
use std::borrow::Cow;

/// Training rows from which the components are computed.
const MAX_FITTED: usize = 4000;
/// Points in each map.
const MAX_POINTS: usize = 2500;

/// Two maps of the same rows.
#[derive(Serialize)]
pub(crate) struct MapSection {
    /// Whether the points are test rows; training rows otherwise.
    of_test: bool,
    row: Vec<u32>,
    n_rows: usize,
    n_fitted: usize,
    n_train: usize,
    /// The class of each point, if rows have classes.
    class: Option<Vec<u32>>,
    raw: Plane,
    learned: Plane,
}

#[derive(Serialize)]
struct Plane {
    x: Vec<f64>,
    y: Vec<f64>,
    /// The share of the variance along each axis.
    variance: [f64; 2],
}

impl Plane {
    fn of(fitted: &Rows, points: &Rows) -> Self {
        let (fitted, points) = compacted(fitted, points);
        let components = Components::fit(&fitted);
        let [x, y] = components.map(&points);
        Self {
            x: x.into_iter().map(|v| rounded(v, 4)).collect(),
            y: y.into_iter().map(|v| rounded(v, 4)).collect(),
            variance: components.shares(),
        }
    }
}

/// Both sets of rows with the columns that occur in the first, if most columns do not: there may be billions. Other
/// columns have no part in the components.
fn compacted<'a>(fitted: &'a Rows, points: &'a Rows) -> (Cow<'a, Rows>, Cow<'a, Rows>) {
    if fitted.n_features() <= 4 * fitted.nnz() + 65_536 {
        return (Cow::Borrowed(fitted), Cow::Borrowed(points));
    }
    let mut columns = fitted.indices().to_vec();
    columns.sort_unstable();
    columns.dedup();
    let compact = |rows: &Rows| {
        let mut compact = Rows::new(columns.len());
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for row in rows.iter() {
            indices.clear();
            values.clear();
            for (feature, value) in row.iter() {
                if let Ok(number) = columns.binary_search(&feature) {
                    indices.push(number as u32);
                    values.push(value);
                }
            }
            compact.push(SparseRow::new(&indices, &values));
        }
        Cow::Owned(compact)
    };
    (compact(fitted), compact(points))
}

impl MapSection {
    pub(crate) fn of(input: &Input<'_>, classes: &Classes) -> Option<Self> {
        let train = input.train?;
        let points = input.test.unwrap_or(train);
        if train.rows.n_rows() < 3 || points.rows.n_rows() == 0 {
            return None;
        }
        let fitted = train.rows.select(&spaced(train.rows.n_rows(), MAX_FITTED));
        let shown = spaced(points.rows.n_rows(), MAX_POINTS);
        let rows = points.rows.select(&shown);
        let preprocess = dot_preprocessor(input, train.rows);
        let raw = Plane::of(&preprocess.apply(&fitted), &preprocess.apply(&rows));
        let learned = Plane::of(
            &input.model.transform_rows(&fitted),
            &input.model.transform_rows(&rows),
        );
        let class = points.labels.map(|labels| {
            let codes = classes.codes(labels);
            shown.iter().map(|&row| codes[row as usize]).collect()
        });
        Some(Self {
            of_test: input.test.is_some(),
            row: shown,
            n_rows: points.rows.n_rows(),
            n_fitted: fitted.n_rows(),
            n_train: train.rows.n_rows(),
            class,
            raw,
            learned,
        })
    }
}
