//! The command line that trains a model again.

use super::config::{TrainConfig, Validation};
use super::saved::Model;
use crate::observer::Stop;
use crate::triplets::TripletSource;
use std::borrow::Cow;
use std::fmt::Display;
use std::path::{Path, PathBuf};

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
    /// None if no call can: the solver started from an earlier solution, or triplets of rows were given and others held
    /// out.
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
        if config.warm_start || (held_out && !config.triplets.is_mined()) {
            return None;
        }
        if matches!(parts.stop, Some(Stop::TimeLimit | Stop::ObserverAsked)) {
            config.time_limit = None;
            if config.mining_rounds == 0 && config.n_estimators == 1 {
                config.max_iter = parts.path.len().max(1);
            }
        }
        let mut line = Line(vec!["hdsl".to_owned(), "train".to_owned()]);
        line.0.push(file_or(files.train.as_deref(), "TRAIN"));
        line.optional_file("--labels", files.labels.as_deref());
        if config.added_rows {
            line.file("--add", files.add.as_deref(), "ADD");
            line.optional_file("--add-labels", files.add_labels.as_deref());
        }
        match config.validation {
            Validation::None => {}
            Validation::Rows => {
                line.file("--valid", files.valid.as_deref(), "VALID");
                line.optional_file("--valid-labels", files.valid_labels.as_deref());
            }
            Validation::Holdout(fraction) => line.option("--holdout", fraction),
        }
        if !parts.names.is_empty() {
            line.file("--names", files.names.as_deref(), "NAMES");
        }
        line.config(&config, files.triplets.as_deref());
        line.0.extend(
            files
                .reading
                .iter()
                .map(|word| shell_word(word).into_owned()),
        );
        line.file("-o", files.output.as_deref(), "MODEL");
        Some(line.0.join(" "))
    }
}

/// The words of a command line.
struct Line(Vec<String>);

impl Line {
    fn option(&mut self, flag: &str, value: impl Display) {
        let value = shell_word(&value.to_string()).into_owned();
        self.0.extend([flag.to_owned(), value]);
    }

    fn unless_default<T: Display + PartialEq>(&mut self, flag: &str, value: T, default: T) {
        if value != default {
            self.option(flag, value);
        }
    }

    fn if_set(&mut self, flag: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.option(flag, value);
        }
    }

    fn file(&mut self, flag: &str, path: Option<&Path>, placeholder: &str) {
        self.0.extend([flag.to_owned(), file_or(path, placeholder)]);
    }

    fn optional_file(&mut self, flag: &str, path: Option<&Path>) {
        self.if_set(flag, path.map(Path::display));
    }

    /// Every setting that is not the default.
    fn config(&mut self, config: &TrainConfig, triplets: Option<&Path>) {
        let default = TrainConfig::new(1.0);
        self.unless_default("--preprocess", config.preprocess, default.preprocess);
        match &config.triplets {
            TripletSource::Given { .. } => self.file("--triplets", triplets, "TRIPLETS"),
            source => self.unless_default("--triplets", source, &default.triplets),
        }
        let lambda: Vec<String> = config.lambda.iter().map(f64::to_string).collect();
        self.option("--lambda", lambda.join(","));
        self.unless_default("--loss", config.loss, default.loss);
        self.unless_default("--search", config.search, default.search);
        self.unless_default("--steps", config.steps, default.steps);
        self.if_set("--batch", config.batch);
        self.unless_default("--max-iter", config.max_iter, default.max_iter);
        self.if_set("--tol", config.tolerance);
        if config.certify {
            self.0.push("--certify".to_owned());
        }
        self.if_set("--max-features", config.max_features);
        self.if_set(
            "--time",
            config.time_limit.map(|seconds| format!("{seconds}s")),
        );
        self.unless_default("--seed", config.seed, default.seed);
        self.unless_default(
            "--mining-rounds",
            config.mining_rounds,
            default.mining_rounds,
        );
        self.if_set("--last-round-iter", config.last_round_iter);
        self.unless_default("--n-estimators", config.n_estimators, default.n_estimators);
        self.unless_default("-k", config.rule.k, default.rule.k);
        self.unless_default("--vote", config.rule.vote, default.rule.vote);
        let normalization = config.rule.normalization;
        self.unless_default("--normalization", normalization, default.rule.normalization);
        self.unless_default("--eval-every", config.eval_every, default.eval_every);
        self.if_set("--patience", config.patience);
    }
}

fn file_or(path: Option<&Path>, placeholder: &str) -> String {
    match path {
        Some(path) => shell_word(&path.display().to_string()).into_owned(),
        None => placeholder.to_owned(),
    }
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
