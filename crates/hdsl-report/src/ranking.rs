//! Who is near whom: test rows ranked among training rows, by the dot product and by the learned similarity. Found
//! once, and used by the sections on errors and neighbours.

use crate::input::Input;
use hdsl::knn::{Evaluation, evaluate, vote};
use hdsl::{Dot, KnnIndex, Labels, Neighbors, Result, Rows, Scaling, Similarity};

/// How many neighbours are listed for a row, unless more of them vote.
const LISTED: usize = 6;

/// The neighbours of every test row under one similarity.
pub(crate) struct Ranked {
    pub(crate) near: Neighbors,
    /// The class each test row is given, where training rows have classes.
    pub(crate) predicted: Option<Labels>,
    /// How often that is wrong, where test rows have classes too.
    pub(crate) evaluation: Option<Evaluation>,
}

/// Both rankings, and the rows they were made from.
pub(crate) struct Rankings {
    /// Rows scaled for the dot product: all features.
    pub(crate) plain_train: Rows,
    pub(crate) plain_test: Rows,
    /// Rows scaled for the model.
    pub(crate) train: Rows,
    pub(crate) test: Rows,
    pub(crate) dot: Ranked,
    pub(crate) learned: Ranked,
    /// How many neighbours vote: fewer than asked for if there are not so many training rows.
    pub(crate) k: usize,
}

impl Rankings {
    /// Nothing unless there are training and test rows.
    pub(crate) fn of(input: &Input<'_>) -> Result<Option<Self>> {
        let (Some(train), Some(test)) = (input.train, input.test) else {
            return Ok(None);
        };
        if train.rows.n_rows() == 0 || test.rows.n_rows() == 0 {
            return Ok(None);
        }
        let k = input.k.min(train.rows.n_rows());
        let listed = LISTED.max(k).min(train.rows.n_rows());
        let scaling = plain_scaling(input, train.rows);
        let (plain_train, plain_test) = (scaling.apply(train.rows), scaling.apply(test.rows));
        let (scaled, asked) = (
            input.model.prepare(train.rows),
            input.model.prepare(test.rows),
        );
        let rank = |similarity: &dyn Similarity, items: &Rows, queries: &Rows| -> Result<Ranked> {
            let near = KnnIndex::new(similarity, items).neighbors(queries, listed)?;
            let predicted = match train.labels {
                None => None,
                Some(labels) => {
                    let codes = near.iter().map(|list| vote(&list[..k], labels)).collect();
                    Some(Labels::from_codes(labels.names().to_vec(), codes)?)
                }
            };
            let evaluation = match (&predicted, test.labels) {
                (Some(predicted), Some(truth)) => Some(evaluate(predicted, truth)?),
                _ => None,
            };
            Ok(Ranked {
                near,
                predicted,
                evaluation,
            })
        };
        let dot = rank(&Dot, &plain_train, &plain_test)?;
        let learned = rank(input.model.similarity(), &scaled, &asked)?;
        Ok(Some(Self {
            plain_train,
            plain_test,
            train: scaled,
            test: asked,
            dot,
            learned,
            k,
        }))
    }
}

/// The scaling of the model's kind, fitted on all features instead of those in use, as the dot product needs it.
pub(crate) fn plain_scaling(input: &Input<'_>, train: &Rows) -> Scaling {
    Scaling::fit(input.model.scaling().kind(), train)
}
