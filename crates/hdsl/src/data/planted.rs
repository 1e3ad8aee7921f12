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

/// An aspect: its two verdicts, and the words for each.
type Aspect = [(&'static str, [&'static str; 4]); 2];

const ASPECTS: [Aspect; 5] = [
    [
        ("tasty", ["delicious", "savoury", "scrumptious", "luscious"]),
        ("bland", ["stale", "soggy", "tasteless", "burnt"]),
    ],
    [
        ("kind", ["friendly", "attentive", "welcoming", "helpful"]),
        ("rude", ["surly", "careless", "impatient", "grumpy"]),
    ],
    [
        ("cheap", ["bargain", "affordable", "thrifty", "inexpensive"]),
        ("dear", ["costly", "overpriced", "pricey", "extortionate"]),
    ],
    [
        ("quiet", ["calm", "hushed", "peaceful", "tranquil"]),
        ("loud", ["noisy", "rowdy", "deafening", "raucous"]),
    ],
    [
        ("quick", ["prompt", "speedy", "swift", "brisk"]),
        ("slow", ["sluggish", "delayed", "belated", "tardy"]),
    ],
];

/// How large and how hard a planted problem is. The defaults are those of `hdsl demo`.
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
    /// Aspects, 1 to 5; there is a class for each combination of verdicts, `2^n_aspects` in all.
    pub n_aspects: usize,
    /// Words that stand for each other, for each verdict, 1 to 4.
    pub n_synonyms: usize,
    /// Noise words drawn for each row.
    pub noise_words: usize,
    /// The probability that a row contains a word for its verdict, for each aspect.
    pub present: f64,
    /// The probability that a row contains one more word, drawn at random among the words of all verdicts.
    pub stray: f64,
}

impl Default for PlantedParams {
    fn default() -> Self {
        Self {
            n_train: 1_000,
            n_valid: 500,
            n_test: 1_000,
            n_features: 5_000,
            n_aspects: 3,
            n_synonyms: 2,
            noise_words: 25,
            present: 0.98,
            stray: 0.1,
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
    check(params)?;
    let mut rng = rng(seed, 0x706c_616e);
    let (n_aspects, n_synonyms) = (params.n_aspects, params.n_synonyms);

    // Which features are relevant is drawn, so that nothing can be learned from their numbers.
    let mut order: Vec<u32> = (0..params.n_features as u32).collect();
    shuffle(&mut rng, &mut order);
    let (special, noise) = order.split_at(n_aspects * 2 * n_synonyms);
    let word = |aspect: usize, verdict: usize, synonym: usize| {
        special[(aspect * 2 + verdict) * n_synonyms + synonym]
    };

    let pair = |i: u32, j: u32, alike| (i.min(j), i.max(j), alike);

    let mut names = vec![String::new(); params.n_features];
    let mut pairs = Vec::new();
    for (aspect, verdicts) in ASPECTS.iter().take(n_aspects).enumerate() {
        for (verdict, (_, words)) in verdicts.iter().enumerate() {
            for (synonym, name) in words.iter().take(n_synonyms).enumerate() {
                let feature = word(aspect, verdict, synonym);
                names[feature as usize] = (*name).to_owned();
                for earlier in 0..synonym {
                    pairs.push(pair(word(aspect, verdict, earlier), feature, true));
                }
                for opposite in (0..n_synonyms).filter(|_| verdict == 1) {
                    pairs.push(pair(word(aspect, 0, opposite), feature, false));
                }
            }
        }
    }
    let mut taken: HashSet<String> = names.iter().filter(|n| !n.is_empty()).cloned().collect();
    for &feature in noise {
        names[feature as usize] = made_up_word(&mut rng, &mut taken);
    }

    // Zipf's law with Mandelbrot's offset: the word of rank r is drawn in proportion to 1 / (r + 100).
    let mut total = 0.0;
    let zipf: Vec<f64> = (0..noise.len())
        .map(|rank| {
            total += 1.0 / (rank as f64 + 100.0);
            total
        })
        .collect();

    let n_classes = 1 << n_aspects;
    let class_name = |class: usize| {
        let verdicts = ASPECTS.iter().take(n_aspects).enumerate();
        let verdicts: Vec<&str> = verdicts.map(|(a, v)| v[class >> a & 1].0).collect();
        verdicts.join("-")
    };
    let mut part = |n_rows: usize| {
        let mut rows = Rows::new(params.n_features);
        let mut classes: Vec<usize> = (0..n_rows).map(|r| r % n_classes).collect();
        shuffle(&mut rng, &mut classes);
        for &class in &classes {
            let mut words = BTreeSet::new();
            for aspect in 0..n_aspects {
                if chance(&mut rng, params.present) {
                    let synonym = below(&mut rng, n_synonyms);
                    words.insert(word(aspect, class >> aspect & 1, synonym));
                }
            }
            if chance(&mut rng, params.stray) {
                words.insert(special[below(&mut rng, special.len())]);
            }
            for _ in 0..params.noise_words {
                let at = uniform(&mut rng) * total;
                let rank = zipf.partition_point(|&sum| sum <= at);
                words.insert(noise[rank.min(noise.len() - 1)]);
            }
            let indices: Vec<u32> = words.into_iter().collect();
            rows.push(SparseRow::new(&indices, &vec![1.0; indices.len()]));
        }
        let labels = Labels::from_names(classes.iter().map(|&c| class_name(c)));
        Dataset {
            labels: Some(labels),
            ..Dataset::unlabeled(rows, IndexBase::One, Vec::new())
        }
    };
    let (train, valid, test) = (
        part(params.n_train),
        part(params.n_valid),
        part(params.n_test),
    );
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
    let within = |name, value: usize, low: usize, high: usize, want| {
        if (low..=high).contains(&value) {
            Ok(())
        } else {
            Err(Error::param(name, value, want))
        }
    };
    within("n_aspects", params.n_aspects, 1, ASPECTS.len(), "1 to 5")?;
    within("n_synonyms", params.n_synonyms, 1, 4, "1 to 4")?;
    within(
        "n_features",
        params.n_features,
        params.n_aspects * 2 * params.n_synonyms + 1,
        1_000_000,
        "more than the relevant ones and at most a million",
    )?;
    for (name, value) in [("present", params.present), ("stray", params.stray)] {
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
    fn impossible_wishes_are_refused() {
        let refused = |change: fn(&mut PlantedParams)| {
            let mut params = PlantedParams::default();
            change(&mut params);
            planted(0, &params).is_err()
        };
        assert!(refused(|p| p.n_aspects = 0));
        assert!(refused(|p| p.n_aspects = 6));
        assert!(refused(|p| p.n_synonyms = 5));
        assert!(refused(|p| p.n_features = 12));
        assert!(refused(|p| p.present = f64::NAN));
    }
}
