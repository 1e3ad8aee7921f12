//! Training with HDSL, as the command line does.

use crate::errors::to_python;
use crate::labels::{as_in_a_file, order_in_a_file};
use crate::listening::{Facts, Listeners, Watch, listen};
use crate::matrix::{Csr, Parts, row_numbers, view};
use crate::model::Model;
use crate::settings::Settings;
use hdsl::data::{IndexBase, RowsView};
use hdsl::model::{Validation, ValidationMeasure};
use hdsl::observer::Event;
use hdsl::train::hold_out;
use hdsl::{
    ActiveSet, CancelToken, Labeled, Labels, Preprocessor, Rows, TrainConfig, TrainData, Trained,
    Triplets,
};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::ControlFlow;

/// Classes as Python has them: sorted names, and one code per row.
pub(crate) type Classes<'py> = (Vec<String>, Bound<'py, PyArray1<i64>>);

/// Three columns of row numbers, and weights.
pub(crate) type Given<'py> = (
    [Bound<'py, PyArray1<i64>>; 3],
    Option<Bound<'py, PyArray1<f64>>>,
);

/// Learns a similarity, as `hdsl train` does. Returns the model and facts about the run.
#[pyfunction]
#[pyo3(signature = (
    settings, x, classes=None, *, valid=None, triplets=None, class_weights=None, names=None, start=None,
    keep_preprocess=false, each=None, snapshots=false, progress=None, n_threads=1
))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn train<'py>(
    py: Python<'py>,
    settings: Settings,
    x: Csr<'py>,
    classes: Option<Classes<'py>>,
    valid: Option<(Csr<'py>, Classes<'py>)>,
    triplets: Option<Given<'py>>,
    class_weights: Option<Vec<f64>>,
    names: Option<Vec<String>>,
    start: Option<&Bound<'py, Model>>,
    keep_preprocess: bool,
    each: Option<Py<PyAny>>,
    snapshots: bool,
    progress: Option<Py<PyAny>>,
    n_threads: usize,
) -> PyResult<(Model, Bound<'py, PyDict>)> {
    let config = settings.config()?;
    let checkpoint = config.checkpoint.clone();
    let x = x.parts()?;
    let class_weights = match (&classes, class_weights) {
        (Some((names, _)), Some(weights)) => Some(weights_of_classes(names, &weights)?),
        _ => None,
    };
    let labels = classes.map(|c| to_labels(c, x.n_rows())).transpose()?;
    let valid = valid.as_ref().map(to_labeled).transpose()?;
    let triplets = triplets.map(|t| to_triplets(t, x.n_rows())).transpose()?;
    let (mut first, mut preprocessor) = (None, None);
    if let Some(start) = start {
        let model = start.get().get();
        first = Some(model.path().at(model.chosen()).map_err(to_python)?);
        preprocessor = keep_preprocess.then(|| model.preprocess().clone());
    }
    let listeners = Listeners {
        each,
        progress,
        snapshots,
    };
    let (trained, interrupted) = py.detach(|| {
        let problem = Problem {
            x,
            labels,
            valid,
            class_weights,
            names,
            triplets,
            start: first,
            preprocessor,
            config,
        };
        listen(&listeners, n_threads, |watch| {
            problem.train(&mut Listening {
                watch,
                facts: Facts::default(),
            })
        })
    })?;
    // Python has the model now; saving it is up to the caller.
    if let (Some(checkpoint), false) = (&checkpoint, interrupted) {
        checkpoint.remove();
    }
    let facts = facts(py, &trained)?;
    facts.set_item("interrupted", interrupted)?;
    Ok((Model::new(trained.model), facts))
}

/// Facts about a training besides its model.
pub(crate) fn facts<'py>(py: Python<'py>, trained: &Trained) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    facts.set_item("stop", trained.run.stop.to_string())?;
    facts.set_item("objective", trained.run.objective)?;
    facts.set_item("gap", trained.run.gap.value())?;
    facts.set_item("gap_certified", trained.run.gap.is_certified())?;
    facts.set_item("iterations", trained.run.iterations)?;
    facts.set_item("valid_error", trained.run.valid_error)?;
    let measure = trained.model.parts().config.validation_measure();
    facts.set_item("valid_measure", measure.map(ValidationMeasure::name))?;
    facts.set_item("n_triplets", trained.run.n_triplets)?;
    facts.set_item("train_seconds", trained.run.train_seconds)?;
    let grid: Vec<(f64, f64, usize, usize, Option<f64>, String)> = trained
        .grid
        .iter()
        .map(|p| {
            let stop = p.stop.to_string();
            (
                p.lambda,
                p.objective,
                p.iterations,
                p.chosen,
                p.valid_error,
                stop,
            )
        })
        .collect();
    facts.set_item("grid", grid)?;
    facts.set_item("choice", choice(py, trained)?)?;
    Ok(facts)
}

/// What was chosen on held-out rows.
fn choice<'py>(py: Python<'py>, trained: &Trained) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(choice) = &trained.choice else {
        return Ok(None);
    };
    let entries = PyDict::new(py);
    entries.set_item("n_held_out", choice.n_held_out)?;
    entries.set_item("base_error", choice.base_error)?;
    entries.set_item("learned_error", choice.learned_error)?;
    entries.set_item("max_iter", choice.iterations)?;
    Ok(Some(entries))
}

/// The input of a run, for a thread without the interpreter.
struct Problem<'a> {
    x: Parts<'a>,
    labels: Option<Labels>,
    valid: Option<(Parts<'a>, Labels)>,
    class_weights: Option<Vec<f64>>,
    names: Option<Vec<String>>,
    triplets: Option<Triplets>,
    start: Option<ActiveSet>,
    preprocessor: Option<Preprocessor>,
    config: TrainConfig,
}

/// Rows and labels of one side of a split.
struct Part {
    rows: Rows,
    labels: Labels,
}

impl Part {
    fn labeled(&self) -> Labeled<'_> {
        by_position(self.rows.view(), Some(&self.labels))
    }
}

/// Columns of a matrix are numbered from 0.
pub(crate) fn by_position<'a>(rows: RowsView<'a>, labels: Option<&'a Labels>) -> Labeled<'a> {
    Labeled {
        rows,
        labels,
        index_base: IndexBase::Zero,
    }
}

impl Problem<'_> {
    fn train(self, observer: &mut dyn hdsl::Observer) -> PyResult<Trained> {
        let x = view(self.x)?;
        self.config.preprocess.check(x).map_err(to_python)?;
        let mut split = None;
        if let (Validation::Holdout(fraction), Some(labels)) =
            (self.config.validation, &self.labels)
        {
            let (learn, held) = hold_out(labels, fraction, self.config.seed).map_err(to_python)?;
            let part = |which: &[u32]| Part {
                rows: x.select(which),
                labels: labels.select(which),
            };
            split = Some((part(&learn), part(&held)));
        }
        let (train, valid) = match (&split, &self.valid) {
            (Some((learn, held)), _) => (learn.labeled(), Some(held.labeled())),
            (None, Some((rows, labels))) => (
                by_position(x, self.labels.as_ref()),
                Some(by_position(view(*rows)?, Some(labels))),
            ),
            (None, None) => (by_position(x, self.labels.as_ref()), None),
        };
        let known = self.preprocessor.as_ref();
        let known = known.map(|known| extended(known, train.rows)).transpose()?;
        let mut data = TrainData::new(train);
        data.valid = valid;
        data.names = self.names.as_deref();
        data.triplets = self.triplets.as_ref();
        data.start = self.start.as_ref();
        data.preprocessor = known.as_ref();
        data.class_weights = self.class_weights.as_deref();
        let mut trained = hdsl::train(&data, &self.config, observer).map_err(to_python)?;
        trained.model = trained.model.numbered_by_position();
        Ok(trained)
    }
}

/// A known preprocessing, extended by the maxima of features that it does not contain. Term statistics stay as they are:
/// they are those of all features.
pub(crate) fn extended(known: &Preprocessor, rows: RowsView<'_>) -> PyResult<Preprocessor> {
    let mut maxima: std::collections::BTreeMap<u32, f64> =
        Preprocessor::fit(known.kind(), rows).maxima().collect();
    maxima.extend(known.maxima());
    let n_features = rows.n_features().max(known.n_features());
    let (maxima, terms) = (maxima.into_iter().collect(), known.term_statistics());
    Preprocessor::from_parts(known.kind(), n_features, maxima, terms).map_err(to_python)
}

/// The weights of classes, by the codes of the labels.
fn weights_of_classes(names: &[String], weights: &[f64]) -> PyResult<Vec<f64>> {
    if weights.len() != names.len() {
        return Err(PyValueError::new_err(format!(
            "there are {} class weights for {} classes",
            weights.len(),
            names.len()
        )));
    }
    let mut ordered = vec![1.0; names.len()];
    for (&place, &weight) in order_in_a_file(names).iter().zip(weights) {
        ordered[place as usize] = weight;
    }
    Ok(ordered)
}

/// Passes events on to Python, which may stop the run.
pub(crate) struct Listening<'a, 'w> {
    pub(crate) watch: &'a mut Watch<'w>,
    pub(crate) facts: Facts,
}

impl hdsl::Observer for Listening<'_, '_> {
    fn on_event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        tell(self.watch, &mut self.facts, event)
    }

    fn cancel_token(&self) -> CancelToken<'_> {
        self.watch.cancel()
    }
}

fn tell(watch: &mut Watch<'_>, facts: &mut Facts, event: &Event<'_>) -> ControlFlow<()> {
    match *event {
        Event::LambdaStarted {
            lambda: scale,
            base,
            preprocess,
            ..
        } => {
            *facts = Facts {
                scale,
                base,
                preprocess: preprocess.name(),
                ..Facts::default()
            };
        }
        Event::Evaluated { error, .. } => facts.valid_error = Some(error),
        Event::Iteration(now, active) => {
            *facts = Facts {
                iteration: now.iter,
                objective: now.objective,
                gap: now.gap.value(),
                n_atoms: active.len(),
                n_features: active.n_features(),
                seconds: now.seconds,
                ..*facts
            };
            return watch.tell(*facts, Some(active));
        }
        _ => {}
    }
    watch.asked()
}

/// Validation rows and their labels.
pub(crate) fn to_labeled<'a>(
    (x, classes): &'a (Csr<'_>, Classes<'_>),
) -> PyResult<(Parts<'a>, Labels)> {
    let x = x.parts()?;
    Ok((x, to_labels(classes.clone(), x.n_rows())?))
}

pub(crate) fn to_labels((names, codes): Classes<'_>, n_rows: usize) -> PyResult<Labels> {
    let codes: Vec<u32> = codes
        .try_readonly()?
        .as_array()
        .iter()
        .map(|&code| code as u32)
        .collect();
    if codes.len() != n_rows {
        return Err(PyValueError::new_err(format!(
            "there are {} labels for {n_rows} rows",
            codes.len()
        )));
    }
    if codes.iter().any(|&code| code as usize >= names.len()) {
        return Err(PyValueError::new_err("a label has no class"));
    }
    as_in_a_file(names, &codes).map_err(to_python)
}

pub(crate) fn to_triplets((columns, weights): Given<'_>, n_rows: usize) -> PyResult<Triplets> {
    let [anchor, near, far] = [
        row_numbers(&columns[0], n_rows, "triplets[:, 0]")?,
        row_numbers(&columns[1], n_rows, "triplets[:, 1]")?,
        row_numbers(&columns[2], n_rows, "triplets[:, 2]")?,
    ];
    let weights = weights.map(|w| w.to_vec()).transpose()?;
    let mut triplets = Triplets::new();
    for (t, &anchor) in anchor.iter().enumerate() {
        let weight = weights.as_ref().map_or(1.0, |w| w[t]);
        if weight > 0.0 {
            triplets.push_weighted(anchor, near[t], far[t], weight);
        }
    }
    Ok(triplets)
}

/// The triplets that a training with these settings mines from labels, as one array of three columns.
#[pyfunction]
#[pyo3(signature = (settings, x, classes, n_threads))]
pub(crate) fn mine<'py>(
    py: Python<'py>,
    settings: Settings,
    x: Csr<'py>,
    classes: Classes<'py>,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let config = settings.config()?;
    let x = x.parts()?;
    let labels = to_labels(classes, x.n_rows())?;
    let listeners = Listeners {
        each: None,
        progress: None,
        snapshots: false,
    };
    let (flat, interrupted) = py.detach(|| {
        listen(&listeners, n_threads, |watch| {
            let rows = view(x)?;
            config.preprocess.check(rows).map_err(to_python)?;
            let rows = Preprocessor::fit(config.preprocess, rows).apply(rows);
            let (labels, seed) = (Some(&labels), config.seed);
            let mined = config
                .triplets
                .triplets(&rows, labels, seed, watch.cancel())
                .map_err(to_python)?;
            Ok(mined
                .iter()
                .flat_map(|(a, n, f)| [a, n, f].map(i64::from))
                .collect::<Vec<i64>>())
        })
    })?;
    if interrupted {
        return Err(PyKeyboardInterrupt::new_err(()));
    }
    Ok(flat.into_pyarray(py))
}
