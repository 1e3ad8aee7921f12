//! The command line that trains a model again.

use super::config::TrainConfig;
use super::saved::Model;
use super::validation::Validation;
use crate::observer::Stop;
use crate::triplets::TripletSource;
use std::borrow::Cow;
use std::path::PathBuf;

/// The names of the files of a training, which a model does not contain. Where one is needed and not known, the command
/// line has a placeholder in capital letters.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CommandFiles {
    /// The training rows.
    pub train: Option<PathBuf>,
    /// Their labels, where they are in a file of their own.
    pub labels: Option<PathBuf>,
    /// The rows of `--add`.
    pub add: Option<PathBuf>,
    /// Their labels.
    pub add_labels: Option<PathBuf>,
    /// The validation rows.
    pub valid: Option<PathBuf>,
    /// Their labels.
    pub valid_labels: Option<PathBuf>,
    /// The names of the features.
    pub names: Option<PathBuf>,
    /// Triplets that were passed with the data.
    pub triplets: Option<PathBuf>,
    /// The model.
    pub output: Option<PathBuf>,
    /// Options about reading, such as `--zero-based`.
    pub reading: Vec<String>,
}

impl Model {
    /// The call of `hdsl train` that makes this model from the same rows, byte for byte. A run that was stopped by a time
    /// limit or a user is rendered with the iterations it had, which gives the same similarity.
    ///
    /// None if no call can: the solver started from an earlier solution, `hdsl rank` made the model, or triplets of rows were
    /// given and others held out.
    ///
    /// ```
    /// use hdsl::model::CommandFiles;
    /// use hdsl::atoms::Path;
    /// use hdsl::{Atom, Model, ModelParts};
    /// let path = Path::new(vec![(Atom::plus(0, 1)?, 1.0)], vec![])?;
    /// let mut parts = ModelParts::new(2, 10.0, path);
    /// parts.config.seed = 7;
    /// let mut files = CommandFiles::default();
    /// files.train = Some("my rows.svm".into());
    /// let line = Model::new(parts)?.command_line(&files).unwrap();
    /// assert_eq!(line, "hdsl train 'my rows.svm' --lambda 10 --seed 7 -o MODEL");
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn command_line(&self, files: &CommandFiles) -> Option<String> {
        let parts = self.parts();
        let mut config = parts.config.clone();
        let held_out = matches!(config.validation, Validation::Holdout(_));
        let is_ranking = matches!(config.triplets, TripletSource::Ranking { .. });
        if config.warm_start || is_ranking || (held_out && !config.triplets.is_mined()) {
            return None;
        }
        if matches!(parts.stop, Some(Stop::TimeLimit | Stop::ObserverAsked)) {
            config.time_limit = None;
            if config.mining_rounds == 0 && !config.is_ensemble() {
                config.max_iter = parts.path.len().max(1);
            }
        }
        let mut line = Line(Vec::new());
        line.file("hdsl train", &files.train, "TRAIN");
        line.file("--labels", &files.labels, "");
        if config.added_rows {
            line.file("--add", &files.add, "ADD");
            line.file("--add-labels", &files.add_labels, "");
        }
        match config.validation {
            Validation::None => {}
            Validation::Rows => {
                line.file("--valid", &files.valid, "VALID");
                line.file("--valid-labels", &files.valid_labels, "");
            }
            Validation::Holdout(fraction) | Validation::HoldoutAnchors(fraction) => {
                line.option("--holdout", &fraction.to_string())
            }
        }
        if !parts.names.is_empty() {
            line.file("--names", &files.names, "NAMES");
        }
        if let TripletSource::Given { .. } = config.triplets {
            line.file("--triplets", &files.triplets, "TRIPLETS");
        }
        if let Some(vectorizer) = self.vectorizer() {
            let options = vectorizer.options();
            let words = options.iter().map(|word| shell_word(word).into_owned());
            line.0.extend(words);
        }
        let defaults = settings(&TrainConfig::new(f64::NAN));
        for ((flag, value), (_, default)) in settings(&config).iter().zip(&defaults) {
            if value != default {
                line.option(flag, value);
            }
        }
        if config.certify {
            line.0.push("--certify".to_owned());
        }
        let reading = files.reading.iter().map(|word| shell_word(word));
        line.0.extend(reading.map(Cow::into_owned));
        line.file("-o", &files.output, "MODEL");
        Some(line.0.join(" "))
    }
}

/// The words of a command line.
struct Line(Vec<String>);

impl Line {
    /// Nothing if the value is empty.
    fn option(&mut self, flag: &str, value: &str) {
        if !value.is_empty() {
            self.0
                .extend([flag.to_owned(), shell_word(value).into_owned()]);
        }
    }

    fn file(&mut self, flag: &str, path: &Option<PathBuf>, placeholder: &str) {
        let path = path.as_ref().map(|path| path.display().to_string());
        self.option(flag, path.as_deref().unwrap_or(placeholder));
    }
}

/// The options of a configuration that have a value, as text; empty if it is not set.
fn settings(config: &TrainConfig) -> Vec<(&'static str, String)> {
    fn optional(value: Option<impl ToString>) -> String {
        value.map_or_else(String::new, |value| value.to_string())
    }
    let is_given = matches!(config.triplets, TripletSource::Given { .. });
    let triplets = Some(&config.triplets).filter(|_| !is_given);
    let lambda: Vec<String> = config.lambda.iter().map(f64::to_string).collect();
    let time_limit = config.time_limit.map(|seconds| format!("{seconds}s"));
    vec![
        ("--preprocess", config.preprocess.to_string()),
        ("--triplets", optional(triplets)),
        ("--lambda", lambda.join(",")),
        ("--base", config.base.to_string()),
        ("--loss", config.loss.to_string()),
        ("--search", config.search.to_string()),
        ("--steps", config.steps.to_string()),
        ("--batch", optional(config.batch)),
        ("--max-iter", config.max_iter.to_string()),
        ("--tol", optional(config.tolerance)),
        ("--max-features", optional(config.max_features)),
        ("--time", optional(time_limit)),
        ("--seed", config.seed.to_string()),
        ("--mining-rounds", config.mining_rounds.to_string()),
        ("--last-round-iter", optional(config.last_round_iter)),
        ("--n-estimators", config.n_estimators.to_string()),
        ("--subsample", config.subsample.to_string()),
        ("-k", config.rule.k.to_string()),
        ("--vote", config.rule.vote.to_string()),
        ("--normalization", config.rule.normalization.to_string()),
        ("--eval-every", config.eval_every.to_string()),
        ("--patience", optional(config.patience)),
    ]
}

/// A text as one word of a shell, quoted where it has to be.
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "._-/+=:,@%".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("'{}'", text.replace('\'', r"'\''"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_command_can_be_pasted_into_a_shell() {
        assert_eq!(shell_word("train.svm.bz2"), "train.svm.bz2");
        assert_eq!(shell_word("my rows.svm"), "'my rows.svm'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word("$HOME"), "'$HOME'");
        assert_eq!(shell_word(""), "''");
    }
}
