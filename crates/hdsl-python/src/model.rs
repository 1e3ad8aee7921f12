//! A learned similarity as a Python object.

use crate::errors::to_python;
use crate::matrix::{Csr, CsrArrays, row_numbers, to_arrays, view};
use crate::work::detached;
use hdsl::data::{OutputFile, RowsView};
use hdsl::{Normalization, Preprocess, Preprocessor, Sign, SparseRow};
use numpy::{IntoPyArray, PyArray1};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::io::Write;
use std::path::PathBuf;

/// The library's model; immutable, so that threads may share it.
#[pyclass(frozen, eq, module = "hdsl._core")]
#[derive(PartialEq)]
pub(crate) struct Model {
    model: hdsl::Model,
}

impl Model {
    pub(crate) fn new(model: hdsl::Model) -> Self {
        Self { model }
    }

    pub(crate) fn get(&self) -> &hdsl::Model {
        &self.model
    }

    fn vectorizer(&self) -> PyResult<&hdsl::data::RecordVectorizer> {
        let missing = || PyValueError::new_err("the model was not trained on records");
        self.model
            .vectorizer()
            .map(AsRef::as_ref)
            .ok_or_else(missing)
    }

    /// Raw rows, preprocessed after a check of their values.
    fn prepared(&self, rows: RowsView<'_>) -> hdsl::Result<hdsl::Rows> {
        self.model.preprocess().check(rows)?;
        Ok(self.model.prepare(rows))
    }
}

/// Two index arrays and an array of weights, such as the entries of M.
type Entries<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<f64>>,
);

fn entries<'py>(
    py: Python<'py>,
    list: impl ExactSizeIterator<Item = (u32, u32, f64)>,
) -> Entries<'py> {
    let (mut rows, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (i, j, value) in list {
        rows.push(i64::from(i));
        columns.push(i64::from(j));
        values.push(value);
    }
    (
        rows.into_pyarray(py),
        columns.into_pyarray(py),
        values.into_pyarray(py),
    )
}

#[pymethods]
impl Model {
    /// A model from the bytes of a model file; `name` serves for messages.
    #[staticmethod]
    #[pyo3(signature = (bytes, name = "the pickled model".into()))]
    fn from_bytes(bytes: &[u8], name: PathBuf) -> PyResult<Self> {
        hdsl::Model::from_bytes(name, bytes)
            .map(Self::new)
            .map_err(to_python)
    }

    /// An iterate of a running fit: atoms as (i, j, sign, weight), with the preprocessing of `rows`.
    #[staticmethod]
    #[pyo3(signature = (rows, preprocess, scale, atoms, base = 0.0))]
    fn snapshot(
        rows: Csr<'_>,
        preprocess: &str,
        scale: f64,
        atoms: Vec<(u32, u32, f64, f64)>,
        base: f64,
    ) -> PyResult<Self> {
        let rows = view(rows.parts()?)?;
        let total: f64 = atoms.iter().map(|a| a.3).sum();
        let make = || {
            let weighted = atoms.iter().map(|&(i, j, sign, weight)| {
                let sign = if sign > 0.0 { Sign::Plus } else { Sign::Minus };
                Ok((hdsl::Atom::new(i, j, sign)?, weight / total))
            });
            let path = hdsl::atoms::Path::new(weighted.collect::<hdsl::Result<_>>()?, Vec::new())?;
            let mut parts = hdsl::ModelParts::new(rows.n_features(), scale, path);
            let kind: Preprocess = preprocess.parse()?;
            kind.check(rows)?;
            parts.preprocess = Preprocessor::fit(kind, rows);
            parts.base = base;
            hdsl::Model::new(parts)
        };
        make().map(Self::new).map_err(to_python)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.model.to_bytes())
    }

    #[staticmethod]
    fn read(path: PathBuf) -> PyResult<Self> {
        hdsl::Model::read(path).map(Self::new).map_err(to_python)
    }

    /// Writes the file atomically.
    fn write(&self, path: PathBuf) -> PyResult<()> {
        let bytes = self.model.to_bytes();
        let mut file = OutputFile::create(&path).map_err(to_python)?;
        file.fill(|file| file.write_all(&bytes))
            .and_then(|()| file.commit())
            .map_err(to_python)
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let py = slf.py();
        let make = slf.get_type().getattr("from_bytes")?;
        Ok((make, (slf.get().to_bytes(py),)))
    }

    /// A model is immutable, so a copy is the model itself.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    #[getter]
    fn n_features(&self) -> usize {
        self.model.n_features()
    }

    #[getter]
    fn scale(&self) -> f64 {
        self.model.parts().scale
    }

    /// β of β <x, z> + x' M z.
    #[getter]
    fn base(&self) -> f64 {
        self.model.base()
    }

    /// The same learned part on another base.
    fn with_base(&self, base: f64) -> PyResult<Self> {
        let mut parts = self.model.parts().clone();
        parts.base = base;
        self.model
            .with_parts(parts)
            .map(Self::new)
            .map_err(to_python)
    }

    #[getter]
    fn n_atoms(&self) -> usize {
        self.model.similarity().atoms().len()
    }

    #[getter]
    fn preprocess(&self) -> &'static str {
        self.model.preprocess().kind().name()
    }

    /// The iterate in use.
    #[getter]
    fn chosen(&self) -> usize {
        self.model.chosen()
    }

    /// The configuration it was trained with, as JSON.
    #[getter]
    fn config(&self) -> String {
        serde_json::to_string(&self.model.parts().config).expect("plain data becomes JSON")
    }

    /// Where its triplets came from, unless they were passed with the data.
    #[getter]
    fn triplets(&self) -> Option<String> {
        let source = &self.model.parts().config.triplets;
        source.is_mined().then(|| source.to_string())
    }

    /// Why its run ended.
    #[getter]
    fn stop(&self) -> Option<String> {
        self.model.parts().stop.map(|stop| stop.to_string())
    }

    /// The call of the program that trains it again, if there is one.
    #[getter]
    fn command_line(&self) -> Option<String> {
        self.model
            .command_line(&hdsl::model::CommandFiles::default())
    }

    /// The same model with another prediction rule; what is not given stays.
    fn with_rule(
        &self,
        k: usize,
        vote: Option<&str>,
        normalization: Option<&str>,
    ) -> PyResult<Self> {
        let own = self.model.rule();
        let change = || {
            let rule = hdsl::PredictionRule {
                k,
                vote: vote.map_or(Ok(own.vote), str::parse)?,
                normalization: normalization.map_or(Ok(own.normalization), str::parse)?,
            };
            match rule == own {
                true => Ok(self.model.clone()),
                false => self.model.with_rule(&rule),
            }
        };
        change().map(Self::new).map_err(to_python)
    }

    #[getter]
    fn classes(&self) -> Option<Vec<String>> {
        self.model.parts().classes.clone()
    }

    #[getter]
    fn names(&self) -> Vec<(u32, String)> {
        let parts = self.model.parts();
        if !parts.names.is_empty() || self.model.vectorizer().is_none() {
            return parts.names.clone();
        }
        let features = match parts.base > 0.0 {
            true => (0..parts.n_features as u32).collect(),
            false => parts.path.features(),
        };
        let name = |feature: u32| (feature, self.model.name(feature).into_owned());
        features.into_iter().map(name).collect()
    }

    /// The columns that become features and what each is used as, if the model takes records.
    #[getter]
    fn columns(&self) -> Option<Vec<(String, &'static str)>> {
        let columns = self.model.vectorizer()?.columns();
        Some(
            columns
                .map(|(name, role)| (name.to_owned(), role.name()))
                .collect(),
        )
    }

    /// Whether records are one text each.
    #[getter]
    fn takes_texts(&self) -> bool {
        self.model.vectorizer().is_some_and(|v| v.takes_texts())
    }

    /// Raw rows of texts.
    fn vectorize_texts<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<String>,
        n_threads: usize,
    ) -> PyResult<CsrArrays<'py>> {
        let vectorizer = self.vectorizer()?;
        let rows = detached(py, n_threads, || {
            vectorizer.transform_texts(&texts).map_err(to_python)
        })?;
        Ok(to_arrays(py, &rows))
    }

    /// Raw rows of a table: one list of cells per column.
    fn vectorize_table<'py>(
        &self,
        py: Python<'py>,
        table: Vec<Vec<String>>,
        n_threads: usize,
    ) -> PyResult<CsrArrays<'py>> {
        let vectorizer = self.vectorizer()?;
        let rows = detached(py, n_threads, || {
            vectorizer
                .transform_table("X".as_ref(), &table)
                .map_err(to_python)
        })?;
        Ok(to_arrays(py, &rows))
    }

    /// The raw training rows and their classes, if the model contains them.
    #[expect(clippy::type_complexity, reason = "a tuple for one call")]
    fn training_rows<'py>(
        &self,
        py: Python<'py>,
    ) -> Option<(
        CsrArrays<'py>,
        Option<(Vec<String>, Bound<'py, PyArray1<i64>>)>,
    )> {
        let training = self.model.training_rows()?;
        let classes = training.labels.as_ref().map(|labels| {
            let codes: Vec<i64> = labels.codes().iter().map(|&c| c.into()).collect();
            (labels.names().to_vec(), codes.into_pyarray(py))
        });
        Some((to_arrays(py, &training.rows), classes))
    }

    /// The same model with other names, one per feature.
    fn with_names(&self, names: Vec<String>) -> PyResult<Self> {
        let mut parts = self.model.parts().clone();
        // The model leaves out those that it does not need.
        parts.names = (0..parts.n_features as u32).zip(names).collect();
        self.model
            .with_parts(parts)
            .map(Self::new)
            .map_err(to_python)
    }

    fn at_iteration(&self, iteration: usize) -> PyResult<Self> {
        self.model.at(iteration).map(Self::new).map_err(to_python)
    }

    fn with_max_features(&self, most: usize) -> PyResult<Self> {
        let model = self.model.with_max_features(most);
        model.map(Self::new).map_err(to_python)
    }

    fn with_max_atoms(&self, most: usize) -> PyResult<Self> {
        let model = self.model.with_max_atoms(most);
        model.map(Self::new).map_err(to_python)
    }

    /// Each iterate of the path: objective, gap, atoms, features; and validation errors where there are any.
    fn path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let parts = self.model.parts();
        let counts = parts.path.counts();
        let mut errors = vec![f64::NAN; counts.len()];
        for &(iteration, error) in &parts.evaluations {
            errors[iteration as usize] = error;
        }
        let traced = |of: fn(&hdsl::model::TracePoint) -> f64| -> Vec<f64> {
            match parts.trace.is_empty() {
                true => vec![f64::NAN; counts.len()],
                false => parts.trace.iter().map(of).collect(),
            }
        };
        let path = PyDict::new(py);
        path.set_item("objective", traced(|p| p.objective).into_pyarray(py))?;
        path.set_item("gap", traced(|p| p.gap).into_pyarray(py))?;
        let count = |of: fn(&(usize, usize)) -> usize| -> Vec<i64> {
            counts.iter().map(|c| of(c) as i64).collect()
        };
        path.set_item("n_atoms", count(|c| c.0).into_pyarray(py))?;
        path.set_item("n_features", count(|c| c.1).into_pyarray(py))?;
        path.set_item("valid_error", errors.into_pyarray(py))?;
        Ok(path)
    }

    /// The atoms: features i and j, sign, weight.
    fn atoms<'py>(&self, py: Python<'py>) -> (Entries<'py>, Bound<'py, PyArray1<i64>>) {
        let learned = self.model.similarity();
        let (atoms, weights) = (learned.atoms(), learned.weights());
        let signs: Vec<i64> = atoms
            .iter()
            .map(|a| match a.sign() {
                Sign::Plus => 1,
                Sign::Minus => -1,
            })
            .collect();
        let list = atoms.iter().zip(weights).map(|(a, &w)| (a.i(), a.j(), w));
        (entries(py, list), signs.into_pyarray(py))
    }

    /// The entries of M that are not 0, by row and then column.
    fn matrix<'py>(&self, py: Python<'py>) -> Entries<'py> {
        entries(py, self.model.similarity().matrix().into_iter())
    }

    /// Features in use with M_ii and their number of pairs, by decreasing weight.
    fn features_by_weight<'py>(&self, py: Python<'py>) -> Entries<'py> {
        let features = self.model.similarity().features_by_weight();
        let list = features
            .iter()
            .map(|f| (f.feature, f.n_pairs as u32, f.weight));
        entries(py, list)
    }

    /// Pairs of features with M_ij, by decreasing absolute value.
    fn pairs_by_weight<'py>(&self, py: Python<'py>) -> Entries<'py> {
        let pairs = self.model.similarity().pairs_by_weight();
        entries(py, pairs.iter().map(|p| (p.i, p.j, p.weight)))
    }

    /// Rows in the space in which the similarity is a dot product: one coordinate per feature if there is a base, then one
    /// per atom, or the `dim` largest of the orthogonal ones.
    #[pyo3(signature = (rows, dim, n_threads))]
    fn transform<'py>(
        &self,
        py: Python<'py>,
        rows: Csr<'py>,
        dim: Option<usize>,
        n_threads: usize,
    ) -> PyResult<(CsrArrays<'py>, usize)> {
        rows.mapped(py, n_threads, |rows| {
            let (rows, learned) = (self.prepared(rows)?, self.model.similarity());
            Ok(match dim {
                None => learned.transform_rows(&rows),
                Some(_) => learned.reduced(dim).transform_rows(&rows),
            })
        })
    }

    /// Preprocessed rows.
    #[pyo3(signature = (rows, n_threads))]
    fn prepare<'py>(
        &self,
        py: Python<'py>,
        rows: Csr<'py>,
        n_threads: usize,
    ) -> PyResult<CsrArrays<'py>> {
        let prepared = rows.mapped(py, n_threads, |rows| self.prepared(rows))?;
        Ok(prepared.0)
    }

    /// The number of coordinates of [`Model::transform`].
    #[pyo3(signature = (dim))]
    fn dim(&self, py: Python<'_>, dim: Option<usize>) -> usize {
        let n_base = match self.model.base() > 0.0 {
            true => self.model.n_features(),
            false => 0,
        };
        let n_learned = match dim {
            None => self.n_atoms(),
            Some(_) => py.detach(|| self.model.similarity().reduced(dim).dim()),
        };
        n_base + n_learned
    }

    /// The scores of rows i of `a` with rows j of `b` (of `a` if there is no `b`), normalized.
    #[pyo3(signature = (a, b, i, j, normalization, n_threads))]
    #[expect(
        clippy::too_many_arguments,
        reason = "Python calls it by position, in one place"
    )]
    fn score_pairs<'py>(
        &self,
        py: Python<'py>,
        a: Csr<'py>,
        b: Option<Csr<'py>>,
        i: &Bound<'py, PyArray1<i64>>,
        j: &Bound<'py, PyArray1<i64>>,
        normalization: &str,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let normalization: Normalization = normalization.parse().map_err(to_python)?;
        let a = a.parts()?;
        let b = b.as_ref().map(Csr::parts).transpose()?;
        let i = row_numbers(i, a.n_rows(), "i")?;
        let j = row_numbers(j, b.unwrap_or(a).n_rows(), "j")?;
        let pairs: Vec<(u32, u32)> = i.into_iter().zip(j).collect();
        let scores = detached(py, n_threads, || {
            let prepared = |rows| self.prepared(view(rows)?).map_err(to_python);
            let left = prepared(a)?;
            let right = b.map(prepared).transpose()?;
            let right = right.as_ref().unwrap_or(&left);
            let similarity = normalization.of(self.model.similarity());
            let scores = similarity.score_many(&left, right, &pairs);
            scores.map_err(to_python)
        })?;
        Ok(scores.into_pyarray(py))
    }

    /// The contributions to the normalized score of the first row of each matrix: those of the base, and those of the
    /// learned part, each as feature of the one, feature of the other, share.
    fn explain_pair<'py>(
        &self,
        py: Python<'py>,
        a: Csr<'py>,
        b: Csr<'py>,
        normalization: &str,
    ) -> PyResult<(Entries<'py>, Entries<'py>)> {
        let normalization: Normalization = normalization.parse().map_err(to_python)?;
        let (a, b) = (a.parts()?, b.parts()?);
        let prepared = |rows| self.prepared(view(rows)?).map_err(to_python);
        let (a, b) = (prepared(a)?, prepared(b)?);
        let first = |rows: &hdsl::Rows| -> (Vec<u32>, Vec<f64>) {
            match rows.n_rows() {
                0 => Default::default(),
                _ => (
                    rows.row(0).indices().to_vec(),
                    rows.row(0).values().to_vec(),
                ),
            }
        };
        let (a, b) = (first(&a), first(&b));
        let (x, z) = (SparseRow::new(&a.0, &a.1), SparseRow::new(&b.0, &b.1));
        let why = normalization.of(self.model.similarity()).explain_pair(x, z);
        let mut list = Vec::new();
        for pair in &why.pairs {
            let (i, j) = (pair.i, pair.j);
            // M_ij (a_i b_j + a_j b_i): feature i of a with j of b, then j of a with i of b.
            let (here, there) = (x.get(i) * z.get(j), x.get(j) * z.get(i));
            if i == j || there == 0.0 {
                list.push((i, j, pair.value));
            } else if here == 0.0 {
                list.push((j, i, pair.value));
            } else {
                let share = pair.value / (here + there);
                list.extend([(i, j, share * here), (j, i, share * there)]);
            }
        }
        list.sort_by(|p, q| q.2.abs().total_cmp(&p.2.abs()));
        let base = why.base.iter().map(|c| (c.feature, c.feature, c.value));
        Ok((entries(py, base), entries(py, list.into_iter())))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let learned = self.model.similarity();
        let base = match self.model.base() {
            0.0 => String::new(),
            base => format!(", on a base of {base}"),
        };
        format!(
            "<hdsl model: {} of {} features in {} atoms{base}>",
            learned.n_features_used(),
            self.model.n_features(),
            learned.atoms().len()
        )
        .into_py_any(py)
    }
}
