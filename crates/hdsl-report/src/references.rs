//! Similarities without learning that the model is compared with: the dot product, the cosine and the tf-idf cosine.

use crate::input::Input;
use hdsl::{Preprocess, Preprocessor, Rows};

/// The dot product of preprocessed rows. After `unit`, `tfidf` and `bm25`, rows have length 1, and it is a cosine.
pub(crate) struct Reference {
    pub(crate) name: &'static str,
    pub(crate) preprocessor: Preprocessor,
}

/// What rows are compared for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The dot product is compared elsewhere, unless the model has a base.
    Errors,
    /// All references, with the weights of BM25.
    Rankings,
}

impl Reference {
    /// The references, fitted on training rows. Those whose preprocessing does not take the values of the rows are left out:
    /// tf-idf and BM25 are for values of at least 0.
    pub(crate) fn all(
        input: &Input<'_>,
        train: &Rows,
        others: &Rows,
        purpose: Purpose,
    ) -> Vec<Self> {
        let is_ranking = purpose == Purpose::Rankings;
        let own = input.model.preprocess().kind();
        let candidates = [
            ("dot product", own, is_ranking || input.model.base() > 0.0),
            ("cosine", Preprocess::Unit, true),
            ("tf-idf cosine", Preprocess::Tfidf, true),
            ("BM25-weighted cosine", Preprocess::Bm25, is_ranking),
        ];
        candidates
            .into_iter()
            .filter(|(_, kind, wanted)| {
                *wanted && kind.check(train).is_ok() && kind.check(others).is_ok()
            })
            .map(|(name, kind, _)| Self {
                name,
                preprocessor: Preprocessor::fit(kind, train),
            })
            .collect()
    }
}
