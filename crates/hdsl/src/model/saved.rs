//! The model that training makes and everything else loads.

use super::config::TrainConfig;
use crate::atoms::Path;
use crate::data::{
    Columns, Labels, Preprocess, Preprocessor, RecordVectorizer, Rows, RowsView, SparseRow,
};
use crate::error::{Error, Result};
use crate::knn::PredictionRule;
use crate::observer::Stop;
use crate::similarity::{BilinearModel, Similarity};
use std::borrow::Cow;
use std::sync::Arc;

/// Features are numbered by `u32` and there may be at most this many.
const MAX_FEATURES: usize = u32::MAX as usize;

/// What the solver knew after a step.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct TracePoint {
    /// The objective (Eq. 1).
    pub objective: f64,
    /// The gap as the search saw it: certified or an estimate, see [`ModelParts::gap_certified`].
    pub gap: f64,
}

/// The contents of a [`Model`], before and after [`Model::new`] has checked them.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelParts {
    /// How many features the training rows had.
    pub n_features: usize,
    /// λ.
    pub scale: f64,
    /// β, the factor of the dot product that the similarity was learned on top of; 0 if there is none.
    pub base: f64,
    /// What was done to the training rows and has to be done to every other.
    pub preprocess: Preprocessor,
    /// Whether files called the first feature 0 (otherwise 1). Only for names such as `f17`.
    pub zero_based: bool,
    /// Names of features, by increasing feature; features without a name are called by their number.
    pub names: Vec<(u32, String)>,
    /// Every step of the solver.
    pub path: Path,
    /// The iterate in use.
    pub chosen: usize,
    /// One point for the start and one per step, or nothing at all.
    pub trace: Vec<TracePoint>,
    /// An upper bound of how far the last objective is from the optimum, if the search could prove one.
    pub gap_certified: Option<f64>,
    /// Validation errors, as (iteration, error), by increasing iteration.
    pub evaluations: Vec<(u32, f64)>,
    /// How the model was trained.
    pub config: TrainConfig,
    /// Why its run ended.
    pub stop: Option<Stop>,
    /// Whether the features of the training rows had a position but no written number: npz files, matrices in memory.
    pub numbered_by_position: bool,
    /// The classes of the training labels, if there were labels.
    pub classes: Option<Vec<String>>,
}

impl ModelParts {
    /// The least a model needs: no preprocessing, no names, no trace; the last iterate is in use.
    pub fn new(n_features: usize, scale: f64, path: Path) -> Self {
        Self {
            n_features,
            scale,
            base: 0.0,
            preprocess: Preprocessor::none(n_features),
            zero_based: false,
            names: Vec::new(),
            chosen: path.len(),
            path,
            trace: Vec::new(),
            gap_certified: None,
            evaluations: Vec::new(),
            config: TrainConfig::new(scale),
            stop: None,
            numbered_by_position: false,
            classes: None,
        }
    }
}

/// A learned similarity with all that is needed to use it on raw rows, and to go back to any earlier iterate.
///
/// ```
/// use hdsl::atoms::{Path, Step};
/// use hdsl::{Atom, Model, ModelParts, SparseRow};
/// let first = Atom::plus(0, 1)?;
/// let step = Step::Forward { atom: Atom::minus(2, 7)?, gamma: 0.5 };
/// let mut parts = ModelParts::new(10, 4.0, Path::new(vec![(first, 1.0)], vec![step])?);
/// parts.names = vec![(2, "tea".into()), (7, "oil".into())];
/// let model = Model::new(parts)?;
///
/// let (a, b) = (SparseRow::new(&[2], &[1.0]), SparseRow::new(&[7], &[1.0]));
/// assert_eq!(model.score(a, b), -2.0);
/// assert_eq!(model.name(7), "oil");
/// assert_eq!(model.name(0), "f1"); // unnamed, and its file counts from 1
/// assert_eq!(model.with_max_features(2)?.similarity().atoms(), [first]);
///
/// let bytes = model.to_bytes();
/// assert_eq!(Model::from_bytes("model.hdsl", &bytes)?, model);
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    parts: ModelParts,
    similarity: BilinearModel,
    vectorizer: Option<Arc<RecordVectorizer>>,
    training: Option<Arc<TrainingRows>>,
}

/// The raw rows that a model was trained on, without the features that no iterate uses where these do not matter. Predictions
/// need no other file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TrainingRows {
    /// Raw rows.
    pub rows: Rows,
    /// Their classes.
    pub labels: Option<Labels>,
    /// Their names.
    pub ids: Option<Vec<String>>,
}

impl TrainingRows {
    /// Rows with as many labels and names as there are rows.
    pub(super) fn new(
        rows: Rows,
        labels: Option<Labels>,
        ids: Option<Vec<String>>,
    ) -> Result<Self> {
        let n = rows.n_rows();
        let counts = [
            labels.as_ref().map(|labels| (labels.len(), "labels")),
            ids.as_ref().map(|ids| (ids.len(), "ids")),
        ];
        match counts.into_iter().flatten().find(|(count, _)| *count != n) {
            Some((count, what)) => Err(Error::data(format!(
                "there are {n} training rows with {count} {what}"
            ))),
            None => Ok(Self { rows, labels, ids }),
        }
    }
}

impl Model {
    /// Checks that the parts fit together. What no iterate can ever need is left out: maxima (unless row lengths
    /// depend on them) and names of features that are not on the path. With a base all features count and nothing is left
    /// out.
    pub fn new(mut parts: ModelParts) -> Result<Self> {
        let bad = |reason: String| Err(Error::Data(reason));
        let (n, n_steps) = (parts.n_features, parts.path.len());
        if n > MAX_FEATURES {
            return bad(format!(
                "there are {n} features, expected at most {MAX_FEATURES}"
            ));
        }
        let fitted = parts.preprocess.n_features();
        if fitted != n {
            return bad(format!(
                "the preprocessing was fitted to {fitted} features, but the model has {n}"
            ));
        }
        let features = parts.path.features();
        if let Some(last) = features.last().filter(|&&f| f as usize >= n) {
            return bad(format!(
                "the path uses feature {last}, but there are {n} features"
            ));
        }
        if !parts.names.is_sorted_by(|a, b| a.0 < b.0) {
            return bad("names are expected by increasing feature".into());
        }
        let n_points = parts.trace.len();
        if n_points > 0 && n_points != n_steps + 1 {
            return bad(format!(
                "the trace has {n_points} points for a path of {n_steps} steps, expected one more than steps"
            ));
        }
        let fits = |e: &&(u32, f64)| e.0 as usize <= n_steps && e.1.is_finite();
        if let Some((iteration, error)) = parts.evaluations.iter().find(|e| !fits(e)) {
            return bad(format!(
                "the validation error {error} of iteration {iteration} does not fit a path of {n_steps} steps"
            ));
        }
        if !parts.evaluations.is_sorted_by(|a, b| a.0 < b.0) {
            return bad("validation errors are expected by increasing iteration".into());
        }
        if let Some(gap) = parts.gap_certified.filter(|gap| !gap.is_finite()) {
            return bad(format!(
                "the certified gap is {gap}, expected a finite number"
            ));
        }
        parts.config.check()?;
        let active = parts.path.at(parts.chosen)?;
        let similarity = BilinearModel::on_base(n, parts.scale, &active, parts.base)?;
        if parts.base == 0.0 {
            parts.preprocess = parts.preprocess.restrict(&features);
            let on_path = Columns::from_features(parts.n_features, features);
            parts.names.retain(|n| on_path.number(n.0).is_some());
        }
        Ok(Self {
            parts,
            similarity,
            vectorizer: None,
            training: None,
        })
    }

    /// Everything the model knows.
    pub fn parts(&self) -> &ModelParts {
        &self.parts
    }

    /// The similarity of the iterate in use. It takes scaled rows, see [`Model::prepare`].
    pub fn similarity(&self) -> &BilinearModel {
        &self.similarity
    }

    /// The iterate in use.
    pub fn chosen(&self) -> usize {
        self.parts.chosen
    }

    /// β of S(x, x') = β <x, x'> + xᵀ M x', where x are preprocessed rows; 0 if the similarity is learned alone. Every iterate of
    /// the path has the same base.
    pub fn base(&self) -> f64 {
        self.parts.base
    }

    /// How many features the training rows had.
    pub fn n_features(&self) -> usize {
        self.parts.n_features
    }

    /// What is done to raw rows before the similarity sees them.
    pub fn preprocess(&self) -> &Preprocessor {
        &self.parts.preprocess
    }

    /// The path the solver took.
    pub fn path(&self) -> &Path {
        &self.parts.path
    }

    /// The same model with another iterate in use.
    pub fn at(&self, iteration: usize) -> Result<Self> {
        let mut parts = self.parts.clone();
        parts.chosen = iteration;
        self.with_parts(parts)
    }

    /// Other parts with the same vectorizer and training rows.
    pub fn with_parts(&self, parts: ModelParts) -> Result<Self> {
        Ok(Self {
            vectorizer: self.vectorizer.clone(),
            training: self.training.clone(),
            ..Self::new(parts)?
        })
    }

    /// What turns records into raw rows, if the model was trained on records.
    pub fn vectorizer(&self) -> Option<&Arc<RecordVectorizer>> {
        self.vectorizer.as_ref()
    }

    /// The same model for records. Its features are those of the vectorizer, and have their names where they have no others.
    pub fn with_vectorizer(mut self, vectorizer: Arc<RecordVectorizer>) -> Result<Self> {
        let (n, n_features) = (vectorizer.n_features(), self.parts.n_features);
        if n != n_features {
            return Err(Error::data(format!(
                "the vectorizer has {n} features, but the model has {n_features}"
            )));
        }
        self.vectorizer = Some(vectorizer);
        Ok(self)
    }

    /// The training rows, if the model contains them.
    pub fn training_rows(&self) -> Option<&TrainingRows> {
        self.training.as_deref()
    }

    /// The same model with the raw rows it was trained on.
    pub fn with_training_rows(
        self,
        raw: RowsView<'_>,
        labels: Option<Labels>,
        ids: Option<Vec<String>>,
    ) -> Result<Self> {
        let by_value = matches!(self.preprocess().kind(), Preprocess::Max | Preprocess::None);
        let mut rows = Rows::new(self.parts.n_features);
        match self.parts.base == 0.0 && by_value {
            false => rows.append(raw),
            // What becomes of a value does not depend on the other values of the row.
            true => {
                let features = self.parts.path.features();
                let on_path = Columns::from_features(self.parts.n_features, features);
                for row in raw.iter() {
                    let some = row.iter().filter(|entry| on_path.number(entry.0).is_some());
                    let (indices, values): (Vec<u32>, Vec<f64>) = some.unzip();
                    rows.push(SparseRow::new(&indices, &values));
                }
            }
        }
        self.with_rows(TrainingRows::new(rows, labels, ids)?)
    }

    /// The same model without its training rows, for where they are stored otherwise.
    pub fn without_training_rows(mut self) -> Self {
        self.training = None;
        self
    }

    /// The same model with training rows as a file has them.
    pub(super) fn with_rows(mut self, training: TrainingRows) -> Result<Self> {
        let (n, n_features) = (training.rows.n_features(), self.parts.n_features);
        if n != n_features {
            return Err(Error::data(format!(
                "the training rows have {n} features, but the model has {n_features}"
            )));
        }
        self.training = Some(Arc::new(training));
        Ok(self)
    }

    /// The latest iterate, not after the one in use, whose learned part uses at most `max` features.
    pub fn with_max_features(&self, max: usize) -> Result<Self> {
        self.within(max, "features", |(_, features)| features)
    }

    /// The latest iterate, not after the one in use, that uses at most `max` atoms: the learned dimensions of
    /// [`Model::transform_rows`].
    pub fn with_max_atoms(&self, max: usize) -> Result<Self> {
        self.within(max, "atoms", |(atoms, _)| atoms)
    }

    fn within(&self, max: usize, what: &str, size: fn((usize, usize)) -> usize) -> Result<Self> {
        let counts = self.parts.path.counts().into_iter();
        let sizes: Vec<usize> = counts.map(size).take(self.parts.chosen + 1).collect();
        match sizes.iter().rposition(|&size| size <= max) {
            Some(iteration) => self.at(iteration),
            None => {
                let least = sizes.iter().min().copied().unwrap_or(0);
                Err(Error::Data(format!(
                    "at most {max} {what} are asked for, but no iterate uses fewer than {least}"
                )))
            }
        }
    }

    /// Raw rows, scaled as the training rows were. [`Preprocessor::check`] tells whether they have values for it.
    pub fn prepare<'a>(&self, raw: impl Into<RowsView<'a>>) -> Rows {
        self.parts.preprocess.apply(raw)
    }

    /// The similarity of two raw rows, S(x, x') = β <x, x'> + xᵀ M x' of the preprocessed rows. It has no normalization; that of
    /// the prediction rule is applied by `model.rule().normalization.of(&model)`.
    pub fn score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        let [a, b] = [a, b].map(|row| self.parts.preprocess.apply_row(row));
        let (a, b) = (SparseRow::new(&a.0, &a.1), SparseRow::new(&b.0, &b.1));
        self.similarity.score(a, b)
    }

    /// Raw rows in the space where the similarity is the inner product, see [`BilinearModel::transform_rows`].
    pub fn transform_rows<'a>(&self, raw: impl Into<RowsView<'a>>) -> Rows {
        self.similarity.transform_rows(&self.prepare(raw))
    }

    /// What to call a feature: its name, or `f` and the number it has in files.
    pub fn name(&self, feature: u32) -> Cow<'_, str> {
        match self.parts.names.binary_search_by_key(&feature, |n| n.0) {
            Ok(at) => Cow::Borrowed(&self.parts.names[at].1),
            Err(_) => {
                let vectorizer = self.vectorizer.as_ref();
                if let Some(name) = vectorizer.and_then(|v| v.feature_name(feature)) {
                    return Cow::Owned(name);
                }
                let number = u64::from(feature) + u64::from(!self.parts.zero_based);
                Cow::Owned(format!("f{number}"))
            }
        }
    }

    /// How a class is predicted from the nearest neighbors under this model.
    ///
    /// ```
    /// use hdsl::atoms::Path;
    /// use hdsl::{Atom, PredictionRule, Model, ModelParts, Vote};
    /// let path = Path::new(vec![(Atom::plus(0, 1)?, 1.0)], vec![])?;
    /// let model = Model::new(ModelParts::new(2, 1.0, path))?;
    /// assert_eq!(model.rule(), PredictionRule::default());
    /// let weighted = PredictionRule { vote: Vote::Weighted, ..PredictionRule::nearest(15) };
    /// let model = model.with_rule(&weighted)?;
    /// assert_eq!(Model::from_bytes("model.hdsl", &model.to_bytes())?.rule(), weighted);
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn rule(&self) -> PredictionRule {
        self.parts.config.rule
    }

    /// The same model with another prediction rule.
    pub fn with_rule(&self, rule: &PredictionRule) -> Result<Self> {
        let mut parts = self.parts.clone();
        parts.config.rule = *rule;
        self.with_parts(parts)
    }

    /// The same model, with [`ModelParts::numbered_by_position`] set.
    pub fn numbered_by_position(mut self) -> Self {
        self.parts.numbered_by_position = true;
        self
    }
}

/// A model compares raw rows: both maps scale first.
impl Similarity for Model {
    fn score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        Model::score(self, a, b)
    }

    fn queries<'a>(&self, raw: &'a Rows) -> Cow<'a, Rows> {
        Cow::Owned(self.transform_rows(raw))
    }
}
