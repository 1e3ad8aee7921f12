//! Who is near whom: test rows ranked among training rows, by the dot product and by the learned similarity. Found
//! once, and used by the sections on errors and neighbors.

use crate::format::count;
use crate::input::Input;
use hdsl::knn::{Evaluation, classify, evaluate};
use hdsl::{
    Dot, KnnIndex, Labels, Neighbors, Normalization, PredictionRule, Preprocessor, Result, Rows,
    Similarity, Vote,
};

/// How many neighbors are listed for a row, unless more of them vote.
const LISTED: usize = 6;

/// The neighbors of every test row under one similarity.
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
    /// How the learned similarity decides; with fewer neighbors than asked for if there are not so many training rows.
    pub(crate) rule: PredictionRule,
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
        let n_train = train.rows.n_rows();
        let rule = PredictionRule {
            k: input.rule.k.min(n_train),
            ..input.rule
        };
        let listed = LISTED.max(rule.k).min(n_train);
        let preprocess = plain_preprocess(input, train.rows);
        let (plain_train, plain_test) = (preprocess.apply(train.rows), preprocess.apply(test.rows));
        let (scaled, asked) = (
            input.model.prepare(train.rows),
            input.model.prepare(test.rows),
        );
        let rank = |similarity: &dyn Similarity,
                    rule: PredictionRule,
                    items: &Rows,
                    queries: &Rows|
         -> Result<Ranked> {
            let formed = rule.normalization.of(similarity);
            let near = KnnIndex::new(&formed, items).neighbors(queries, listed)?;
            let predicted = match train.labels {
                None => None,
                Some(labels) => Some(classify(similarity, items, labels, queries, &rule)?),
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
        let dot = rank(
            &Dot,
            PredictionRule::nearest(rule.k),
            &plain_train,
            &plain_test,
        )?;
        let learned = rank(input.model.similarity(), rule, &scaled, &asked)?;
        Ok(Some(Self {
            plain_train,
            plain_test,
            train: scaled,
            test: asked,
            dot,
            learned,
            rule,
        }))
    }
}

/// The preprocessing of the model's kind, fitted on all features instead of those in use, as the dot product needs it.
pub(crate) fn plain_preprocess(input: &Input<'_>, train: &Rows) -> Preprocessor {
    Preprocessor::fit(input.model.preprocess().kind(), train)
}

/// Who decides, in a few words.
pub(crate) fn in_short(rule: PredictionRule) -> String {
    let neighbors = count(rule.k, "neighbor");
    let who = match rule.vote {
        Vote::Majority => format!("the vote of {neighbors}"),
        Vote::Weighted => format!("the weighted vote of {neighbors}"),
        Vote::ClassMean => "the mean similarity to each class".into(),
    };
    match rule.normalization {
        Normalization::Dot => who,
        Normalization::Cosine => who + " in the cosine normalization",
    }
}

/// How a decision is made, as a sentence about a test row and as half of one about its neighbors.
pub(crate) fn in_words(rule: PredictionRule) -> (String, String) {
    let k = rule.k;
    let (row, near) = match rule.vote {
        Vote::Majority => (
            format!("A test row gets the class most of its {k} nearest training rows have"),
            format!("the first {k} vote"),
        ),
        Vote::Weighted => (
            format!(
                "A test row gets the class that weighs most among its {k} nearest training rows, each by its similarity"
            ),
            format!("the first {k} vote, each with its similarity"),
        ),
        Vote::ClassMean => (
            "A test row gets the class whose training rows are most similar to it on average"
                .into(),
            "all of them decide, by the mean of each class".into(),
        ),
    };
    let (row, near) = match rule.normalization {
        Normalization::Dot => (row, near),
        Normalization::Cosine => (
            row + ", where the similarity is divided by the lengths of both rows",
            near + "; they are ordered by the similarity divided by the lengths of both rows",
        ),
    };
    match rule == PredictionRule::nearest(k) {
        true => (row, near),
        false => (
            format!(
                "{row}. Under the plain dot product it gets the class most of its {k} nearest have"
            ),
            near,
        ),
    }
}
