//! Model files: safetensors, with the scalars as one JSON document in its metadata. `docs/format.md` has the layout.

use super::config::TrainConfig;
use super::saved::{Model, ModelParts, TracePoint, TrainingRows};
use super::tensors::{Read, Tensors};
use crate::atoms::{Atom, Path, Sign, Step};
use crate::data::{Labels, Preprocess, Preprocessor, RecordVectorizer, Rows, TermStatistics};
use crate::error::{Error, Result};
use crate::observer::Stop;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

/// The version of the model format, the only one that is written and read. Version 1 was not safetensors.
const FORMAT_VERSION: u32 = 2;

impl Model {
    /// Reads a model file.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        match std::fs::read(&path) {
            Ok(bytes) => Self::from_bytes(path, &bytes),
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    /// Reads a model from memory; the path is only for messages. Any bytes are safe to try: nothing in them is
    /// executed, and memory is allocated only for data that is there.
    pub fn from_bytes(path: impl Into<PathBuf>, bytes: &[u8]) -> Result<Self> {
        decode(bytes).map_err(|reason| Error::File {
            path: path.into(),
            reason,
        })
    }

    /// The model as a file. The same model always gives the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let metadata = serde_json::to_string(&Metadata::of(self.parts()))
            .expect("the metadata has string keys only");
        encode(self, &metadata).to_bytes(metadata)
    }

    /// The model as JSON text: everything in the file, and the atoms and weights of the iterate in use, which the file
    /// only implies. Numbers that are not finite become `null`.
    pub fn to_json(&self) -> String {
        let parts = self.parts();
        let similarity = self.similarity();
        let active: Vec<(Atom, f64)> = similarity.iter().collect();
        let evaluation = |(at, error): &_| json!({ "iteration": at, "valid_error": error });
        let arrays = json!({
            "maxima": parts.preprocess.maxima().collect::<Vec<_>>(),
            "document_frequencies": parts.preprocess.term_statistics().map(|terms| terms.document_frequencies),
            "classes": parts.classes,
            "n_atoms": active.len(),
            "n_features_used": similarity.n_features_used(),
            "atoms": weighted(&active),
            "names": parts.names.iter().cloned().collect::<BTreeMap<_, _>>(),
            "evaluations": parts.evaluations.iter().map(evaluation).collect::<Vec<_>>(),
            "path": { "start": weighted(parts.path.start()), "steps": parts.path.steps() },
            "trace": parts.trace,
            "vectorizer": self.vectorizer().map(|vectorizer| vectorizer.as_ref()),
            "n_training_rows": self.training_rows().map(|training| training.rows.n_rows()),
        });
        let metadata = Metadata::of(parts);
        serde_json::to_string_pretty(&Contents { metadata, arrays }).expect("all keys are strings")
    }
}

/// Everything as one JSON object.
#[derive(Serialize)]
struct Contents {
    #[serde(flatten)]
    metadata: Metadata,
    #[serde(flatten)]
    arrays: Value,
}

fn weighted(atoms: &[(Atom, f64)]) -> Vec<WeightedAtom> {
    let one = |&(atom, weight): &_| WeightedAtom { atom, weight };
    atoms.iter().map(one).collect()
}

#[derive(Serialize)]
struct WeightedAtom {
    #[serde(flatten)]
    atom: Atom,
    weight: f64,
}

/// What is not an array.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    format_version: u32,
    n_features: usize,
    scale: f64,
    /// Left out if it is 0, as in files of versions without a base.
    #[serde(default, skip_serializing_if = "is_zero")]
    base: f64,
    preprocess: Preprocess,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    term_statistics: Option<TermStatistics>,
    zero_based: bool,
    chosen: usize,
    gap_certified: Option<f64>,
    config: TrainConfig,
    stop: Option<Stop>,
    numbered_by_position: bool,
}

fn is_zero(base: &f64) -> bool {
    *base == 0.0
}

impl Metadata {
    fn of(parts: &ModelParts) -> Self {
        Self {
            format_version: FORMAT_VERSION,
            n_features: parts.n_features,
            scale: parts.scale,
            base: parts.base,
            preprocess: parts.preprocess.kind(),
            term_statistics: parts.preprocess.term_statistics(),
            zero_based: parts.zero_based,
            chosen: parts.chosen,
            gap_certified: parts.gap_certified,
            config: parts.config.clone(),
            stop: parts.stop,
            numbered_by_position: parts.numbered_by_position,
        }
    }

    /// Checks the version before anything else, since other versions have other fields.
    fn parse(text: &str) -> Read<Self> {
        let refused = |e: serde_json::Error| format!("the metadata of the model are invalid: {e}");
        let metadata: Value = serde_json::from_slice(text.as_bytes()).map_err(refused)?;
        let version = &metadata["format_version"];
        if *version != FORMAT_VERSION {
            return Err(format!(
                "a model of format version {version}, but this version of hdsl reads {FORMAT_VERSION}"
            ));
        }
        serde_json::from_value(metadata).map_err(refused)
    }
}

/// The arrays of a model, with the checksum of everything.
fn encode(model: &Model, metadata: &str) -> Tensors<'static> {
    let parts = model.parts();
    let mut tensors = Tensors::default();
    encode_path(&parts.path, &mut tensors);
    let (maxima, evaluations) = (|| parts.preprocess.maxima(), &parts.evaluations);
    tensors.put("maxima_features", maxima().map(|m| [m.0]));
    tensors.put("maxima", maxima().map(|m| [m.1]));
    if let Some(terms) = parts.preprocess.term_statistics() {
        let frequencies = || terms.document_frequencies.iter();
        tensors.put("frequency_features", frequencies().map(|f| [f.0]));
        tensors.put("frequencies", frequencies().map(|f| [f.1]));
    }
    tensors.put("trace", parts.trace.iter().map(|t| [t.objective, t.gap]));
    tensors.put("evaluation_iterations", evaluations.iter().map(|e| [e.0]));
    tensors.put("evaluation_errors", evaluations.iter().map(|e| [e.1]));
    tensors.put_json("names", &parts.names);
    tensors.put_json("classes", &parts.classes);
    if let Some(vectorizer) = model.vectorizer() {
        tensors.put_json("vectorizer", vectorizer.as_ref());
    }
    if let Some(training) = model.training_rows() {
        encode_rows(training, &mut tensors);
    }
    tensors.seal(metadata);
    tensors
}

fn decode(bytes: &[u8]) -> Read<Model> {
    if bytes.starts_with(b"HDSL") {
        return Err("a model of format version 1, which is no longer read: train it again".into());
    }
    let (metadata, tensors) = Tensors::from_bytes(bytes)?;
    let mut header = Metadata::parse(&metadata)?;
    let text = |e: Error| e.to_string();
    let maxima = tensors.get_pairs("maxima_features", "maxima")?;
    if let Some(terms) = &mut header.term_statistics {
        terms.document_frequencies = tensors.get_pairs("frequency_features", "frequencies")?;
    }
    let (kind, n, terms) = (header.preprocess, header.n_features, header.term_statistics);
    let trace = tensors.get("trace")?.into_iter();
    let parts = ModelParts {
        n_features: header.n_features,
        scale: header.scale,
        base: header.base,
        preprocess: Preprocessor::from_parts(kind, n, maxima, terms).map_err(text)?,
        zero_based: header.zero_based,
        names: tensors.get_json("names")?,
        path: decode_path(&tensors)?,
        chosen: header.chosen,
        trace: trace
            .map(|[objective, gap]| TracePoint { objective, gap })
            .collect(),
        gap_certified: header.gap_certified,
        evaluations: tensors.get_pairs("evaluation_iterations", "evaluation_errors")?,
        config: header.config,
        stop: header.stop,
        numbered_by_position: header.numbered_by_position,
        classes: tensors.get_json("classes")?,
    };
    let mut model = Model::new(parts).map_err(text)?;
    if tensors.has("vectorizer") {
        let vectorizer: RecordVectorizer = tensors.get_json("vectorizer")?;
        model = model.with_vectorizer(Arc::new(vectorizer)).map_err(text)?;
    }
    if tensors.has("row_lengths") {
        let training = decode_rows(model.n_features(), &tensors)?;
        model = model.with_rows(training).map_err(text)?;
    }
    // Whatever does not belong in a model is refused here: unknown arrays, lists of unequal lengths, unused atoms.
    if encode(&model, &metadata) != tensors {
        return Err("its arrays are not those that hdsl writes for this model".into());
    }
    Ok(model)
}

/// The length, the features and the values of each row; labels as codes and names, and ids.
fn encode_rows(training: &TrainingRows, tensors: &mut Tensors<'_>) {
    let rows = &training.rows;
    tensors.put("row_lengths", rows.iter().map(|row| [row.nnz() as u32]));
    tensors.put("row_features", rows.indices().iter().map(|&i| [i]));
    tensors.put("row_values", rows.values().iter().map(|&v| [v]));
    if let Some(labels) = &training.labels {
        tensors.put("row_classes", labels.codes().iter().map(|&code| [code]));
        tensors.put_json("row_class_names", &labels.names());
    }
    if let Some(ids) = &training.ids {
        tensors.put_json("row_ids", ids);
    }
}

fn decode_rows(n_features: usize, tensors: &Tensors<'_>) -> Read<TrainingRows> {
    fn flat<T>(list: Vec<[T; 1]>) -> Vec<T> {
        list.into_iter().map(|[element]| element).collect()
    }
    let text = |e: Error| e.to_string();
    let mut starts = vec![0usize];
    for [length] in tensors.get::<u32, 1>("row_lengths")? {
        let last = starts.last().copied().unwrap_or(0);
        starts.push(
            last.checked_add(length as usize)
                .ok_or("rows of no length")?,
        );
    }
    let indices = flat(tensors.get("row_features")?);
    let values = flat(tensors.get("row_values")?);
    let rows = Rows::from_parts(n_features, starts, indices, values).map_err(text)?;
    let labels = match tensors.has("row_classes") {
        false => None,
        true => {
            let codes = flat(tensors.get("row_classes")?);
            let names = tensors.get_json("row_class_names")?;
            Some(Labels::from_codes(names, codes).map_err(text)?)
        }
    };
    let ids = match tensors.has("row_ids") {
        false => None,
        true => Some(tensors.get_json("row_ids")?),
    };
    TrainingRows::new(rows, labels, ids).map_err(text)
}

/// The distinct atoms in order of first use, the weights of those at the start, and the steps in terms of the atoms'
/// numbers. Steps of one atom name it twice, and those without γ have 0.
fn encode_path(path: &Path, tensors: &mut Tensors<'_>) {
    let mut atoms: Vec<Atom> = Vec::new();
    let mut numbers = HashMap::new();
    let mut number = |atom: Atom| {
        *numbers.entry(atom).or_insert_with(|| {
            atoms.push(atom);
            atoms.len() as u32 - 1
        })
    };
    for &(atom, _) in path.start() {
        number(atom);
    }
    let (mut steps, mut gammas) = (Vec::new(), Vec::new());
    for step in path.steps() {
        let (kind, to, from, gamma) = match *step {
            Step::Forward { atom, gamma } => (0, atom, atom, gamma),
            Step::Away { atom, gamma } => (1, atom, atom, gamma),
            Step::Drop { atom } => (2, atom, atom, 0.0),
            Step::Pairwise { to, from, gamma } => (3, to, from, gamma),
            Step::Swap { to, from } => (4, to, from, 0.0),
        };
        steps.push([kind, number(to), number(from)]);
        gammas.push([gamma]);
    }
    let minus = |atom: &Atom| u32::from(atom.sign() == Sign::Minus);
    tensors.put("atoms", atoms.iter().map(|a| [a.i(), a.j(), minus(a)]));
    tensors.put("start_weights", path.start().iter().map(|s| [s.1]));
    tensors.put("steps", steps);
    tensors.put("gammas", gammas);
}

fn decode_path(tensors: &Tensors<'_>) -> Read<Path> {
    let text = |e: Error| e.to_string();
    let atoms = tensors.get("atoms")?.into_iter().map(|[i, j, minus]| {
        let sign = if minus == 0 { Sign::Plus } else { Sign::Minus };
        Atom::new(i, j, sign).map_err(text)
    });
    let atoms = atoms.collect::<Read<Vec<Atom>>>()?;
    let atom = |number: u32| {
        let n = atoms.len();
        let atom = atoms.get(number as usize).copied();
        atom.ok_or_else(|| format!("a step has atom {number}, but there are {n} atoms"))
    };
    let weights = tensors.get("start_weights")?.into_iter();
    let start = weights.zip(&atoms).map(|([weight], &atom)| (atom, weight));
    let steps = tensors.get("steps")?.into_iter();
    let steps = steps.zip(tensors.get("gammas")?).map(|(step, [gamma])| {
        let [kind, to, from] = step;
        let (to, from) = (atom(to)?, atom(from)?);
        Ok(match kind {
            0 => Step::Forward { atom: to, gamma },
            1 => Step::Away { atom: to, gamma },
            2 => Step::Drop { atom: to },
            3 => Step::Pairwise { to, from, gamma },
            4 => Step::Swap { to, from },
            _ => return Err(format!("a step has the unknown kind {kind}")),
        })
    });
    let steps = steps.collect::<Read<Vec<Step>>>()?;
    Path::new(start.collect(), steps).map_err(text)
}
