//! Test rows ranked against training rows by the dot product and by the similarity of the model: nearest neighbors and
//! predictions. Computed once, and used by several sections.
//!
//! If the model has a base, the base alone takes the place of the dot product, with the preprocessing and the prediction rule
//! of the model: then the comparison shows what learning changed.

use crate::format::count;
use crate::input::Input;
use crate::references::{Purpose, Reference};
use hdsl::knn::{Evaluation, classify, evaluate, evaluate_similarity};
use hdsl::{
    BilinearModel, Dot, KnnIndex, Labels, Model, Neighbor, Normalization, PredictionRule,
    Preprocessor, Result, Rows, Similarity, Vote,
};

/// Neighbors listed per row, unless more of them vote.
const LISTED: usize = 6;

/// The neighbors of every test row under one similarity, and the preprocessed rows.
pub(crate) struct Ranked {
    pub(crate) train: Rows,
    pub(crate) test: Rows,
    pub(crate) neighbors: Vec<Vec<Neighbor>>,
    /// The predicted class of each test row, if training rows have classes.
    pub(crate) predicted: Option<Labels>,
    /// The errors of the predictions, if test rows have classes, too.
    pub(crate) evaluation: Option<Evaluation>,
}

/// The rankings under both similarities.
pub(crate) struct Rankings {
    /// By the dot product over all features, or by the base alone.
    pub(crate) dot: Ranked,
    /// By the similarity of the model.
    pub(crate) learned: Ranked,
    /// The errors of other similarities without learning, if rows have classes.
    pub(crate) references: Vec<(&'static str, Evaluation)>,
    /// The base alone, if the model has one.
    pub(crate) base: Option<BilinearModel>,
    /// The rule for the learned similarity; k is at most the number of training rows.
    pub(crate) rule: PredictionRule,
}

impl Rankings {
    /// `None` unless there are training and test rows.
    pub(crate) fn of(input: &Input<'_>) -> Result<Option<Self>> {
        let (Some(train), Some(test)) = (input.train, input.test) else {
            return Ok(None);
        };
        let n_train = train.rows.n_rows();
        if n_train == 0 || test.rows.n_rows() == 0 {
            return Ok(None);
        }
        let rule = PredictionRule {
            k: input.rule.k.min(n_train),
            ..input.rule
        };
        let (labels, truth) = (train.labels, test.labels);
        let listed = LISTED.max(rule.k).min(n_train);
        let rank = |similarity: &dyn Similarity,
                    rule: PredictionRule,
                    preprocess: &dyn Fn(&Rows) -> Rows|
         -> Result<Ranked> {
            let (train, test) = (preprocess(train.rows), preprocess(test.rows));
            let normalized = rule.normalization.of(similarity);
            let neighbors = KnnIndex::new(&normalized, &train).neighbors(&test, listed)?;
            let predicted = labels
                .map(|labels| classify(similarity, &train, labels, &test, &rule))
                .transpose()?;
            let evaluation = match (&predicted, truth) {
                (Some(predicted), Some(truth)) => Some(evaluate(predicted, truth)?),
                _ => None,
            };
            Ok(Ranked {
                train,
                test,
                neighbors,
                predicted,
                evaluation,
            })
        };
        let preprocessor = dot_preprocessor(input, train.rows);
        let majority = PredictionRule::nearest(rule.k);
        let model = input.model;
        let base = match model.base() > 0.0 {
            true => Some(BilinearModel::base_only(model.n_features(), model.base())?),
            false => None,
        };
        let dot = match &base {
            Some(base) => rank(base, rule, &|rows| model.prepare(rows))?,
            None => rank(&Dot, majority, &|rows| preprocessor.apply(rows))?,
        };
        let references = match (labels, truth) {
            (Some(labels), Some(truth)) => {
                reference_errors(input, [labels, truth], majority, &dot)?
            }
            _ => Vec::new(),
        };
        Ok(Some(Self {
            dot,
            references,
            learned: rank(model.similarity(), rule, &|rows| model.prepare(rows))?,
            base,
            rule,
        }))
    }

    /// How many errors of the base alone the learned part corrects, and how many it adds. `None` without a base or
    /// classes.
    pub(crate) fn changes(&self, input: &Input<'_>) -> Option<(usize, usize)> {
        self.base.as_ref()?;
        let truth = input.test?.labels?;
        let (base, both) = (
            self.dot.predicted.as_ref()?,
            self.learned.predicted.as_ref()?,
        );
        let count = |wrong: &Labels, right: &Labels| {
            let changed = |&row: &usize| {
                wrong.name(row) != truth.name(row) && right.name(row) == truth.name(row)
            };
            (0..truth.len()).filter(changed).count()
        };
        Some((count(base, both), count(both, base)))
    }

    /// The errors under the dot product and under the learned similarity, if rows have classes.
    pub(crate) fn evaluations(&self) -> Option<(&Evaluation, &Evaluation)> {
        let dot = self.dot.evaluation.as_ref()?;
        Some((dot, self.learned.evaluation.as_ref()?))
    }
}

/// The errors of the similarities without learning that are not ranked for other sections.
fn reference_errors(
    input: &Input<'_>,
    [labels, truth]: [&Labels; 2],
    rule: PredictionRule,
    dot: &Ranked,
) -> Result<Vec<(&'static str, Evaluation)>> {
    let (Some(train), Some(test)) = (input.train, input.test) else {
        return Ok(Vec::new());
    };
    let own = input.model.preprocess().kind();
    let references = Reference::all(input, train.rows, test.rows, Purpose::Errors).into_iter();
    let error = |reference: Reference| {
        // The dot product of rows with this preprocessing is known already.
        if let Some(known) = &dot.evaluation
            && input.model.base() == 0.0
            && reference.preprocessor.kind() == own
        {
            return Ok((reference.name, known.clone()));
        }
        let [train, test] = [train.rows, test.rows].map(|rows| reference.preprocessor.apply(rows));
        let evaluation = evaluate_similarity(&Dot, &train, labels, &test, truth, &rule)?;
        Ok((reference.name, evaluation))
    };
    references.map(error).collect()
}

/// What the similarity of the model is compared with.
pub(crate) fn baseline(model: &Model) -> &'static str {
    match model.base() > 0.0 {
        true => "base alone",
        false => "dot product",
    }
}

/// The kind of preprocessing of the model, fitted on all features instead of the used ones, for the dot product.
pub(crate) fn dot_preprocessor(input: &Input<'_>, train: &Rows) -> Preprocessor {
    Preprocessor::fit(input.model.preprocess().kind(), train)
}

/// The rule in a few words, such as `majority vote of 3 nearest neighbors`.
pub(crate) fn rule_name(rule: PredictionRule) -> String {
    let neighbors = count(rule.k, "nearest neighbor");
    let vote = match rule.vote {
        Vote::Majority => format!("majority vote of {neighbors}"),
        Vote::Weighted => format!("similarity-weighted vote of {neighbors}"),
        Vote::Squared => format!("vote of {neighbors}, weighted by squared similarity"),
        Vote::ClassMean => "highest mean similarity to a class".into(),
    };
    match rule.normalization {
        Normalization::Dot => vote,
        Normalization::Cosine => vote + ", cosine normalization",
    }
}

/// How classes are predicted: a paragraph for the first section.
pub(crate) fn prediction_rule(model: &Model, rule: PredictionRule) -> String {
    let k = rule.k;
    let class = match rule.vote {
        Vote::Majority => format!("the majority class of its {k} nearest training rows"),
        Vote::Weighted | Vote::Squared => {
            let sum = match rule.vote {
                Vote::Squared => "squared similarities",
                _ => "similarities",
            };
            format!("the class with the largest sum of {sum} among its {k} nearest training rows")
        }
        Vote::ClassMean => {
            "the class whose training rows have the highest mean similarity to it".into()
        }
    };
    let normalized = match rule.normalization {
        Normalization::Dot => "",
        Normalization::Cosine => {
            ", with similarities normalized to cosines: S(x, z) / √(S(x, x) S(z, z))"
        }
    };
    let dot_rule = match rule == PredictionRule::nearest(k) || model.base() > 0.0 {
        true => String::new(),
        false => format!(
            " For the dot product, the prediction is the majority class of the {k} nearest training rows."
        ),
    };
    format!("The prediction for a test row is {class}{normalized}.{dot_rule}")
}

/// Which of the listed neighbors vote, if rows have classes, and how they are ordered: for the section about neighbors.
pub(crate) fn voting_neighbors(rule: PredictionRule, has_classes: bool) -> String {
    let k = rule.k;
    let voters = match rule.vote {
        _ if !has_classes => String::new(),
        Vote::Majority => format!("The first {k} vote on the class"),
        Vote::Weighted => format!("The first {k} vote on the class, weighted by similarity"),
        Vote::Squared => {
            format!("The first {k} vote on the class, weighted by squared similarity")
        }
        Vote::ClassMean => "The prediction is the class with the highest mean similarity".into(),
    };
    let voters = match voters.is_empty() {
        true => voters,
        false => voters + ". ",
    };
    let order = match rule.normalization {
        Normalization::Dot => "",
        Normalization::Cosine => {
            "Neighbors are ordered by cosine; scores are shown without normalization."
        }
    };
    (voters + order).trim_end().to_owned()
}
