//! `hdsl demo`: plant a data set, learn it, compare, explain.

mod reviews;

use super::explain::pair_row;
use crate::failure::Failure;
use crate::files;
use crate::output::{self, Log, count, percent, short, thousands};
use crate::progress::TrainingProgress;
use crate::signals;
use clap::{Args, ValueHint};
use hdsl::data::{OutputFile, Planted, PlantedParams, planted, write_svmlight};
use hdsl::knn::evaluate_similarity;
use hdsl::{
    Dataset, Dot, Labels, PredictionRule, Sign, Similarity, Stop, TrainConfig, TrainData, Trained,
    train,
};
use hdsl_report::{Input, Part};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

const K: usize = 3;
const LAMBDAS: [f64; 3] = [10.0, 30.0, 100.0];
const MAX_ITER: usize = 500;

/// Run a complete example: generate data, train, compare, explain. No download, a few seconds
///
/// Generates rows that look like short restaurant reviews: thousands of made-up words with Zipf
/// frequencies, nearly all of them noise. A review has an opinion on the food, the service and the
/// price, each expressed by one of several synonyms (`delicious` or `savoury`, `stale` or `soggy`);
/// its class is the combination of its opinions. Two reviews of the same class often share none of
/// these words, so the plain dot product hardly tells them from others. The learned similarity does,
/// by pairs: delicious in one and savoury in the other makes them similar, delicious in one and stale
/// in the other does not.
///
/// The planted words and pairs are known, so the demo counts how many of them were found. All files
/// are written to a folder, for use with the other commands.
///
/// With --text, the reviews are texts in CSV files, as your own data may be, and the model learns from
/// these: it takes CSV files and needs no other file.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_long_help = "Examples:\n  hdsl demo --dir my-demo --seed 7\n  hdsl demo --text"
)]
pub(crate) struct Demo {
    /// Folder for the data and the model; created if missing, files of an earlier demo are replaced
    #[arg(long, value_name = "DIR", default_value = "hdsl-demo", value_hint = ValueHint::DirPath)]
    dir: PathBuf,
    /// Write the reviews as texts in CSV files, and learn from these
    #[arg(long)]
    text: bool,
    /// Seed: another seed generates another data set
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Print one JSON object on standard output instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Demo, log: &Log) -> Result<(), Failure> {
    let started = Instant::now();
    files::create_folder(&args.dir)?;
    let mut outputs = Outputs::create(args)?;
    let mut problem = planted(args.seed, &PlantedParams::default())?;
    if !args.json {
        output::stdout(&intro(&problem))?;
    }
    match args.text {
        false => outputs.write_data(&problem)?,
        true => {
            let texts = reviews::texts_of(&problem);
            outputs.write_texts(&texts)?;
            reviews::read_back(&mut problem, &texts)?;
        }
    }

    let mut config = TrainConfig::new(LAMBDAS[0]);
    config.lambda = LAMBDAS.to_vec();
    config.max_iter = MAX_ITER;
    config.seed = args.seed;
    config.rule = PredictionRule::nearest(K);
    config.patience = Some(100);
    signals::stop_in_order();
    let mut progress = TrainingProgress::new(log, &config, true);
    let mut data = TrainData::new(&problem.train);
    data.valid = Some((&problem.valid).into());
    data.names = (!args.text).then_some(&problem.names);
    let trained = train(&data, &config, &mut progress);
    progress.finish();
    let mut trained = trained?;
    if let Some(records) = &problem.train.records {
        let model = trained.model.with_vectorizer(records.vectorizer.clone())?;
        let (rows, labels) = (problem.train.rows.view(), problem.train.labels.clone());
        trained.model = model.with_training_rows(rows, labels, records.ids.clone())?;
    }
    if trained.run.stop == Stop::ObserverAsked {
        let signal = signals::name();
        log.note(format!(
            "stopped by {signal}; the figures are those of the best model so far"
        ));
    }
    let model = outputs.write_model(&trained)?;
    outputs.write_report(&problem, &trained)?;
    outputs.commit()?;

    let facts = Facts::of(&problem, &trained)?;
    let seconds = started.elapsed().as_secs_f64();
    if args.json {
        return output::json(&to_json(
            args, &outputs, &problem, &trained, &facts, seconds,
        ));
    }
    let mut text = to_text(&problem, &trained, &facts);
    text += &next(args, &outputs, &problem, model, seconds);
    output::stdout(&text)
}

/// The files of a demo, opened before the work, filled one after the other, and replaced together at the end.
struct Outputs {
    open: Vec<OutputFile>,
    filled: Vec<OutputFile>,
    paths: Vec<PathBuf>,
}

impl Outputs {
    const ROWS: [(&str, &str); 6] = [
        ("train.svm", "training rows"),
        ("valid.svm", "validation rows"),
        ("test.svm", "test rows"),
        ("names.txt", "the words"),
        ("model.hdsl", "the model"),
        ("report.html", "a report about it, to open in a browser"),
    ];
    const TEXTS: [(&str, &str); 5] = [
        ("reviews.csv", "training reviews"),
        ("valid.csv", "validation reviews"),
        ("new.csv", "test reviews"),
        ("reviews.hdsl", "the model"),
        ("report.html", "a report about it, to open in a browser"),
    ];

    fn files(args: &Demo) -> &'static [(&'static str, &'static str)] {
        match args.text {
            false => &Self::ROWS,
            true => &Self::TEXTS,
        }
    }

    fn create(args: &Demo) -> Result<Self, Failure> {
        let files = Self::files(args).iter();
        let paths: Vec<PathBuf> = files.map(|file| args.dir.join(file.0)).collect();
        // Taken from the end, so the first of the files is filled first.
        let open = paths.iter().rev().map(|p| files::create(p));
        Ok(Self {
            open: open.collect::<Result<_, _>>()?,
            filled: Vec::new(),
            paths,
        })
    }

    fn write_texts(&mut self, texts: &[String]) -> Result<(), Failure> {
        for text in texts {
            self.write_next(|out| out.write_all(text.as_bytes()))?;
        }
        Ok(())
    }

    fn write_data(&mut self, problem: &Planted) -> Result<(), Failure> {
        for part in [&problem.train, &problem.valid, &problem.test] {
            self.write_next(|out| {
                write_svmlight(out, &part.rows, part.labels.as_ref(), None, part.index_base)
            })?;
        }
        self.write_next(|out| {
            problem
                .names
                .iter()
                .try_for_each(|name| writeln!(out, "{name}"))
        })
    }

    fn write_model(&mut self, trained: &Trained) -> Result<usize, Failure> {
        let bytes = trained.model.to_bytes();
        self.write_next(|out| out.write_all(&bytes))?;
        Ok(bytes.len())
    }

    fn write_report(&mut self, problem: &Planted, trained: &Trained) -> Result<(), Failure> {
        let path = |at: usize| self.paths[at].display().to_string();
        let (train, test, model) = (path(0), path(2), path(self.paths.len() - 2));
        let mut input = Input::new(&trained.model, &model);
        input.train = Some(with_texts(&problem.train, &train));
        input.test = Some(with_texts(&problem.test, &test));
        input.files.valid = Some(self.paths[1].clone());
        if problem.train.records.is_none() {
            input.names = Some(&problem.names);
            input.files.names = Some(self.paths[3].clone());
        }
        input.train_seconds = Some(trained.run.train_seconds);
        let page = hdsl_report::page(&input, &mut |_| {})?;
        self.write_next(|out| out.write_all(page.as_bytes()))
    }

    fn write_next(
        &mut self,
        fill: impl FnOnce(&mut OutputFile) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        if let Some(mut out) = self.open.pop() {
            out.fill(fill)?;
            self.filled.push(out);
        }
        Ok(())
    }

    /// Gives all files their names.
    fn commit(&mut self) -> Result<(), Failure> {
        Ok(OutputFile::commit_all(std::mem::take(&mut self.filled))?)
    }
}

/// Rows for the report, with the texts that they were made from.
fn with_texts<'a>(data: &'a hdsl::Dataset, source: &'a str) -> Part<'a> {
    let records = data.records.as_ref();
    Part {
        texts: records.and_then(|records| records.texts.as_deref()),
        ..Part::new(data, source)
    }
}

/// The figures of the demo, for text and JSON.
struct Facts {
    dot_error: f64,
    learned_error: f64,
    features_found: usize,
    pairs_found: usize,
    n_pairs: usize,
}

impl Facts {
    fn of(problem: &Planted, trained: &Trained) -> Result<Self, Failure> {
        let learned = trained.model.similarity();
        // The dot product gets the same preprocessing, fitted on all features instead of those in use.
        let preprocess =
            hdsl::Preprocessor::fit(trained.model.preprocess().kind(), &problem.train.rows);
        let error = |similarity: &dyn Similarity| -> Result<f64, Failure> {
            let evaluation = evaluate_similarity(
                similarity,
                &preprocess.apply(&problem.train.rows),
                labels(&problem.train)?,
                &preprocess.apply(&problem.test.rows),
                labels(&problem.test)?,
                &PredictionRule::nearest(K),
            )?;
            Ok(evaluation.error)
        };
        let pairs = learned.pairs_by_weight();
        let is_planted = |i: u32, j: u32, sign| problem.pairs.contains(&(i, j, sign == Sign::Plus));
        Ok(Self {
            dot_error: error(&Dot)?,
            learned_error: error(learned)?,
            features_found: problem
                .relevant
                .iter()
                .filter(|f| learned.features_used().binary_search(f).is_ok())
                .count(),
            pairs_found: pairs
                .iter()
                .filter(|p| is_planted(p.i, p.j, p.sign()))
                .count(),
            n_pairs: pairs.len(),
        })
    }
}

fn labels(data: &Dataset) -> Result<&Labels, Failure> {
    data.labels
        .as_ref()
        .ok_or_else(|| Failure::Running("the planted rows have no labels".into()))
}

fn intro(problem: &Planted) -> String {
    let n_classes = problem.train.labels.as_ref().map_or(0, |l| l.names().len());
    format!(
        "Generated {} for training, {} for validation, {} for testing: {} over {}.\n\
         Only {} words are informative about the class, and {} of them are related; all others are noise.\n\n",
        count(problem.train.rows.n_rows(), "row"),
        thousands(problem.valid.rows.n_rows()),
        thousands(problem.test.rows.n_rows()),
        count(n_classes, "class"),
        count(problem.names.len(), "word"),
        problem.relevant.len(),
        count(problem.pairs.len(), "pair"),
    )
}

fn to_text(problem: &Planted, trained: &Trained, facts: &Facts) -> String {
    let learned = trained.model.similarity();
    let total = problem.names.len();
    let row = |cells: [String; 3]| cells.to_vec();
    let mut text = output::table(
        "",
        &[
            row(["".into(), "dot product".into(), "learned".into()]),
            row([
                format!("{K}-NN error on test rows"),
                percent(facts.dot_error),
                percent(facts.learned_error),
            ]),
            row([
                "words used".into(),
                thousands(total),
                thousands(learned.n_features_used()),
            ]),
            row([
                "pairs of words used".into(),
                "0".into(),
                thousands(facts.n_pairs),
            ]),
        ],
    );
    text += &format!(
        "\nFound {} of the {} planted words and {} of the {} planted pairs, among {} words and {} pairs.\n\
         Learned from {} in {:.2} s, lambda {}; selected the iterate after {} of {} iterations.\n",
        facts.features_found,
        problem.relevant.len(),
        facts.pairs_found,
        problem.pairs.len(),
        thousands(total),
        thousands(total * (total - 1) / 2),
        count(trained.run.n_triplets, "triplet"),
        trained.run.train_seconds,
        short(trained.model.parts().scale),
        thousands(trained.model.chosen()),
        thousands(trained.run.iterations),
    );
    text += "\nThe ten strongest pairs (~ more similar, >< less similar; * planted):\n";
    let rows: Vec<Vec<String>> = learned
        .pairs_by_weight()
        .iter()
        .take(10)
        .map(|p| {
            let (i, j) = (trained.model.name(p.i), trained.model.name(p.j));
            let planted = problem.pairs.contains(&(p.i, p.j, p.sign() == Sign::Plus));
            let mut row = pair_row(p.weight, &i, &j);
            row.push(if planted { "*".into() } else { String::new() });
            row
        })
        .collect();
    text + &output::table("  ", &rows)
}

/// A training row of the class of the first test row that shares no relevant word with it: to the dot product they are
/// unrelated.
fn same_class_without_common_words(problem: &Planted) -> usize {
    let class = |data: &Dataset, row: usize| data.labels.as_ref().map(|l| l.name(row).to_owned());
    let first = problem.test.rows.row(0);
    let shares = |row: usize| {
        let other = problem.train.rows.row(row);
        let mut words = problem.relevant.iter();
        words.any(|&w| first.get(w) != 0.0 && other.get(w) != 0.0)
    };
    (0..problem.train.rows.n_rows())
        .find(|&row| class(&problem.train, row) == class(&problem.test, 0) && !shares(row))
        .unwrap_or(0)
}

fn next(args: &Demo, outputs: &Outputs, problem: &Planted, n_bytes: usize, seconds: f64) -> String {
    let dir = args.dir.display();
    let partner = same_class_without_common_words(problem);
    let mut text = format!("\nWrote, in {seconds:.1} s:\n");
    let files = outputs.paths.iter().zip(Outputs::files(args));
    let rows: Vec<Vec<String>> = files
        .map(|(path, (_, what))| {
            let bytes = match path.extension().is_some_and(|e| e == "hdsl") {
                true => format!(", {} bytes", thousands(n_bytes)),
                false => String::new(),
            };
            vec![path.display().to_string(), format!("{what}{bytes}")]
        })
        .collect();
    text += &output::table("  ", &rows);
    text += "\nNext, try (`cargo run --release --` in place of `hdsl` if it is not installed):\n";
    text += &match args.text {
        false => format!(
            "  hdsl explain {dir}/model.hdsl --top 20\n  \
             hdsl explain {dir}/model.hdsl --pair {dir}/test.svm:0 {dir}/train.svm:{partner}\n  \
             hdsl evaluate identity --train {dir}/train.svm {dir}/test.svm\n  \
             hdsl evaluate {dir}/model.hdsl --train {dir}/train.svm {dir}/test.svm --max-features 12\n  \
             hdsl train {dir}/train.svm --valid {dir}/valid.svm --lambda 100 --names {dir}/names.txt -o my.hdsl -v\n"
        ),
        true => format!(
            "  hdsl inspect {dir}/reviews.csv\n  \
             hdsl predict {dir}/reviews.hdsl {dir}/new.csv --reasons 3\n  \
             hdsl explain {dir}/reviews.hdsl --pair {dir}/new.csv:0 {dir}/reviews.csv:{partner}\n  \
             hdsl evaluate {dir}/reviews.hdsl {dir}/new.csv\n  \
             hdsl tune {dir}/reviews.csv --label verdict --text review --time 60s -o my.hdsl\n"
        ),
    };
    text
}

fn to_json(
    args: &Demo,
    outputs: &Outputs,
    problem: &Planted,
    trained: &Trained,
    facts: &Facts,
    seconds: f64,
) -> Value {
    let files: Vec<String> = outputs
        .paths
        .iter()
        .map(|p| p.display().to_string())
        .collect();
    json!({
        "seed": args.seed,
        "k": K,
        "dot_product_error": facts.dot_error,
        "error": facts.learned_error,
        "valid_error": trained.run.valid_error,
        "lambda": trained.model.parts().scale,
        "iterations": trained.run.iterations,
        "iteration": trained.model.chosen(),
        "n_features_total": problem.names.len(),
        "n_features": trained.model.similarity().n_features_used(),
        "n_pairs": facts.n_pairs,
        "planted_features": problem.relevant.len(),
        "planted_features_found": facts.features_found,
        "planted_pairs": problem.pairs.len(),
        "planted_pairs_found": facts.pairs_found,
        "n_triplets": trained.run.n_triplets,
        "train_seconds": trained.run.train_seconds,
        "seconds": seconds,
        "files": files,
    })
}
