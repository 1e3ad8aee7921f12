//! A small collection with planted synonyms: triplets, folds, and the whole.

use super::measures::standard_error;
use super::supervision::Supervision;
use super::*;
use crate::data::SparseRow;
use crate::random::below;
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;

/// Queries use the word 2t of topic t, documents the word 2t + 1, and both some words of no topic: no dot product finds the
/// answers.
struct Planted {
    documents: Rows,
    queries: Rows,
    judgments: Judgments,
    pairs: (Rows, Rows),
}

const TOPICS: usize = 6;
const NOISE: usize = 20;

fn row(random: &mut ChaCha8Rng, word: usize) -> Vec<u32> {
    let mut words: Vec<u32> = (0..3)
        .map(|_| (2 * TOPICS + below(random, NOISE)) as u32)
        .collect();
    words.push(word as u32);
    words.sort_unstable();
    words.dedup();
    words
}

fn rows(of: impl Iterator<Item = Vec<u32>>) -> Rows {
    let (mut starts, mut indices) = (vec![0], Vec::new());
    for row in of {
        indices.extend(row);
        starts.push(indices.len());
    }
    let values = vec![1.0; indices.len()];
    Rows::from_parts(2 * TOPICS + NOISE, starts, indices, values).unwrap()
}

impl Planted {
    fn new(seed: u64) -> Self {
        let mut random = rng(seed, 0);
        let mut many = |n: usize, side: usize| {
            let list: Vec<_> = (0..n)
                .map(|at| row(&mut random, 2 * (at % TOPICS) + side))
                .collect();
            rows(list.into_iter())
        };
        let (documents, queries) = (many(60, 1), many(30, 0));
        let pairs = (many(12, 0), many(12, 1));
        let mut text = String::new();
        for query in 0..30 {
            for document in (query % TOPICS..60).step_by(TOPICS) {
                // The last document of each topic is left out, and the first has the highest grade.
                let grade = match document / TOPICS {
                    0 => 2,
                    9 => -1,
                    _ => 1,
                };
                text += &format!("{query} {document} {grade}\n");
            }
        }
        let judgments = Judgments::parse(
            "planted".as_ref(),
            text.as_bytes(),
            &Ids::Rows(30),
            &Ids::Rows(60),
            false,
        );
        Self {
            documents,
            queries,
            judgments: judgments.unwrap(),
            pairs,
        }
    }

    fn collection(&self, with_pairs: bool) -> Collection<'_> {
        Collection {
            documents: &self.documents,
            queries: &self.queries,
            judgments: &self.judgments,
            pairs: with_pairs.then_some(&self.pairs),
            names: None,
        }
    }
}

fn quick() -> RankConfig {
    RankConfig {
        lambda: vec![30.0],
        pair_weights: vec![1.0],
        base_shares: vec![0.5, 4.0],
        max_iter: vec![30, 60],
        n_estimators: 2,
        folds: 3,
        inner_folds: 2,
        ..RankConfig::default()
    }
}

#[test]
fn learning_finds_answers_that_share_no_word_with_the_query() {
    let planted = Planted::new(1);
    let ranked = rank(&planted.collection(false), &quick(), &mut ()).unwrap();
    let held_out = ranked.held_out.unwrap();
    assert_eq!(held_out.queries.len(), 30);
    let ndcg = |of: &[Quality]| mean(of, |q| q.ndcg);
    assert!(ndcg(&held_out.tfidf) < 0.4 && ndcg(&held_out.bm25) < 0.4);
    assert!(ndcg(&held_out.learned) > 0.9, "{}", ndcg(&held_out.learned));
    assert!(Comparison::of(&held_out.learned, &held_out.tfidf).is_better());
    let none = Comparison::of(&held_out.tfidf, &held_out.tfidf);
    assert_eq!((none.difference, none.p_value), (0.0, 1.0));
    assert!(ranked.model.base() > 0.0);
    assert_eq!(
        ranked.model.rule().normalization,
        crate::similarity::Normalization::Cosine
    );
    assert_eq!(ranked.model.command_line(&Default::default()), None);
}

/// The quality by sorting all scores of the model, which takes raw rows.
#[test]
fn a_model_ranks_raw_rows_as_it_was_measured() {
    let planted = Planted::new(2);
    let collection = planted.collection(true);
    let config = quick();
    let learner = Learner::new(&collection, &config).unwrap();
    let which = collection.judgments.queries();
    let setting = RankSetting {
        lambda: 30.0,
        pair_weight: 1.0,
        max_iter: 60,
        base_share: 2.0,
        ndcg: 0.0,
    };
    let never = crate::cancel::CancelToken::NEVER;
    let setting = Some(&setting);
    let measured = learner.quality(&which, setting, &which, never).unwrap();
    let model = learner.model(&which, setting).unwrap();
    let model = Model::from_bytes("m", &model.to_bytes()).unwrap();
    for (&query, quality) in which.iter().zip(&measured) {
        let judged = planted.judgments.of(query);
        let x = planted.queries.row(query as usize);
        let score = |d: u32| {
            let y = planted.documents.row(d as usize);
            model.score(x, y) / (model.score(x, x) * model.score(y, y)).sqrt()
        };
        let mut ranked: Vec<u32> = (0..60).filter(|&d| !judged.is_left_out(d)).collect();
        // Rounded, so that equal scores are ordered by number here, too.
        ranked.sort_by_key(|&d| (-(score(d) * 1e9).round() as i64, d));
        let naive = Quality::of(&ranked, judged);
        assert!((naive.ndcg - quality.ndcg).abs() < 1e-9);
        assert!((naive.average_precision - quality.average_precision).abs() < 1e-9);
    }
    // β is the share times the mean of S_M(d, d).
    let own: f64 = (planted.documents.iter())
        .map(|d| {
            let (indices, values) = model.preprocess().apply_row(d);
            let d = crate::data::SparseRow::new(&indices, &values);
            model.similarity().learned_score(d, d)
        })
        .sum();
    assert!((model.base() / (2.0 * own / 60.0) - 1.0).abs() < 1e-9);
}

#[test]
fn triplets_are_query_answer_and_wrong_answer_and_every_query_counts_the_same() {
    let planted = Planted::new(3);
    let collection = planted.collection(true);
    let (documents, queries, pairs) = (&planted.documents, &planted.queries, &planted.pairs);
    let supervision = Supervision::new(&collection, documents, queries, Some(pairs)).unwrap();
    let triplets = supervision.triplets(&[4, 7, 29], 2.5, 11);
    triplets.check(60 + 30 + 12 + 12).unwrap();
    let mut weights = [0.0; 31];
    for (t, (anchor, near, far)) in triplets.iter().enumerate() {
        let query = anchor - 60;
        if query < 30 {
            assert!([4, 7, 29].contains(&query));
            let judged = planted.judgments.of(query);
            let gain = |d: u32| judged.gain(d).unwrap_or(0.0);
            assert!(gain(near) > gain(far));
            assert!(!judged.is_left_out(far));
            weights[query as usize] += triplets.weight(t);
        } else {
            assert!((90..102).contains(&anchor) && near == anchor + 12);
            assert!((102..114).contains(&far));
            weights[30] += triplets.weight(t);
        }
    }
    for query in [4, 7, 29] {
        assert!((weights[query] - 1.0).abs() < 1e-12);
    }
    assert!((weights[30] - 2.5 * 3.0).abs() < 1e-12);
    // The draws of a query do not depend on what other queries there are, and differ by seed.
    let of = |queries: &[u32], seed| -> HashSet<(u32, u32, u32)> {
        let triplets = supervision.triplets(queries, 0.0, seed);
        triplets.iter().filter(|t| t.0 == 60 + 7).collect()
    };
    assert_eq!(of(&[7], 11), of(&[4, 7, 29], 11));
    assert_ne!(of(&[7], 11), of(&[7], 12));
}

#[test]
fn folds_part_the_queries() {
    let queries: Vec<u32> = (0..23).map(|q| 2 * q).collect();
    let folds = folds(&queries, 5, 9, OUTER);
    let mut all: Vec<u32> = folds.concat();
    all.sort_unstable();
    assert_eq!(all, queries);
    assert!(folds.iter().all(|fold| (4..=5).contains(&fold.len())));
    assert!(folds.iter().all(|fold| fold.is_sorted()));
    let rest = outside(&queries, &folds[2]);
    assert_eq!(rest.len() + folds[2].len(), 23);
    assert!(rest.iter().all(|query| !folds[2].contains(query)));
}

#[cfg(feature = "parallel")]
#[test]
fn the_same_seed_gives_the_same_bytes_for_any_number_of_threads() {
    let planted = Planted::new(4);
    let bytes = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let ranked = pool.build().unwrap().install(|| {
            let collection = planted.collection(true);
            rank(&collection, &quick(), &mut ()).unwrap()
        });
        (ranked.model.to_bytes(), ranked.held_out)
    };
    assert_eq!(bytes(1), bytes(3));
}

#[test]
fn bad_settings_are_refused_by_name() {
    let planted = Planted::new(5);
    let collection = planted.collection(false);
    let error = |config: RankConfig| rank(&collection, &config, &mut ()).unwrap_err().to_string();
    let cases = [
        (
            RankConfig {
                folds: 1,
                ..quick()
            },
            "`folds` is 1, expected 0, or 2 to 30",
        ),
        (
            RankConfig {
                folds: 31,
                ..quick()
            },
            "`folds` is 31, expected 0, or 2 to 30",
        ),
        (
            RankConfig {
                inner_folds: 1,
                ..quick()
            },
            "`inner_folds` is 1, expected 2 to 20",
        ),
        (
            RankConfig {
                lambda: vec![-1.0],
                ..quick()
            },
            "`lambda` is [-1.0], expected finite",
        ),
        (
            RankConfig {
                base_shares: vec![],
                ..quick()
            },
            "`base_shares` is [], expected finite",
        ),
        (
            RankConfig {
                pair_weights: vec![f64::NAN],
                ..quick()
            },
            "`pair_weights` is [NaN]",
        ),
        (
            RankConfig {
                max_iter: vec![20, 0],
                ..quick()
            },
            "`max_iter` is [20, 0], expected whole numbers above 0",
        ),
        (
            RankConfig {
                preprocess: Preprocess::Max,
                ..quick()
            },
            "`preprocess` is max, expected tfidf",
        ),
    ];
    for (config, message) in cases {
        assert!(
            error(config.clone()).starts_with(message),
            "{}",
            error(config)
        );
    }
    let other = Collection {
        queries: &planted.documents,
        ..collection
    };
    let message = rank(&other, &quick(), &mut ()).unwrap_err().to_string();
    assert_eq!(message, "there are judgments of 30 queries, but 60 queries");
    let uneven = (planted.documents.clone(), planted.queries.clone());
    let other = Collection {
        pairs: Some(&uneven),
        ..collection
    };
    let message = rank(&other, &quick(), &mut ()).unwrap_err().to_string();
    assert!(
        message.contains("60 rows on the left and 30 on the right"),
        "{message}"
    );
}

#[test]
fn an_observer_can_end_the_folds() {
    let planted = Planted::new(6);
    let mut seen = 0;
    let mut observer = |event: &Event<'_>| {
        if let Event::FoldDone { done, of } = event {
            seen = *done;
            assert_eq!(*of, 4);
            return std::ops::ControlFlow::Break(());
        }
        std::ops::ControlFlow::Continue(())
    };
    let ended = rank(&planted.collection(false), &quick(), &mut observer).unwrap();
    assert_eq!(seen, 1);
    // The setting of the first fold, learned from all queries; not all folds were measured.
    assert!(ended.held_out.is_none() && ended.setting.is_some());
    assert!(!ended.model.similarity().atoms().is_empty());
}

/// The plain similarity is the answer where nothing learned was tried, or nothing learned is better.
#[test]
fn without_time_the_plain_similarity_is_the_result() {
    let planted = Planted::new(6);
    let collection = planted.collection(false);
    let config = RankConfig {
        time: Some(Duration::ZERO),
        ..quick()
    };
    let ranked = rank(&collection, &config, &mut ()).unwrap();
    let held_out = ranked.held_out.unwrap();
    assert_eq!(held_out.learned, held_out.tfidf);
    assert_eq!((ranked.setting, held_out.settings), (None, vec![None; 3]));
    let model = Model::from_bytes("m", &ranked.model.to_bytes()).unwrap();
    let cosine = |x: SparseRow<'_>, z: SparseRow<'_>| {
        let of = |row| model.preprocess().apply_row(row);
        let ((i, v), (j, w)) = (of(x), of(z));
        SparseRow::new(&i, &v).dot(SparseRow::new(&j, &w))
    };
    let (x, z) = (planted.queries.row(3), planted.documents.row(5));
    assert!((model.score(x, z) - cosine(x, z)).abs() < 1e-12);
}

#[test]
fn the_standard_error_is_that_of_the_mean_difference() {
    let quality = |ndcg| Quality {
        ndcg,
        ..Quality::default()
    };
    let some = [0.5, 0.9, 0.4, 0.2].map(quality);
    let others = [0.5, 0.5, 0.2, 0.2].map(quality);
    // The differences 0, 0.4, 0.2 and 0 have mean 0.15 and sample variance 0.11 / 3.
    let expected = (0.11f64 / 3.0 / 4.0).sqrt();
    assert!((standard_error(&some, &others) - expected).abs() < 1e-12);
}
