//! `hdsl demo`: plant a data set, learn it, compare, explain.

use crate::args::Demo;
use crate::commands::explain::pair_row;
use crate::failure::Failure;
use crate::files;
use crate::progress::{self, Watch};
use crate::report::{self, Talk, count, percent, short, thousands};
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
const SCALES: [f64; 3] = [10.0, 30.0, 100.0];
const MAX_ITER: usize = 500;

pub(crate) fn run(args: &Demo, talk: &Talk) -> Result<(), Failure> {
    let started = Instant::now();
    std::fs::create_dir_all(&args.dir)
        .map_err(|e| Failure::usage(format!("{}: cannot write: {e}", args.dir.display())))?;
    let mut outputs = Outputs::create(args)?;
    let problem = planted(args.seed, &PlantedParams::default())?;
    if !args.json {
        report::stdout(&intro(&problem))?;
    }
    outputs.write_data(&problem)?;

    let mut config = TrainConfig::new(SCALES[0]);
    config.lambda = SCALES.to_vec();
    config.max_iter = MAX_ITER;
    config.seed = args.seed;
    config.rule = PredictionRule::nearest(K);
    config.patience = Some(100);
    progress::stop_on_ctrl_c();
    let mut watch = Watch::new(talk, MAX_ITER, config.eval_every, true);
    let mut given = TrainData::new(&problem.train);
    given.valid = Some((&problem.valid).into());
    given.names = Some(&problem.names);
    let trained = train(&given, &config, &mut watch);
    watch.finish();
    let trained = trained?;
    if trained.stop == Stop::ObserverAsked {
        talk.note("stopped by Ctrl-C; the figures are those of the best model so far");
    }
    let model = outputs.write_model(&trained)?;
    outputs.write_report(&problem, &trained)?;

    let facts = Facts::of(&problem, &trained)?;
    let seconds = started.elapsed().as_secs_f64();
    if args.json {
        return report::json(&to_json(
            args, &outputs, &problem, &trained, &facts, seconds,
        ));
    }
    let mut text = to_text(&problem, &trained, &facts);
    text += &next(args, &outputs, &problem, model, seconds);
    report::stdout(&text)
}

/// The files of a demo, opened before the work.
struct Outputs {
    open: Vec<OutputFile>,
    paths: Vec<PathBuf>,
}

impl Outputs {
    const NAMES: [&str; 6] = [
        "train.svm",
        "valid.svm",
        "test.svm",
        "names.txt",
        "model.hdsl",
        "report.html",
    ];

    fn create(args: &Demo) -> Result<Self, Failure> {
        let paths: Vec<PathBuf> = Self::NAMES.iter().map(|n| args.dir.join(n)).collect();
        // Taken from the end, so the last in the list is written first.
        let open = paths.iter().rev().map(|p| files::create(p));
        Ok(Self {
            open: open.collect::<Result<_, _>>()?,
            paths,
        })
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
        let (train, test, model) = (path(0), path(2), path(4));
        fn part<'a>(data: &'a Dataset, source: &'a str) -> Part<'a> {
            Part {
                rows: &data.rows,
                labels: data.labels.as_ref(),
                texts: None,
                source,
            }
        }
        let mut input = Input::new(&trained.model, &model);
        input.train = Some(part(&problem.train, &train));
        input.test = Some(part(&problem.test, &test));
        input.names = Some(&problem.names);
        input.train_seconds = Some(trained.train_seconds);
        let page = hdsl_report::page(&input, &mut |_| {})?;
        self.write_next(|out| out.write_all(page.as_bytes()))
    }

    fn write_next(
        &mut self,
        fill: impl FnOnce(&mut OutputFile) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        match self.open.pop() {
            Some(out) => files::write(out, fill),
            None => Ok(()),
        }
    }
}

/// What the demo is about: measured once, told as text or as JSON.
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
        "Planted {} to learn from, {} to choose with, {} to test on: {} over {}.\n\
         Only {} words say anything about the class, by {} of them; all others are noise.\n\n",
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
    let mut text = report::table(
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
         Learned from {} in {:.2} s, lambda {}, {} of {} iterations kept.\n",
        facts.features_found,
        problem.relevant.len(),
        facts.pairs_found,
        problem.pairs.len(),
        thousands(total),
        thousands(total * (total - 1) / 2),
        count(trained.n_triplets, "triplet"),
        trained.train_seconds,
        short(trained.model.parts().scale),
        thousands(trained.model.chosen()),
        thousands(trained.iterations),
    );
    text += "\nThe ten strongest pairs (~ mean alike, >< mean unlike; * planted):\n";
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
    text + &report::table("  ", &rows)
}

/// A training row that agrees with the first test row in everything, and has no relevant word in common with it:
/// what a dot product cannot see.
fn twin_without_a_word_in_common(problem: &Planted) -> usize {
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
    let twin = twin_without_a_word_in_common(problem);
    let mut text = format!("\nWrote, in {seconds:.1} s:\n");
    let what = [
        "rows to learn from".to_owned(),
        "rows to choose with".to_owned(),
        "rows to test on".to_owned(),
        "the words".to_owned(),
        format!("the model, {} bytes", thousands(n_bytes)),
        "a page about it: open it in a browser".to_owned(),
    ];
    let rows: Vec<Vec<String>> = outputs
        .paths
        .iter()
        .zip(what)
        .map(|(path, what)| vec![path.display().to_string(), what])
        .collect();
    text += &report::table("  ", &rows);
    text += &format!(
        "\nNext, try (`cargo run --release --` in place of `hdsl` if it is not installed):\n  \
         hdsl explain {dir}/model.hdsl --top 20\n  \
         hdsl explain {dir}/model.hdsl --pair {dir}/test.svm:0 {dir}/train.svm:{twin}\n  \
         hdsl evaluate identity --train {dir}/train.svm {dir}/test.svm\n  \
         hdsl evaluate {dir}/model.hdsl --train {dir}/train.svm {dir}/test.svm --max-features 12\n  \
         hdsl train {dir}/train.svm --valid {dir}/valid.svm --scale 100 --names {dir}/names.txt -o my.hdsl -v\n"
    );
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
        "valid_error": trained.valid_error,
        "scale": trained.model.parts().scale,
        "iterations": trained.iterations,
        "iteration": trained.model.chosen(),
        "n_features_total": problem.names.len(),
        "n_features": trained.model.similarity().n_features_used(),
        "n_pairs": facts.n_pairs,
        "planted_features": problem.relevant.len(),
        "planted_features_found": facts.features_found,
        "planted_pairs": problem.pairs.len(),
        "planted_pairs_found": facts.pairs_found,
        "n_triplets": trained.n_triplets,
        "train_seconds": trained.train_seconds,
        "seconds": seconds,
        "files": files,
    })
}
