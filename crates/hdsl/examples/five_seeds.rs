//! Test error over five random splits: λ and the iterate are chosen on validation rows, test rows are used once.
//!
//! ```sh
//! cargo run --release -p hdsl --example five_seeds -- halve dexter/train.svm.bz2 dexter/valid.svm.bz2 random:20
//! cargo run --release -p hdsl --example five_seeds -- inside dorothea/train.svm.bz2 dorothea/valid.svm.bz2 knn:3:5
//! ```
//! `halve` learns from the first file and halves the second into validation and test rows; `inside` cuts validation
//! rows (30%) out of the first file and tests on the second. Splits are stratified, with seeds 0 to 4.

use hdsl::data::stratified_split;
use hdsl::knn::evaluate_similarity;
use hdsl::{
    Dataset, Dot, PredictionRule, Preprocessor, ReadOptions, Similarity, TrainConfig, TrainData,
    read_dataset, train,
};

const LAMBDAS: [f64; 7] = [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6];

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [how, first, second, triplets] = &args[..] else {
        return Err("usage: five_seeds halve|inside FIRST SECOND knn:K:M|random:N".into());
    };
    let read = |path: &String| read_dataset(path.as_ref(), &ReadOptions::default());
    let (first, second) = (read(first)?, read(second)?);
    let (mut learned, mut plain, mut features) = (Vec::new(), Vec::new(), Vec::new());
    for seed in 0..5 {
        let (to_learn, to_choose, to_test) = match how.as_str() {
            "halve" => {
                let [choose, test] = cut(&second, [0.5, 0.5], seed)?;
                (first.clone(), choose, test)
            }
            "inside" => {
                let [learn, choose] = cut(&first, [0.7, 0.3], seed)?;
                (learn, choose, second.clone())
            }
            other => return Err(format!("`{other}` is neither halve nor inside").into()),
        };
        let mut config = TrainConfig::new(1.0);
        config.lambda = LAMBDAS.to_vec();
        config.triplets = triplets.parse()?;
        config.seed = seed;
        let mut given = TrainData::new(&to_learn);
        given.valid = Some((&to_choose).into());
        let trained = train(&given, &config, &mut ())?;
        let preprocess = Preprocessor::fit(config.preprocess, &to_learn.rows);
        let after = error(trained.model.similarity(), &preprocess, &to_learn, &to_test)?;
        let before = error(&Dot, &preprocess, &to_learn, &to_test)?;
        let used = trained.model.similarity().n_features_used();
        println!(
            "seed {seed}: lambda {:>9}, iterate {:>4}, {used:>4} features, test error {:>5.2}%, dot product {:>5.2}%",
            trained.model.similarity().scale(),
            trained.model.chosen(),
            100.0 * after,
            100.0 * before,
        );
        learned.push(100.0 * after);
        plain.push(100.0 * before);
        features.push(used as f64);
    }
    let (mean, deviation) = summary(&learned);
    println!(
        "mean {mean:.2} ± {deviation:.2}% with {:.0} features; dot product {:.2} ± {:.2}%",
        summary(&features).0,
        summary(&plain).0,
        summary(&plain).1
    );
    Ok(())
}

/// Two parts of a data set, every class in proportion.
fn cut(data: &Dataset, fractions: [f64; 2], seed: u64) -> Result<[Dataset; 2], Failure> {
    let labels = data.labels.as_ref().ok_or("the rows have no labels")?;
    let parts = stratified_split(labels, &fractions, seed)?;
    Ok([0, 1].map(|part| Dataset {
        rows: data.rows.select(&parts[part]),
        labels: Some(labels.select(&parts[part])),
        ..data.clone()
    }))
}

fn error(
    similarity: &dyn Similarity,
    preprocess: &Preprocessor,
    learn: &Dataset,
    test: &Dataset,
) -> Result<f64, Failure> {
    let (Some(labels), Some(truth)) = (&learn.labels, &test.labels) else {
        return Err("the rows have no labels".into());
    };
    let (rows, asked) = (preprocess.apply(&learn.rows), preprocess.apply(&test.rows));
    Ok(evaluate_similarity(
        similarity,
        &rows,
        labels,
        &asked,
        truth,
        &PredictionRule::default(),
    )?
    .error)
}

/// Mean and standard deviation.
fn summary(numbers: &[f64]) -> (f64, f64) {
    let n = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    let squares: f64 = numbers.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0)).sqrt())
}
