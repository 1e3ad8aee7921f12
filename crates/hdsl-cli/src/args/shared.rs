//! Groups of options that several commands share.

use super::heading::{FILES, PATH, VALIDATION};
use super::{ColumnArgs, ModelArg, TextArgs, at_least_two, named, positive};
use clap::{Args, ValueHint};
use hdsl::{Format, IndexBase, Normalization, PredictionRule, Preprocess, Vote};
use std::path::PathBuf;

/// How data files are read.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct ReadArgs {
    /// Format of the data files [default: detected from content and name]
    #[arg(long, value_name = "FORMAT", value_parser = named!(Format), help_heading = FILES)]
    pub(crate) format: Option<Format>,
    /// Feature indices start at 0 [default: detected from the training file]
    #[arg(long, help_heading = FILES)]
    pub(crate) zero_based: bool,
    /// Feature indices start at 1; an index 0 is then an error
    #[arg(long, conflicts_with = "zero_based", help_heading = FILES)]
    pub(crate) one_based: bool,
}

impl ReadArgs {
    /// The index base that a flag sets.
    pub(crate) fn index_base(&self) -> Option<IndexBase> {
        match (self.zero_based, self.one_based) {
            (true, _) => Some(IndexBase::Zero),
            (_, true) => Some(IndexBase::One),
            _ => None,
        }
    }
}

/// How the one data file of a command is read, and how its result is printed.
#[derive(Args, Debug, Clone)]
pub(crate) struct DataArgs {
    /// Labels of the rows, one per line, for formats without labels
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = FILES)]
    pub(crate) labels: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) columns: ColumnArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Print one JSON object on standard output instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// A point of the saved path: an earlier, sparser model.
#[derive(Args, Debug, Clone, Default)]
#[group(multiple = false)]
pub(crate) struct PathPoint {
    /// Use the last iterate of the saved path whose atoms use at most N features
    #[arg(long, value_name = "N", value_parser = at_least_two, allow_negative_numbers = true, help_heading = PATH)]
    pub(crate) max_features: Option<usize>,
    /// Use the last iterate of the saved path that has at most N atoms (learned dimensions of `transform`)
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true, help_heading = PATH)]
    pub(crate) max_atoms: Option<usize>,
    /// Use the iterate after N iterations
    #[arg(long, value_name = "N", help_heading = PATH)]
    pub(crate) iteration: Option<usize>,
}

impl PathPoint {
    /// Whether a point other than the chosen one is asked for.
    pub(crate) fn is_given(&self) -> bool {
        self.max_features.is_some() || self.max_atoms.is_some() || self.iteration.is_some()
    }
}

/// A saved model.
#[derive(Args, Debug, Clone)]
pub(crate) struct ModelFile {
    /// Model file
    #[arg(value_name = "MODEL", value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
    #[command(flatten)]
    pub(crate) point: PathPoint,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

/// A similarity, and the rows among which neighbors are searched.
#[derive(Args, Debug, Clone)]
pub(crate) struct RankingArgs {
    /// Model file, or the word `identity` for the plain dot product
    #[arg(value_name = "MODEL", value_hint = ValueHint::FilePath)]
    pub(crate) model: ModelArg,
    /// Rows among which neighbors are searched [default: the training rows, if the model contains them]
    ///
    /// Models of records contain their training rows, unless they were trained with --without-rows.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) train: Option<PathBuf>,
    /// Preprocessing for `identity`, fitted on --train [default: max]; a model has its own
    #[arg(long, value_name = "HOW", value_parser = named!(Preprocess))]
    pub(crate) preprocess: Option<Preprocess>,
    #[command(flatten)]
    pub(crate) point: PathPoint,
    /// Labels of the --train rows, one per line, for formats without labels
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = FILES)]
    pub(crate) train_labels: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) added: AddedRows,
    #[command(flatten)]
    pub(crate) columns: ColumnArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

/// Training rows of a second file.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct AddedRows {
    /// More training rows, appended to those of the training file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = FILES)]
    pub(crate) add: Option<PathBuf>,
    /// Labels of the --add rows, one per line, for formats without labels
    #[arg(long, value_name = "FILE", requires = "add", value_hint = ValueHint::FilePath, help_heading = FILES)]
    pub(crate) add_labels: Option<PathBuf>,
}

/// How the class of a row is predicted, where that differs from the model's own rule.
#[derive(Args, Debug, Clone)]
pub(crate) struct RuleArgs {
    /// Number of neighbors that vote [default: as in training; 3 for `identity`]
    #[arg(short, value_name = "K", value_parser = positive, allow_negative_numbers = true)]
    pub(crate) k: Option<usize>,
    /// How neighbors vote [default: as in training; majority for `identity`]
    #[arg(long, value_name = "HOW", value_parser = named!(Vote))]
    pub(crate) vote: Option<Vote>,
    /// Normalization of the similarity [default: as in training; dot for `identity`]
    #[arg(long, value_name = "HOW", value_parser = named!(Normalization))]
    pub(crate) normalization: Option<Normalization>,
}

impl RuleArgs {
    /// The model's own rule, except for what the flags say.
    pub(crate) fn over(&self, own: PredictionRule) -> PredictionRule {
        PredictionRule {
            k: self.k.unwrap_or(own.k),
            vote: self.vote.unwrap_or(own.vote),
            normalization: self.normalization.unwrap_or(own.normalization),
        }
    }
}

/// The files of a training, and the file of its model.
#[derive(Args, Debug, Clone)]
pub(crate) struct TrainingFiles {
    /// Training rows, `-` for standard input
    #[arg(value_name = "TRAIN", value_hint = ValueHint::FilePath)]
    pub(crate) train: PathBuf,
    /// Model file to write; checked to be writable before the work starts
    #[arg(short, long, value_name = "MODEL", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Print one JSON object on standard output instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Labels of the training rows, one per line, for formats without labels
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = FILES)]
    pub(crate) labels: Option<PathBuf>,
    /// Feature names, one per line, to be saved in the model
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = FILES)]
    pub(crate) names: Option<PathBuf>,
    /// Do not save the training rows in a model of records; predictions need --train then
    #[arg(long, help_heading = FILES)]
    pub(crate) without_rows: bool,
    #[command(flatten)]
    pub(crate) columns: ColumnArgs,
    #[command(flatten)]
    pub(crate) text: TextArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

/// Validation rows of a file.
#[derive(Args, Debug, Clone)]
pub(crate) struct ValidationFiles {
    /// Validation rows: models are compared by their prediction error on them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = VALIDATION)]
    pub(crate) valid: Option<PathBuf>,
    /// Labels of the validation rows, one per line, for formats without labels
    #[arg(long, value_name = "FILE", requires = "valid", value_hint = ValueHint::FilePath, help_heading = VALIDATION)]
    pub(crate) valid_labels: Option<PathBuf>,
}
