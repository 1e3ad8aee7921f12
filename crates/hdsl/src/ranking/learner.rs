//! Learning for one setting, and the choice among settings.

use super::supervision::Supervision;
use super::{Collection, INNER, Quality, RankConfig, RankSetting, evaluate, folds, mean, outside};
use crate::atoms::ActiveSet;
use crate::cancel::CancelToken;
use crate::data::{Columns, Preprocessor, Rows};
use crate::error::{Error, Result};
use crate::knn::PredictionRule;
use crate::model::{BaseWeight, Model, ModelParts, TrainConfig};
use crate::observer::{Observer, UntilCancelled};
use crate::parallel::prelude::*;
use crate::similarity::{BilinearModel, Normalization};
use crate::solver::SolverParams;
use crate::train::ensemble::{average, by_weight};
use crate::triplets::TripletSource;

/// A test collection, ready to learn from.
pub(super) struct Learner<'a> {
    collection: &'a Collection<'a>,
    config: &'a RankConfig,
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

    /// The settings to choose from, base shares aside: λ and the weight of the pairs.
    fn grid(&self) -> Vec<(f64, f64)> {
        let quarter = Columns::of(self.documents.view()).len() as f64 / 4.0;
        let lambdas = match self.config.lambda.is_empty() {
            true => vec![quarter / 2.0, quarter, 2.0 * quarter],
            false => self.config.lambda.clone(),
        };
        let weights = match self.collection.pairs {
            Some(_) => self.config.pair_weights.clone(),
            None => vec![0.0],
        };
        let with = |lambda: f64| weights.iter().map(move |&weight| (lambda, weight));
        lambdas.iter().copied().flat_map(with).collect()
    }

    /// The setting of the highest mean nDCG@10 in a cross-validation over these queries; the first of equals.
    pub(super) fn choose(
        &self,
        queries: &[u32],
        observer: &mut dyn Observer,
    ) -> Result<RankSetting> {
        let shares = &self.config.base_shares;
        let folds = folds(queries, self.config.inner_folds, self.config.seed, INNER);
        let mut best: Option<RankSetting> = None;
        for (lambda, pair_weight) in self.grid() {
            let mut by_share = vec![Vec::new(); shares.len()];
            for fold in &folds {
                let rest = outside(queries, fold);
                let active = self.atoms(&rest, lambda, pair_weight, observer.cancel_token())?;
                for (share, found) in shares.iter().zip(&mut by_share) {
                    let similarity = self.on_base(&active, lambda, *share)?;
                    found.extend(self.evaluate(&similarity, fold)?);
                }
            }
            for (&base_share, found) in shares.iter().zip(&by_share) {
                let ndcg = mean(found, |quality| quality.ndcg);
                if best.is_none_or(|best| ndcg > best.ndcg) {
                    best = Some(RankSetting {
                        lambda,
                        pair_weight,
                        base_share,
                        ndcg,
                    });
                }
            }
        }
        Ok(best.expect("there is a setting"))
    }

    /// The similarity learned from some queries.
    pub(super) fn learn(
        &self,
        queries: &[u32],
        setting: &RankSetting,
        cancel: CancelToken<'_>,
    ) -> Result<BilinearModel> {
        let active = self.atoms(queries, setting.lambda, setting.pair_weight, cancel)?;
        self.on_base(&active, setting.lambda, setting.base_share)
    }

    /// The average of several models, which differ in their wrong answers.
    fn atoms(
        &self,
        queries: &[u32],
        lambda: f64,
        pair_weight: f64,
        cancel: CancelToken<'_>,
    ) -> Result<ActiveSet> {
        let members = (0..self.config.n_estimators).into_par_iter().map(|member| {
            let seed = self.config.seed.wrapping_add(member as u64);
            let triplets = self.supervision.triplets(queries, pair_weight, seed);
            let mut params = SolverParams::new(lambda);
            params.max_iter = self.config.max_iter;
            params.seed = seed;
            let mut observer = UntilCancelled(cancel);
            let run = params.build()?.fit(&self.all, &triplets, &mut observer)?;
            cancel.check()?;
            run.path.at(run.path.len())
        });
        average(&members.collect::<Result<Vec<ActiveSet>>>()?)
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

    /// The quality of the rankings of some queries.
    pub(super) fn evaluate(
        &self,
        similarity: &BilinearModel,
        which: &[u32],
    ) -> Result<Vec<Quality>> {
        let cosine = Normalization::Cosine.of(similarity);
        let judgments = self.collection.judgments;
        evaluate(&cosine, &self.documents, &self.queries, which, judgments)
    }

    /// The similarity learned from some queries as a model that takes raw rows.
    pub(super) fn model(
        &self,
        queries: &[u32],
        setting: &RankSetting,
        cancel: CancelToken<'_>,
    ) -> Result<Model> {
        let active = self.atoms(queries, setting.lambda, setting.pair_weight, cancel)?;
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
        config.max_iter = self.config.max_iter;
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
}
