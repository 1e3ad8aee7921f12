//! A page at the intended size limits: 2,000 atoms, 100,000 features, 20,000 rows, and names that contain markup. `cargo run --release -p hdsl-report --example large -- large.html`

use hdsl::atoms::{Path, Step};
use hdsl::{Atom, Labels, Model, ModelParts, Rows, Sign, SparseRow};
use hdsl_report::{Input, Part, page};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const FEATURES: u32 = 100_000;
/// The number of features that occur in atoms: every 61st one.
const USED: u32 = 1_500;

fn rows(n: usize, random: &mut ChaCha8Rng) -> (Rows, Labels, Vec<String>) {
    let mut rows = Rows::new(FEATURES as usize);
    let mut classes = Vec::new();
    let mut texts = Vec::new();
    for _ in 0..n {
        let class = random.next_u32() % 20;
        let mut features: Vec<u32> = (0..50).map(|_| random.next_u32() % FEATURES).collect();
        // Some features are more frequent in this class.
        features.extend((0..8).map(|_| (class * 67 + random.next_u32() % 90) % USED * 61));
        features.sort_unstable();
        features.dedup();
        texts.push(features.iter().map(|f| format!("word{f} ")).collect());
        rows.push(SparseRow::new(&features, &vec![1.0; features.len()]));
        classes.push(format!("class {class}"));
    }
    (rows, Labels::from_names(classes), texts)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = std::env::args().nth(1).unwrap_or("large.html".into());
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut atoms: Vec<Atom> = Vec::new();
    while atoms.len() < 2_000 {
        let i = random.next_u32() % USED;
        // Features with similar indices, so that the graph has groups.
        let j = (i + 1 + random.next_u32() % 40) % USED;
        let sign = if random.next_u32().is_multiple_of(3) {
            Sign::Minus
        } else {
            Sign::Plus
        };
        let atom = Atom::new(i * 61, j * 61, sign)?;
        if !atoms.contains(&atom) {
            atoms.push(atom);
        }
    }
    let step = |(at, &atom): (usize, &Atom)| Step::Forward {
        atom,
        gamma: 1.0 / (at + 2) as f64,
    };
    let steps = atoms[1..].iter().enumerate().map(step).collect();
    let path = Path::new(vec![(atoms[0], 1.0)], steps)?;
    let mut parts = ModelParts::new(FEATURES as usize, 1000.0, path);
    parts.evaluations = (1..20).map(|n| (n * 100, 0.5 / f64::from(n))).collect();
    let model = Model::new(parts)?;
    let names: Vec<String> = (0..FEATURES)
        .map(|f| match f % 5 {
            0 => format!("<b>word</b> {f}"),
            _ => format!("word{f}"),
        })
        .collect();
    let (train, train_labels, train_texts) = rows(15_000, &mut random);
    let (test, test_labels, test_texts) = rows(5_000, &mut random);
    let mut input = Input::new(&model, "large.hdsl");
    input.names = Some(&names);
    input.train = Some(Part {
        rows: &train,
        labels: Some(&train_labels),
        texts: Some(&train_texts),
        source: "train.svm",
    });
    input.test = Some(Part {
        rows: &test,
        labels: Some(&test_labels),
        texts: Some(&test_texts),
        source: "test.svm",
    });
    let html = page(&input, &mut |stage| eprintln!("{stage}"))?;
    assert!(
        html.len() < 10_000_000,
        "{} bytes, expected fewer than 10 MB",
        html.len()
    );
    std::fs::write(&out, &html)?;
    println!("{out}: {} bytes", html.len());
    Ok(())
}
