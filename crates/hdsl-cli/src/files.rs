//! Files in and out: data read beside a model, models and the points of their path, outputs made before the work.

use crate::args::{
    AddFile, FormatArg, ModelArg, PathArgs, ReadArgs, ScalingArg, TrainFile, WriteFormatArg,
};
use crate::failure::Failure;
use crate::report::{Talk, count};
use hdsl::data::{OutputFile, Preprocess, write_npz, write_svmlight};
use hdsl::{
    BilinearModel, Dataset, Dot, Format, IndexBase, Labels, Model, PredictionRule, Preprocessor,
    ReadOptions, Rows, Similarity, read_dataset,
};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Reads the data files of one command: all with the same flags, and features numbered alike.
pub(crate) struct Reader<'a> {
    args: &'a ReadArgs,
    talk: &'a Talk,
    base: Option<IndexBase>,
    stdin_used: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(args: &'a ReadArgs, talk: &'a Talk) -> Self {
        Self {
            args,
            talk,
            base: None,
            stdin_used: false,
        }
    }

    /// From now on, features are numbered as in the files the model was trained on, unless a flag says otherwise.
    pub(crate) fn beside_model(&mut self, model: &Model) {
        let parts = model.parts();
        self.base = match (parts.numbered_by_position, parts.zero_based) {
            (true, _) => None,
            (false, true) => Some(IndexBase::Zero),
            (false, false) => Some(IndexBase::One),
        };
    }

    /// From now on, features are numbered as in this file, unless a flag says otherwise.
    pub(crate) fn beside(&mut self, path: &Path, data: &Dataset) {
        self.base = (!self.is_numbered_by_position(path)).then_some(data.index_base);
    }

    /// Whether features have no written number in this file, so that it says nothing about the numbers in others.
    pub(crate) fn is_numbered_by_position(&self, path: &Path) -> bool {
        match self.args.format {
            Some(format) => format == FormatArg::Npz,
            None => {
                let name = path.to_string_lossy().to_ascii_lowercase();
                name.ends_with(".npz") || name.contains(".npz.") || starts_with(path, b"PK\x03\x04")
            }
        }
    }

    /// Reads one file, and says under `-v` what was noticed.
    pub(crate) fn data(
        &mut self,
        path: &Path,
        labels: Option<&PathBuf>,
    ) -> Result<Dataset, Failure> {
        for file in [Some(path), labels.map(PathBuf::as_path)]
            .into_iter()
            .flatten()
        {
            self.claim_stdin(file)?;
        }
        let forced = match (self.args.zero_based, self.args.one_based) {
            (true, _) => Some(IndexBase::Zero),
            (_, true) => Some(IndexBase::One),
            _ => None,
        };
        let data = read_dataset(
            path,
            &ReadOptions {
                format: self.args.format.map(FormatArg::format),
                labels: labels.cloned(),
                index_base: forced.or(self.base),
                n_features: None,
            },
        )?;
        self.talk.details(&data.notes);
        self.talk.detail(format!(
            "{}: read {}, {}",
            path.display(),
            count(data.rows.n_rows(), "row"),
            count(data.rows.n_features(), "feature")
        ));
        Ok(data)
    }

    /// Reads labeled rows.
    pub(crate) fn labeled(
        &mut self,
        path: &Path,
        labels: Option<&PathBuf>,
        option: &str,
    ) -> Result<(Dataset, Labels), Failure> {
        let data = self.data(path, labels)?;
        match data.labels.clone() {
            Some(labels) => Ok((data, labels)),
            None => Err(Failure::usage(format!(
                "{}: has no labels; give a file of them, one a line, with {option}",
                path.display()
            ))),
        }
    }

    /// Puts the rows of `--add`, if there are any, behind those of the training file. Both have labels, or neither has.
    pub(crate) fn add(
        &mut self,
        data: &mut Dataset,
        path: &Path,
        labels_option: &str,
        args: &AddFile,
    ) -> Result<(), Failure> {
        let Some(more_path) = &args.add else {
            return Ok(());
        };
        let more = self.data(more_path, args.add_labels.as_ref())?;
        let unlike = |without: &Path, with: &Path, option: &str| {
            Err(Failure::usage(format!(
                "{}: has no labels, and {} has; give a file of them, one a line, with {option}",
                without.display(),
                with.display()
            )))
        };
        match (&mut data.labels, &more.labels) {
            (Some(mine), Some(others)) => mine.append(others),
            (None, None) => (),
            (None, Some(_)) => return unlike(path, more_path, labels_option),
            (Some(_), None) => return unlike(more_path, path, "--add-labels"),
        }
        data.rows.append(more.rows.view());
        data.queries = None;
        Ok(())
    }

    /// Standard input can be read only once.
    fn claim_stdin(&mut self, path: &Path) -> Result<(), Failure> {
        if path == Path::new("-") && std::mem::replace(&mut self.stdin_used, true) {
            return Err(Failure::usage(
                "standard input (`-`) is named twice, but can be read only once",
            ));
        }
        Ok(())
    }
}

fn starts_with(path: &Path, magic: &[u8]) -> bool {
    let mut start = vec![0; magic.len()];
    // Standard input is left alone: what is read from it here would be missing later.
    path != Path::new("-")
        && std::fs::metadata(path).is_ok_and(|m| m.is_file())
        && std::fs::File::open(path)
            .and_then(|mut f| f.read_exact(&mut start))
            .is_ok()
        && start == magic
}

/// Whether a file calls itself a model, by content or by name.
pub(crate) fn is_model(path: &Path) -> bool {
    starts_with(path, b"HDSL") || path.extension().is_some_and(|e| e == "hdsl")
}

/// Says under `-v` how many values stand in features beyond those the model knows; they are ignored.
pub(crate) fn note_unseen(talk: &Talk, path: &Path, rows: &Rows, n_features: usize) {
    let unseen = rows
        .indices()
        .iter()
        .filter(|&&i| i as usize >= n_features)
        .count();
    if unseen > 0 {
        talk.detail(format!(
            "{}: {} of features above the {n_features} of the training rows ignored",
            path.display(),
            count(unseen, "value")
        ));
    }
}

/// Reads a model and goes to the point of its path that is asked for.
pub(crate) fn read_model(path: &Path, at: &PathArgs, talk: &Talk) -> Result<Model, Failure> {
    let model = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .map_err(|e| Failure::usage(format!("standard input: cannot read: {e}")))?;
        Model::from_bytes(path, &bytes)?
    } else {
        Model::read(path)?
    };
    let model = match (at.max_features, at.max_atoms, at.iteration) {
        (Some(n), _, _) => model.with_max_features(n)?,
        (_, Some(n), _) => model.with_max_atoms(n)?,
        (_, _, Some(n)) => model.at(n)?,
        _ => model,
    };
    talk.detail(format!(
        "{}: iteration {} of {}, {}, {}",
        path.display(),
        model.chosen(),
        model.path().len(),
        count(model.similarity().atoms().len(), "atom"),
        count(model.similarity().n_features_used(), "feature")
    ));
    Ok(model)
}

/// A similarity and the preprocessing its rows need: a model, or the plain dot product.
pub(crate) struct Ranker {
    /// The preprocessing, fitted on training rows.
    pub(crate) preprocess: Preprocessor,
    /// The model, unless the dot product was asked for.
    pub(crate) model: Option<Model>,
}

impl Ranker {
    /// The learned similarity or the dot product.
    pub(crate) fn similarity(&self) -> &dyn Similarity {
        match &self.model {
            Some(model) => model.similarity(),
            None => &Dot,
        }
    }

    /// How the model decides classes; by default where there is none.
    pub(crate) fn rule(&self) -> PredictionRule {
        self.model
            .as_ref()
            .map_or_else(PredictionRule::default, Model::rule)
    }

    /// The learned similarity, if there is one.
    pub(crate) fn learned(&self) -> Option<&BilinearModel> {
        self.model.as_ref().map(Model::similarity)
    }

    /// Scales rows, and says under `-v` which features are unknown.
    pub(crate) fn prepare(&self, talk: &Talk, path: &Path, data: &Dataset) -> Rows {
        note_unseen(talk, path, &data.rows, self.preprocess.n_features());
        self.preprocess.apply(&data.rows)
    }
}

/// Reads a model (or takes the dot product) together with the rows neighbors are sought among.
pub(crate) fn read_ranker(
    model: &ModelArg,
    preprocess: Option<ScalingArg>,
    at: &PathArgs,
    train: &TrainFile,
    reader: &mut Reader<'_>,
) -> Result<(Ranker, Dataset), Failure> {
    let path = &train.train;
    let labels = train.train_labels.as_ref();
    match model {
        ModelArg::Identity => {
            if at.max_features.is_some() || at.max_atoms.is_some() || at.iteration.is_some() {
                return Err(Failure::usage(
                    "the plain dot product has no path: --max-features, --max-atoms and --iteration need a model",
                ));
            }
            let mut data = reader.data(path, labels)?;
            reader.beside(path, &data);
            reader.add(&mut data, path, "--train-labels", &train.more)?;
            let kind = preprocess.unwrap_or(ScalingArg::Max).kind();
            let preprocess = Preprocessor::fit(kind, &data.rows);
            Ok((
                Ranker {
                    preprocess,
                    model: None,
                },
                data,
            ))
        }
        ModelArg::File(file) => {
            if preprocess.is_some() {
                return Err(Failure::usage(
                    "--preprocess goes with `identity` only: a model brings its own preprocess",
                ));
            }
            let model = read_model(file, at, reader.talk)?;
            reader.beside_model(&model);
            let mut data = reader.data(path, labels)?;
            reader.add(&mut data, path, "--train-labels", &train.more)?;
            Ok((
                Ranker {
                    preprocess: model.preprocess().clone(),
                    model: Some(model),
                },
                data,
            ))
        }
    }
}

/// Opens an output before any work is done. That it cannot be written is then wrong use, not a failure.
pub(crate) fn create(path: &Path) -> Result<OutputFile, Failure> {
    OutputFile::create(path).map_err(|e| Failure::usage(e.to_string()))
}

/// Opens an output, standard output if no file is named.
pub(crate) fn create_or_stdout(path: Option<&PathBuf>) -> Result<OutputFile, Failure> {
    create(path.map_or(Path::new("-"), PathBuf::as_path))
}

/// `--json` and `-o -` both want standard output.
pub(crate) fn refuse_stdout_with_json(json: bool, output: Option<&Path>) -> Result<(), Failure> {
    match output {
        Some(path) if json && path == Path::new("-") => Err(Failure::usage(
            "--json and `-o -` both write to standard output; name a file after -o",
        )),
        _ => Ok(()),
    }
}

/// Fills an output and gives it its name.
pub(crate) fn write(
    mut out: OutputFile,
    fill: impl FnOnce(&mut OutputFile) -> std::io::Result<()>,
) -> Result<(), Failure> {
    out.fill(fill)?;
    out.commit()?;
    Ok(())
}

/// Rows on their way to a file, with the labels beside them where the format holds none.
pub(crate) struct RowsOutput {
    format: WriteFormatArg,
    rows: OutputFile,
    labels: Option<OutputFile>,
}

impl RowsOutput {
    /// Chooses the format by the flag or the name, and opens the files.
    pub(crate) fn create(
        path: &Path,
        format: Option<WriteFormatArg>,
        save_labels: Option<Option<&PathBuf>>,
    ) -> Result<Self, Failure> {
        let format = match format {
            Some(format) => format,
            None => guess_write_format(path)?,
        };
        let labels = match (format, save_labels) {
            (WriteFormatArg::Npz, Some(Some(labels))) => Some(create(labels)?),
            (WriteFormatArg::Npz, Some(None)) if path != Path::new("-") => {
                Some(create(&path.with_extension("labels"))?)
            }
            (WriteFormatArg::Svmlight, Some(Some(_))) => {
                return Err(Failure::usage(
                    "--save-labels goes with npz only: svmlight holds labels itself",
                ));
            }
            _ => None,
        };
        Ok(Self {
            format,
            rows: create(path)?,
            labels,
        })
    }

    /// Writes rows and labels, and returns the paths written.
    pub(crate) fn write(
        self,
        rows: &Rows,
        labels: Option<&Labels>,
        queries: Option<&[u64]>,
        base: IndexBase,
    ) -> Result<Vec<PathBuf>, Failure> {
        let mut written = vec![self.rows.path().to_owned()];
        let mut files = vec![self.rows];
        match self.format {
            WriteFormatArg::Svmlight => {
                files[0].fill(|out| write_svmlight(out, rows, labels, queries, base))?;
            }
            WriteFormatArg::Npz => {
                files[0].fill(|out| write_npz(out, rows))?;
                if let (Some(mut out), Some(labels)) = (self.labels, labels) {
                    out.fill(|out| {
                        (0..labels.len()).try_for_each(|row| writeln!(out, "{}", labels.name(row)))
                    })?;
                    written.push(out.path().to_owned());
                    files.push(out);
                }
            }
        }
        for file in files {
            file.commit()?;
        }
        Ok(written)
    }
}

fn guess_write_format(path: &Path) -> Result<WriteFormatArg, Failure> {
    let extension = path
        .extension()
        .map(|e| e.to_string_lossy().to_ascii_lowercase());
    match extension.as_deref() {
        Some("npz") => Ok(WriteFormatArg::Npz),
        Some("svm" | "svmlight" | "libsvm" | "txt" | "dat") => Ok(WriteFormatArg::Svmlight),
        _ => Err(Failure::usage(format!(
            "{}: the name says neither .svm nor .npz; give the format with --to",
            path.display()
        ))),
    }
}

impl FormatArg {
    /// The library's word for it.
    pub(crate) fn format(self) -> Format {
        match self {
            FormatArg::Svmlight => Format::Svmlight,
            FormatArg::Nips => Format::Nips,
            FormatArg::Mtx => Format::MatrixMarket,
            FormatArg::Npz => Format::Npz,
        }
    }
}

impl ScalingArg {
    /// The library's word for it.
    pub(crate) fn kind(self) -> Preprocess {
        match self {
            ScalingArg::None => Preprocess::None,
            ScalingArg::Max => Preprocess::Max,
            ScalingArg::Unit => Preprocess::Unit,
            ScalingArg::MaxUnit => Preprocess::MaxUnit,
        }
    }
}

/// Feature names, one a line. Too few of them are another data set's; more may be features that do not occur.
pub(crate) fn read_names(path: &Path, n_features: usize) -> Result<Vec<String>, Failure> {
    let names = hdsl::data::read_names(path)?;
    if names.len() < n_features {
        return Err(Failure::usage(format!(
            "{}: has {} names, expected one for each of {} features",
            path.display(),
            names.len(),
            n_features
        )));
    }
    Ok(names)
}

/// The labels of training rows that are to vote.
pub(crate) fn training_labels(train: &Dataset, path: &Path) -> Result<Labels, Failure> {
    train.labels.clone().ok_or_else(|| {
        Failure::usage(format!(
            "{}: has no labels; give a file of them, one a line, with --train-labels",
            path.display()
        ))
    })
}

/// Where a command's lines go: a file, or standard output unless that is taken by `--json`.
pub(crate) fn create_unless_json(
    json: bool,
    output: Option<&PathBuf>,
) -> Result<Option<OutputFile>, Failure> {
    refuse_stdout_with_json(json, output.map(PathBuf::as_path))?;
    match (json, output) {
        (true, None) => Ok(None),
        _ => create_or_stdout(output).map(Some),
    }
}
