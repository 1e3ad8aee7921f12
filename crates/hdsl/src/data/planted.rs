//! A synthetic data set with a known solution: text-like rows in which a few words, and pairs of words, determine the class.
//!
//! Rows look like short restaurant reviews over thousands of made-up words with Zipf frequencies, nearly all of them
//! noise. A review has a verdict on each of a few *aspects* (the food is tasty or bland, the service kind or rude), and its
//! class is the combination of its verdicts. Each verdict is expressed by one of several synonyms (`delicious` or
//! `savoury`, seldom both). Two rows with the same verdict often share no word for it, so the dot product rarely detects
//! that they agree, and it never counts a disagreement (`delicious` in one row, `stale` in the other). Pairs of features
//! express both. Words of different aspects are independent, so the pairs that matter are exactly those within an aspect.

use super::{Dataset, IndexBase, Labels, Rows, SparseRow};
use crate::error::{Error, Result};
use crate::random::{below, rng, shuffle};
use rand_chacha::rand_core::Rng;
use std::collections::{BTreeSet, HashSet};

/// Words that stand for each other, for each verdict.
const SYNONYMS: usize = 2;

/// The two verdicts on each aspect, and the words for each. There is a class for each combination of verdicts.
const ASPECTS: [[(&str, [&str; SYNONYMS]); 2]; 3] = [
    [
        ("tasty", ["delicious", "savoury"]),
        ("bland", ["stale", "soggy"]),
    ],
    [
        ("kind", ["friendly", "attentive"]),
        ("rude", ["surly", "careless"]),
    ],
    [
        ("cheap", ["bargain", "affordable"]),
        ("dear", ["costly", "overpriced"]),
    ],
];

/// The number of relevant features.
const RELEVANT: usize = ASPECTS.len() * 2 * SYNONYMS;

/// The probability that a row contains a word for its verdict, for each aspect.
const PRESENT: f64 = 0.98;

/// The probability that a row contains one more word, drawn at random among the words of all verdicts.
const STRAY: f64 = 0.1;

/// How large a planted problem is. The defaults are those of `hdsl demo`.
#[derive(Clone, Debug, PartialEq)]
pub struct PlantedParams {
    /// Training rows.
    pub n_train: usize,
    /// Validation rows.
    pub n_valid: usize,
    /// Test rows.
    pub n_test: usize,
    /// Features, relevant ones included.
    pub n_features: usize,
    /// Noise words drawn for each row.
    pub noise_words: usize,
}

impl Default for PlantedParams {
    fn default() -> Self {
        Self {
            n_train: 1_000,
            n_valid: 500,
            n_test: 1_000,
            n_features: 5_000,
            noise_words: 25,
        }
    }
}

/// A planted problem and its solution.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Planted {
    /// Training rows.
    pub train: Dataset,
    /// Validation rows.
    pub valid: Dataset,
    /// Test rows.
    pub test: Dataset,
    /// The words, one per feature.
    pub names: Vec<String>,
    /// The features that say something about the class, in increasing order. All others are noise.
    pub relevant: Vec<u32>,
    /// The pairs of features that say something together, (i, j, alike) with i < j in increasing order: alike for words
    /// of one verdict, not alike for words of opposite verdicts on one aspect.
    pub pairs: Vec<(u32, u32, bool)>,
}

/// Makes a planted problem: same seed, same problem.
///
/// ```
/// use hdsl::data::{PlantedParams, planted};
/// let problem = planted(7, &PlantedParams::default())?;
/// assert_eq!(problem.train.rows.n_features(), 5_000);
/// assert_eq!(problem.relevant.len(), 3 * 2 * 2); // aspects, verdicts, words
/// assert_eq!(problem.pairs.len(), 3 * (1 + 1 + 4)); // alike for either verdict, and opposites
/// # Ok::<(), hdsl::Error>(())
/// ```
pub fn planted(seed: u64, params: &PlantedParams) -> Result<Planted> {
    let n_features = params.n_features;
    if !(RELEVANT + 1..=1_000_000).contains(&n_features) {
        let want = "more than the 12 relevant ones and at most a million";
        return Err(Error::param("n_features", n_features, want));
    }
    let mut rng = rng(seed, 0x706c_616e);
    // Which features are relevant is drawn, so that nothing can be learned from their numbers.
    let mut order: Vec<u32> = (0..n_features as u32).collect();
    shuffle(&mut rng, &mut order);
    let (special, noise) = order.split_at(RELEVANT);

    let mut names = vec![String::new(); n_features];
    let words = ASPECTS.as_flattened().iter().flat_map(|(_, words)| words);
    for (&feature, &word) in special.iter().zip(words) {
        names[feature as usize] = word.to_owned();
    }
    let mut taken: HashSet<String> = names.iter().filter(|n| !n.is_empty()).cloned().collect();
    for &feature in noise {
        names[feature as usize] = made_up_word(&mut rng, &mut taken);
    }

    let mut pairs = Vec::new();
    for words in special.chunks(2 * SYNONYMS) {
        for (q, &j) in words.iter().enumerate() {
            for (p, &i) in words[..q].iter().enumerate() {
                pairs.push((i.min(j), i.max(j), p / SYNONYMS == q / SYNONYMS));
            }
        }
    }
    pairs.sort_unstable();
    let [train, valid, test] = [params.n_train, params.n_valid, params.n_test]
        .map(|n_rows| part(&mut rng, n_rows, params, special, noise));
    let mut relevant = special.to_vec();
    relevant.sort_unstable();
    Ok(Planted {
        train,
        valid,
        test,
        names,
        relevant,
        pairs,
    })
}

/// Rows of all classes, as many of each as possible. The relevant features are in the order of their words in `ASPECTS`.
fn part(
    rng: &mut impl Rng,
    n_rows: usize,
    params: &PlantedParams,
    special: &[u32],
    noise: &[u32],
) -> Dataset {
    // Zipf's law with Mandelbrot's offset: the word of rank r is drawn in proportion to 1 / (r + 100).
    let mut total = 0.0;
    let add = |rank| {
        total += 1.0 / (rank as f64 + 100.0);
        total
    };
    let zipf: Vec<f64> = (0..noise.len()).map(add).collect();
    let mut rows = Rows::new(params.n_features);
    let mut classes: Vec<usize> = (0..n_rows).map(|r| r % (1 << ASPECTS.len())).collect();
    shuffle(rng, &mut classes);
    for &class in &classes {
        let mut words = BTreeSet::new();
        for aspect in 0..ASPECTS.len() {
            if uniform(rng) < PRESENT {
                let verdict = 2 * aspect + (class >> aspect & 1);
                words.insert(special[verdict * SYNONYMS + below(rng, SYNONYMS)]);
            }
        }
        if uniform(rng) < STRAY {
            words.insert(special[below(rng, special.len())]);
        }
        for _ in 0..params.noise_words {
            let at = uniform(rng) * total;
            let rank = zipf.partition_point(|&sum| sum <= at);
            words.insert(noise[rank.min(noise.len() - 1)]);
        }
        let indices: Vec<u32> = words.into_iter().collect();
        rows.push(SparseRow::new(&indices, &vec![1.0; indices.len()]));
    }
    let class_name = |&class: &usize| {
        let verdicts = ASPECTS.iter().enumerate();
        let verdicts: Vec<&str> = verdicts.map(|(a, v)| v[class >> a & 1].0).collect();
        verdicts.join("-")
    };
    Dataset {
        labels: Some(Labels::from_names(classes.iter().map(class_name))),
        ..Dataset::unlabeled(rows, IndexBase::One, Vec::new())
    }
}

/// A number in [0, 1).
fn uniform(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
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
    use crate::atoms::Atom;
    use crate::data::{Preprocess, Preprocessor};
    use crate::knn::PredictionRule;
    use crate::knn::evaluate_similarity;
    use crate::similarity::{BilinearModel, Dot, Similarity};

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
        for (i, j, _) in &problem.pairs {
            assert!(i < j && problem.relevant.contains(i) && problem.relevant.contains(j));
        }
        let counts = problem.train.labels.as_ref().unwrap().counts();
        assert_eq!(counts, [125; 8]);
    }

    #[test]
    fn the_planted_pairs_are_the_answer_and_the_dot_product_is_not() {
        let problem = planted(1, &PlantedParams::default()).unwrap();
        let preprocess = Preprocessor::fit(Preprocess::Max, &problem.train.rows);
        let train = preprocess.apply(&problem.train.rows);
        let test = preprocess.apply(&problem.test.rows);
        let weight = 1.0 / problem.pairs.len() as f64;
        let atom = |&(i, j, alike): &(u32, u32, bool)| match alike {
            true => (Atom::plus(i, j).unwrap(), weight),
            false => (Atom::minus(i, j).unwrap(), weight),
        };
        let atoms = problem.pairs.iter().map(atom).collect();
        let answer = BilinearModel::new(train.n_features(), 100.0, atoms).unwrap();
        let error = |similarity: &dyn Similarity| {
            let labels = |part: &Dataset| part.labels.clone().unwrap();
            let (labels, truth) = (labels(&problem.train), labels(&problem.test));
            evaluate_similarity(
                similarity,
                &train,
                &labels,
                &test,
                &truth,
                &PredictionRule::default(),
            )
            .unwrap()
            .error
        };
        let (dot, planted) = (error(&Dot), error(&answer));
        assert!((0.2..0.45).contains(&dot), "dot product {dot}");
        assert!(planted < 0.08, "planted pairs {planted}");
    }

    #[test]
    fn too_few_features_are_refused() {
        let params = PlantedParams {
            n_features: 12,
            ..PlantedParams::default()
        };
        assert!(planted(0, &params).is_err());
    }
}
