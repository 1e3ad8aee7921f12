//! Learning for one setting, and the choice among settings.

use super::measures::standard_error;
use super::supervision::Supervision;
use super::{Collection, INNER, Quality, RankConfig, RankSetting, evaluate, folds, mean, outside};
use crate::atoms::ActiveSet;
use crate::cancel::CancelToken;
use crate::data::{Columns, IndexBase, Preprocessor, Rows};
use crate::error::{Error, Result};
use crate::knn::PredictionRule;
use crate::model::{BaseWeight, Model, ModelParts, TrainConfig};
use crate::observer::UntilCancelled;
use crate::parallel;
use crate::similarity::{BilinearModel, Dot, Normalization, Similarity};
use crate::solver::SolverParams;
use crate::train::ensemble::{average, by_weight};
use crate::train::{Labeled, TrainData, train};
use crate::triplets::TripletSource;

/// A setting, and the quality of the ranking of each query in the cross-validation, in the order of its folds.
type Tried = (RankSetting, Vec<Quality>);

/// A test collection, ready to learn from.
pub(super) struct Learner<'a> {
    collection: &'a Collection<'a>,
    pub(super) config: &'a RankConfig,
    preprocessor: Preprocessor,
    documents: Rows,
    queries: Rows,
    /// Documents, queries and both sides of the pairs: the rows of the triplets.
    all: Rows,
    supervision: Supervision<'a>,
}

impl<'a> Learner<'a> {
    pub(super) fn new(collection: &'a Collection<'a>, config: &'a RankConfig) -> Result<Self> {
        let kind = config.preprocess;
        let preprocessor = Preprocessor::fit(kind, collection.documents);
        let prepare = |rows: &Rows| -> Result<Rows> {
            kind.check(rows)?;
            Ok(preprocessor.apply(rows))
        };
        let (documents, queries) = (prepare(collection.documents)?, prepare(collection.queries)?);
        let pairs = match collection.pairs {
            Some((left, right)) => Some((prepare(left)?, prepare(right)?)),
            None => None,
        };
        let mut all = documents.clone();
        all.append(queries.view());
        if let Some((left, right)) = &pairs {
            all.append(left.view());
            all.append(right.view());
        }
        let supervision = Supervision::new(collection, &documents, &queries, pairs.as_ref())?;
        Ok(Self {
            collection,
            config,
            preprocessor,
            documents,
            queries,
            all,
            supervision,
        })
    }

    /// The settings to choose from, numbers of iterations and base shares aside: λ and the weight of the pairs, the most
    /// promising first.
    fn grid(&self) -> Vec<(f64, f64)> {
        let quarter = Columns::of(self.documents.view()).len() as f64 / 4.0;
        let lambdas = match self.config.lambda.is_empty() {
            true => vec![quarter, quarter / 2.0, 2.0 * quarter],
            false => self.config.lambda.clone(),
        };
        let weights = match self.collection.pairs {
            Some(_) => self.config.pair_weights.clone(),
            None => vec![0.0],
        };
        let with = |weight: f64| lambdas.iter().map(move |&lambda| (lambda, weight));
        weights.iter().copied().flat_map(with).collect()
    }

    /// The setting of the highest mean nDCG@10 in a cross-validation over these queries, of those tried before the token
    /// is cancelled; the first of equals. One with an unusual weight of the pairs or number of iterations has to be better
    /// than the best usual one by more than the standard error of the difference, since many settings are compared on few
    /// queries. None if the nDCG@10 of the plain similarity is as high.
    pub(super) fn choose(
        &self,
        queries: &[u32],
        cancel: CancelToken<'_>,
    ) -> Result<Option<RankSetting>> {
        let plain = mean(&self.evaluate(&Dot, queries)?, |quality| quality.ndcg);
        let (mut usual, mut other): (Option<Tried>, Option<Tried>) = (None, None);
        for (lambda, pair_weight) in self.grid() {
            let tried = match self.cross_validated(queries, lambda, pair_weight, cancel) {
                Err(Error::Stopped) => break,
                tried => tried?,
            };
            for tried in tried {
                let best = match self.is_usual(&tried.0) {
                    true => &mut usual,
                    false => &mut other,
                };
                let highest = best.as_ref().map_or(plain, |best| best.0.ndcg);
                if tried.0.ndcg > highest {
                    *best = Some(tried);
                }
            }
        }
        let is_clear = |(other, ranked): &Tried| match &usual {
            Some((usual, before)) => other.ndcg - usual.ndcg > standard_error(ranked, before),
            None => true,
        };
        let best = other.filter(is_clear).or(usual);
        Ok(best.map(|tried| tried.0))
    }

    /// Whether the weight of the pairs and the number of iterations are the first in their lists.
    fn is_usual(&self, setting: &RankSetting) -> bool {
        let weight = self.config.pair_weights.first();
        let is_first = self.collection.pairs.is_none() || weight == Some(&setting.pair_weight);
        is_first && self.config.max_iter.first() == Some(&setting.max_iter)
    }

    /// Every number of iterations and base share at one λ and weight of the pairs.
    fn cross_validated(
        &self,
        queries: &[u32],
        lambda: f64,
        pair_weight: f64,
        cancel: CancelToken<'_>,
    ) -> Result<Vec<Tried>> {
        let (counts, shares) = (&self.config.max_iter, &self.config.base_shares);
        let mut found = vec![Vec::new(); counts.len() * shares.len()];
        for fold in folds(queries, self.config.inner_folds, self.config.seed, INNER) {
            let rest = outside(queries, &fold);
            let learned = self.atoms(&rest, lambda, pair_weight, counts, cancel)?;
            let each = learned
                .iter()
                .flat_map(|active| shares.iter().map(move |share| (active, *share)));
            for ((active, share), found) in each.zip(&mut found) {
                let similarity = self.on_base(active, lambda, share)?;
                found.extend(self.ranked_by(&similarity, &fold)?);
            }
        }
        let each = counts
            .iter()
            .flat_map(|&max_iter| shares.iter().map(move |&share| (max_iter, share)));
        let setting = |((max_iter, base_share), found): (_, Vec<Quality>)| {
            let setting = RankSetting {
                lambda,
                pair_weight,
                max_iter,
                base_share,
                ndcg: mean(&found, |quality| quality.ndcg),
            };
            (setting, found)
        };
        Ok(each.zip(found).map(setting).collect())
    }

    /// The quality of rankings of some queries by the similarity learned from others; by the plain one without a setting.
    pub(super) fn quality(
        &self,
        queries: &[u32],
        setting: Option<&RankSetting>,
        which: &[u32],
        cancel: CancelToken<'_>,
    ) -> Result<Vec<Quality>> {
        let Some(setting) = setting else {
            return self.evaluate(&Dot, which);
        };
        let active = self.learned(queries, setting, cancel)?;
        let similarity = self.on_base(&active, setting.lambda, setting.base_share)?;
        self.ranked_by(&similarity, which)
    }

    /// The learned part for one setting.
    fn learned(
        &self,
        queries: &[u32],
        setting: &RankSetting,
        cancel: CancelToken<'_>,
    ) -> Result<ActiveSet> {
        let counts = [setting.max_iter];
        let mut learned = self.atoms(
            queries,
            setting.lambda,
            setting.pair_weight,
            &counts,
            cancel,
        )?;
        Ok(learned.remove(0))
    }

    /// The average of several models, which differ in their wrong answers, after each of these numbers of iterations.
    fn atoms(
        &self,
        queries: &[u32],
        lambda: f64,
        pair_weight: f64,
        counts: &[usize],
        cancel: CancelToken<'_>,
    ) -> Result<Vec<ActiveSet>> {
        let members = parallel::try_map(self.config.n_estimators, 1, |member| {
            let seed = self.config.seed.wrapping_add(member as u64);
            let triplets = self.supervision.triplets(queries, pair_weight, seed);
            let mut params = SolverParams::new(lambda);
            params.max_iter = counts.iter().copied().max().unwrap_or(0);
            params.seed = seed;
            let mut observer = UntilCancelled(cancel);
            let run = params.build()?.fit(&self.all, &triplets, &mut observer)?;
            cancel.check()?;
            let last = run.path.len();
            let iterate = |&count: &usize| run.path.at(count.min(last));
            counts
                .iter()
                .map(iterate)
                .collect::<Result<Vec<ActiveSet>>>()
        });
        let members: Vec<Vec<ActiveSet>> = members?;
        let averaged = (0..counts.len()).map(|at| {
            let of: Vec<&ActiveSet> = members.iter().map(|member| &member[at]).collect();
            average(&of)
        });
        averaged.collect()
    }

    /// A learned part on top of β <x, x'>, where β is the share times the mean of S_M(d, d) over the documents.
    fn on_base(&self, active: &ActiveSet, lambda: f64, share: f64) -> Result<BilinearModel> {
        let learned = BilinearModel::from_active(self.documents.n_features(), lambda, active)?;
        let mapped = learned.transform_rows(&self.documents);
        let total: f64 = mapped.values().iter().map(|z| z * z).sum();
        let base = share * total / self.documents.n_rows().max(1) as f64;
        if !(base.is_finite() && base > 0.0) {
            return Err(Error::data(
                "no document has a feature of the learned similarity: documents and queries have too little in common",
            ));
        }
        learned.with_base(base)
    }

    /// The quality of the rankings of some queries, under cosine normalization.
    fn ranked_by(&self, similarity: &BilinearModel, which: &[u32]) -> Result<Vec<Quality>> {
        self.evaluate(&Normalization::Cosine.of(similarity), which)
    }

    fn evaluate(&self, similarity: &dyn Similarity, which: &[u32]) -> Result<Vec<Quality>> {
        let judgments = self.collection.judgments;
        evaluate(similarity, &self.documents, &self.queries, which, judgments)
    }

    /// The similarity learned from some queries as a model that takes raw rows; the plain one without a setting.
    pub(super) fn model(&self, queries: &[u32], setting: Option<&RankSetting>) -> Result<Model> {
        let Some(setting) = setting else {
            return self.plain_model();
        };
        let active = self.learned(queries, setting, CancelToken::NEVER)?;
        let base = self
            .on_base(&active, setting.lambda, setting.base_share)?
            .base();
        let triplets = self
            .supervision
            .triplets(queries, setting.pair_weight, self.config.seed);
        let names = self.collection.names.unwrap_or(&[]).iter();
        let n_features = self.documents.n_features();
        let mut config = TrainConfig::new(setting.lambda);
        config.preprocess = self.config.preprocess;
        config.base = BaseWeight::Value(base);
        config.triplets = TripletSource::Ranking {
            count: triplets.len(),
        };
        config.max_iter = setting.max_iter;
        config.n_estimators = self.config.n_estimators;
        config.seed = self.config.seed;
        config.rule = PredictionRule {
            normalization: Normalization::Cosine,
            ..PredictionRule::default()
        };
        Model::new(ModelParts {
            base,
            preprocess: self.preprocessor.clone(),
            names: (0..).zip(names.cloned()).take(n_features).collect(),
            config,
            ..ModelParts::new(n_features, setting.lambda, by_weight(&active)?)
        })
    }

    /// The cosine of preprocessed rows as a model: a base alone.
    fn plain_model(&self) -> Result<Model> {
        let mut config = TrainConfig::new(1.0);
        config.lambda = Vec::new();
        config.max_iter = 0;
        config.preprocess = self.config.preprocess;
        config.base = BaseWeight::Value(1.0);
        config.seed = self.config.seed;
        config.rule.normalization = Normalization::Cosine;
        let mut data = TrainData::new(Labeled {
            rows: self.collection.documents.view(),
            labels: None,
            index_base: IndexBase::One,
        });
        data.names = self.collection.names;
        Ok(train(&data, &config, &mut ())?.model)
    }
}
