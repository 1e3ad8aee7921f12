//! A data set with known answers: text-like rows in which a few words, and pairs of words, decide.
//!
//! Rows look like short texts over thousands of made-up words with Zipf frequencies, nearly all of them noise. There are
//! a few *fields*, and each has two classes. A row tells its field by one of several topic words that stand for each
//! other (`stove`, `oven`, `skillet`: seldom two of them in one row), and its class by one of two opposites (`sugar` or
//! `salt`). Two rows of one field mostly share no topic word, so a plain dot product hardly sees that they are alike; and
//! it never holds it against two rows that they have opposite words. Both are what pairs of features are for.

use super::{Dataset, IndexBase, Labels, Rows, SparseRow};
use crate::atoms::Atom;
use crate::error::{Error, Result};
use crate::random::{below, rng, shuffle};
use rand_chacha::rand_core::Rng;
use std::collections::{BTreeMap, HashSet};

/// A field: its topic words, its two opposite words, and the names of its two classes.
type Field = ([&'static str; 5], [&'static str; 2], [&'static str; 2]);

const FIELDS: [Field; 6] = [
    (
        ["stove", "oven", "skillet", "ladle", "kettle"],
        ["sugar", "salt"],
        ["kitchen-sweet", "kitchen-savoury"],
    ),
    (
        ["harbour", "anchor", "sail", "rudder", "mast"],
        ["calm", "storm"],
        ["sea-calm", "sea-rough"],
    ),
    (
        ["melody", "violin", "chorus", "rhythm", "flute"],
        ["loud", "soft"],
        ["music-loud", "music-soft"],
    ),
    (
        ["soil", "hedge", "tulip", "trowel", "compost"],
        ["sun", "shade"],
        ["garden-sunny", "garden-shady"],
    ),
    (
        ["loan", "ledger", "invoice", "tax", "audit"],
        ["profit", "loss"],
        ["money-gained", "money-lost"],
    ),
    (
        ["goal", "referee", "stadium", "whistle", "jersey"],
        ["victory", "defeat"],
        ["match-won", "match-lost"],
    ),
];

/// How large and how hard a planted problem is. The defaults are those of `hdsl demo`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlantedParams {
    /// Training rows.
    pub n_train: usize,
    /// Validation rows.
    pub n_valid: usize,
    /// Test rows.
    pub n_test: usize,
    /// Features, relevant ones included.
    pub n_features: usize,
    /// Fields, at most 6; each has two classes.
    pub n_fields: usize,
    /// Topic words of a field that stand for each other, 2 to 5.
    pub n_topic_words: usize,
    /// Noise words drawn for each row.
    pub noise_words: usize,
    /// How likely a row holds its topic word, and its opposite word.
    pub present: f64,
    /// How likely a row holds one stray relevant word that says nothing about it.
    pub stray: f64,
}

impl Default for PlantedParams {
    fn default() -> Self {
        Self {
            n_train: 1_000,
            n_valid: 500,
            n_test: 1_000,
            n_features: 5_000,
            n_fields: 4,
            n_topic_words: 3,
            noise_words: 25,
            present: 0.97,
            stray: 0.1,
        }
    }
}

/// A planted problem and its answers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Planted {
    /// Rows to learn from.
    pub train: Dataset,
    /// Rows to choose with.
    pub valid: Dataset,
    /// Rows to test on.
    pub test: Dataset,
    /// The words, one a feature.
    pub names: Vec<String>,
    /// The features that say something about the class, in increasing order. All others are noise.
    pub relevant: Vec<u32>,
    /// The pairs that say something together: plus for topic words of one field, minus for opposites.
    pub pairs: Vec<Atom>,
}

/// Makes a planted problem: same seed, same problem.
///
/// ```
/// use hdsl::data::{PlantedParams, planted};
/// let problem = planted(7, &PlantedParams::default())?;
/// assert_eq!(problem.train.rows.n_features(), 5_000);
/// assert_eq!(problem.relevant.len(), 4 * (3 + 2)); // 4 fields, each of 3 topic words and 2 opposites
/// assert_eq!(problem.pairs.len(), 4 * (3 + 1)); // pairs of topic words, and the opposites
/// # Ok::<(), hdsl::Error>(())
/// ```
pub fn planted(seed: u64, params: &PlantedParams) -> Result<Planted> {
    check(params)?;
    let mut rng = rng(seed, 0x706c_616e);
    let words_a_field = params.n_topic_words + 2;
    let n_relevant = params.n_fields * words_a_field;

    // Which features are relevant is drawn, so that nothing can be learned from their numbers.
    let mut order: Vec<u32> = (0..params.n_features as u32).collect();
    shuffle(&mut rng, &mut order);
    let (special, noise) = order.split_at(n_relevant);
    let topic = |field: usize, word: usize| special[field * words_a_field + word];
    let opposite =
        |field: usize, side: usize| special[field * words_a_field + params.n_topic_words + side];

    let mut names = vec![String::new(); params.n_features];
    let mut pairs = Vec::new();
    let mut taken = HashSet::new();
    for (field, (topics, opposites, _)) in FIELDS.iter().take(params.n_fields).enumerate() {
        for (word, name) in topics.iter().take(params.n_topic_words).enumerate() {
            names[topic(field, word) as usize] = (*name).to_owned();
            for earlier in 0..word {
                pairs.push(Atom::plus(topic(field, earlier), topic(field, word))?);
            }
        }
        for (side, name) in opposites.iter().enumerate() {
            names[opposite(field, side) as usize] = (*name).to_owned();
        }
        pairs.push(Atom::minus(opposite(field, 0), opposite(field, 1))?);
    }
    taken.extend(names.iter().filter(|n| !n.is_empty()).cloned());
    for &feature in noise {
        names[feature as usize] = made_up_word(&mut rng, &mut taken);
    }

    // Zipf's law with Mandelbrot's offset: the word of rank r is drawn in proportion to 1 / (r + 30).
    let mut total = 0.0;
    let zipf: Vec<f64> = (0..noise.len())
        .map(|rank| {
            total += 1.0 / (rank as f64 + 30.0);
            total
        })
        .collect();

    let class_names: Vec<String> = FIELDS
        .iter()
        .take(params.n_fields)
        .flat_map(|(_, _, classes)| classes.iter().map(|&c| c.to_owned()))
        .collect();
    let n_classes = class_names.len();
    let mut part = |n_rows: usize| -> Result<Dataset> {
        let mut rows = Rows::new(params.n_features);
        let mut codes: Vec<usize> = (0..n_rows).map(|r| r % n_classes).collect();
        shuffle(&mut rng, &mut codes);
        for &code in &codes {
            let (field, side) = (code / 2, code % 2);
            let mut counts: BTreeMap<u32, f64> = BTreeMap::new();
            let mut add = |feature: u32, count: usize| {
                *counts.entry(feature).or_insert(0.0) += count as f64;
            };
            if chance(&mut rng, params.present) {
                let word = below(&mut rng, params.n_topic_words);
                add(topic(field, word), 1 + below(&mut rng, 2));
            }
            if chance(&mut rng, params.present) {
                add(opposite(field, side), 1 + below(&mut rng, 2));
            }
            if chance(&mut rng, params.stray) {
                add(special[below(&mut rng, special.len())], 1);
            }
            for _ in 0..params.noise_words {
                let at = uniform(&mut rng) * total;
                let rank = zipf.partition_point(|&sum| sum <= at);
                add(noise[rank.min(noise.len() - 1)], 1);
            }
            let (indices, values): (Vec<u32>, Vec<f64>) = counts.into_iter().unzip();
            rows.push(SparseRow::new(&indices, &values));
        }
        let labels = Labels::from_names(codes.iter().map(|&c| class_names[c].as_str()));
        Ok(Dataset {
            rows,
            labels: Some(labels),
            queries: None,
            index_base: IndexBase::One,
            notes: Vec::new(),
        })
    };
    let train = part(params.n_train)?;
    let valid = part(params.n_valid)?;
    let test = part(params.n_test)?;
    let mut relevant = special.to_vec();
    relevant.sort_unstable();
    pairs.sort_unstable();
    Ok(Planted {
        train,
        valid,
        test,
        names,
        relevant,
        pairs,
    })
}

fn check(params: &PlantedParams) -> Result<()> {
    let whole = |name, value: usize, ok: bool, want| {
        if ok {
            Ok(())
        } else {
            Err(Error::param(name, value, want))
        }
    };
    let p = params;
    whole(
        "n_fields",
        p.n_fields,
        (1..=FIELDS.len()).contains(&p.n_fields),
        "1 to 6",
    )?;
    whole(
        "n_topic_words",
        p.n_topic_words,
        (2..=5).contains(&p.n_topic_words),
        "2 to 5",
    )?;
    let least = p.n_fields * (p.n_topic_words + 2) + 1;
    whole(
        "n_features",
        p.n_features,
        (least..=1_000_000).contains(&p.n_features),
        "more than the relevant ones and at most a million",
    )?;
    for (name, value) in [("present", p.present), ("stray", p.stray)] {
        if !(0.0..=1.0).contains(&value) {
            return Err(Error::param(name, value, "a probability"));
        }
    }
    Ok(())
}

/// A number in [0, 1).
fn uniform(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

fn chance(rng: &mut impl Rng, probability: f64) -> bool {
    uniform(rng) < probability
}

/// A word one can say, of two to four syllables, not used before.
fn made_up_word(rng: &mut impl Rng, taken: &mut HashSet<String>) -> String {
    const STARTS: [&str; 20] = [
        "b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "br", "dr", "gl",
        "pl", "st", "tr",
    ];
    const VOWELS: [&str; 7] = ["a", "e", "i", "o", "u", "ai", "oo"];
    const ENDS: [&str; 6] = ["", "n", "r", "l", "sk", "m"];
    for attempt in 0.. {
        let syllables = 2 + below(rng, 2) + attempt / 20;
        let mut word = String::new();
        for _ in 0..syllables {
            word += STARTS[below(rng, STARTS.len())];
            word += VOWELS[below(rng, VOWELS.len())];
        }
        word += ENDS[below(rng, ENDS.len())];
        if taken.insert(word.clone()) {
            return word;
        }
    }
    unreachable!("words grow longer until one is free")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Scaling, ScalingKind};
    use crate::knn::evaluate_similarity;
    use crate::model::{BilinearModel, Dot, Similarity};

    #[test]
    fn the_same_seed_plants_the_same_problem() {
        let params = PlantedParams::default();
        let (a, b) = (planted(3, &params).unwrap(), planted(3, &params).unwrap());
        assert_eq!(a.train.rows, b.train.rows);
        assert_eq!(a.test.labels, b.test.labels);
        assert_eq!((&a.names, &a.pairs), (&b.names, &b.pairs));
        assert_ne!(a.relevant, planted(4, &params).unwrap().relevant);
    }

    #[test]
    fn names_differ_and_answers_fit() {
        let problem = planted(0, &PlantedParams::default()).unwrap();
        let distinct: HashSet<&String> = problem.names.iter().collect();
        assert_eq!(distinct.len(), 5_000);
        assert!(problem.relevant.windows(2).all(|w| w[0] < w[1]));
        for pair in &problem.pairs {
            assert!(problem.relevant.contains(&pair.i()) && problem.relevant.contains(&pair.j()));
        }
        let counts = problem.train.labels.as_ref().unwrap().counts();
        assert_eq!(counts, [125; 8]);
    }

    #[test]
    fn the_planted_pairs_are_the_answer_and_the_dot_product_is_not() {
        let problem = planted(1, &PlantedParams::default()).unwrap();
        let scaling = Scaling::fit(ScalingKind::Max, &problem.train.rows);
        let train = scaling.apply(&problem.train.rows);
        let test = scaling.apply(&problem.test.rows);
        let weight = 1.0 / problem.pairs.len() as f64;
        let atoms = problem.pairs.iter().map(|&p| (p, weight)).collect();
        let answer = BilinearModel::new(train.n_features(), 100.0, atoms).unwrap();
        let error = |similarity: &dyn Similarity| {
            let labels = |part: &Dataset| part.labels.clone().unwrap();
            let (labels, truth) = (labels(&problem.train), labels(&problem.test));
            evaluate_similarity(similarity, &train, &labels, &test, &truth, 3)
                .unwrap()
                .error
        };
        let (dot, planted) = (error(&Dot), error(&answer));
        assert!((0.2..0.45).contains(&dot), "dot product {dot}");
        assert!(planted < 0.08, "planted pairs {planted}");
    }

    #[test]
    fn impossible_wishes_are_refused() {
        let refused = |change: fn(&mut PlantedParams)| {
            let mut params = PlantedParams::default();
            change(&mut params);
            planted(0, &params).is_err()
        };
        assert!(refused(|p| p.n_fields = 0));
        assert!(refused(|p| p.n_fields = 7));
        assert!(refused(|p| p.n_topic_words = 6));
        assert!(refused(|p| p.n_features = 20));
        assert!(refused(|p| p.present = f64::NAN));
    }
}
