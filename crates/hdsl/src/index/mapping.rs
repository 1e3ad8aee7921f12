//! From raw rows to rows whose dot products are scores.

use crate::data::{Columns, Rows, RowsView, map_rows};
use crate::error::Result;
use crate::model::Model;
use crate::similarity::{Dot, Explanation, Normalization, Similarity};

/// The model of an index, and the normalization of its scores.
#[derive(Debug)]
pub(super) struct Mapping {
    pub(super) model: Model,
    pub(super) normalization: Normalization,
    /// The features that scores depend on; `None` if all do, as with a base.
    used: Option<Columns>,
}

impl Mapping {
    pub(super) fn new(model: Model, normalization: Normalization) -> Self {
        let learned = model.similarity();
        let used = (model.base() == 0.0)
            .then(|| Columns::from_features(model.n_features(), learned.features_used().to_vec()));
        Self {
            model,
            normalization,
            used,
        }
    }

    /// Raw rows as the similarity sees them: preprocessed, and without features that it does not use.
    pub(super) fn prepare(&self, raw: RowsView<'_>) -> Result<Rows> {
        self.model.preprocess().check(raw)?;
        let prepared = self.model.prepare(raw);
        let Some(used) = &self.used else {
            return Ok(prepared);
        };
        let n_features = prepared.n_features();
        Ok(map_rows(
            &prepared,
            n_features,
            || (),
            |(), row, indices, values| {
                for (feature, value) in row.iter().filter(|f| used.number(f.0).is_some()) {
                    indices.push(feature);
                    values.push(value);
                }
            },
        ))
    }

    /// Prepared rows in the space in which scores are dot products. The scores have the same bits as those of
    /// [`KnnIndex`](crate::KnnIndex), because the maps are the same.
    pub(super) fn map(&self, prepared: &Rows) -> Rows {
        let mapped = self.model.similarity().transform_rows(prepared);
        match self.normalization {
            Normalization::Dot => mapped,
            cosine => cosine.of(&Dot).items(&mapped).into_owned(),
        }
    }

    /// The contributions to the score of two prepared rows, the first of each matrix.
    pub(super) fn explain(&self, query: &Rows, item: &Rows) -> Explanation {
        let similarity = self.normalization.of(self.model.similarity());
        similarity.explain_pair(query.row(0), item.row(0))
    }
}
