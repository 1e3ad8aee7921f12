//! The search against the one without an index, which has tests against brute force.

use crate::common::{model, rule, signed, texts};
use hdsl::index::NewRows;
use hdsl::{
    CancelToken, Index, KnnIndex, Labels, Model, Neighbor, Normalization, PredictionRule,
    Preprocess, Rows, SparseRow, Vote, knn,
};
use proptest::prelude::*;

/// The same search without an index.
fn expected(model: &Model, rows: &Rows, queries: &Rows, k: usize) -> Vec<Vec<Neighbor>> {
    let similarity = model.rule().normalization.of(model.similarity());
    let knn = KnnIndex::new(&similarity, &model.prepare(rows));
    knn.neighbors(&model.prepare(queries), k).unwrap()
}

/// With columns and several segments, all kinds of models give the neighbors of [`KnnIndex`] bit for bit.
#[test]
fn neighbors_are_those_of_the_search_without_an_index() {
    let rows = texts(3000, 400, 1);
    let queries = texts(30, 400, 2);
    for base in [0.0, 0.7] {
        for preprocess in [Preprocess::None, Preprocess::Unit, Preprocess::Tfidf] {
            for normalization in Normalization::ALL {
                let model = model(&rows, base, preprocess, rule(normalization));
                let mut index = Index::new(model.clone(), None);
                for part in [0..1700u32, 1700..1705, 1705..3000] {
                    let part: Vec<u32> = part.collect();
                    index.add(&NewRows::new(&rows.select(&part))).unwrap();
                }
                assert_eq!(index.n_segments(), 3);
                for k in [1, 10, 700] {
                    let found = index.search(&queries, k).unwrap();
                    assert_eq!(
                        found,
                        expected(&model, &rows, &queries, k),
                        "{base} {preprocess} {k}"
                    );
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Any order of additions and removals gives the neighbors of the rows that are left.
    #[test]
    fn additions_and_removals_in_any_order(
        seed in 0u64..1000,
        sizes in prop::collection::vec(prop_oneof![1usize..4, 30usize..80, 1024usize..1300], 1..6),
        share in 2usize..9,
        base in prop_oneof![Just(0.0), Just(0.5)],
        k in 1usize..30,
    ) {
        let rows = signed(sizes.iter().sum(), seed);
        let model = model(&rows, base, Preprocess::None, rule(Normalization::Dot));
        let mut index = Index::new(model.clone(), None);
        let (mut start, mut left) = (0u32, Vec::new());
        for size in sizes {
            let part: Vec<u32> = (start..start + size as u32).collect();
            index.add(&NewRows::new(&rows.select(&part))).unwrap();
            left.extend(part);
            start += size as u32;
            let gone: Vec<u32> = left.iter().copied().filter(|row| (row + seed as u32).is_multiple_of(share as u32)).collect();
            index.remove(&gone).unwrap();
            left.retain(|row| !gone.contains(row));
        }
        prop_assert_eq!(index.rows().unwrap(), left.clone());
        prop_assume!(!left.is_empty());
        let queries = signed(8, seed + 7);
        let k = k.min(left.len());
        let kept = rows.select(&left);
        let mut wanted = expected(&model, &kept, &queries, k);
        wanted.iter_mut().flatten().for_each(|n| n.row = left[n.row as usize]);
        prop_assert_eq!(index.search(&queries, k).unwrap(), wanted.clone());
        let compact = index.compacted().unwrap();
        prop_assert_eq!(compact.search(&queries, k).unwrap(), wanted);
        prop_assert!(compact.n_segments() <= 1);
    }
}

/// Values near the limits of double precision, where bounds cannot be summed.
#[test]
fn extreme_values_are_ranked_as_without_an_index() {
    for factor in [1e-300, 1e-160, 1e150, 1e300] {
        let mut rows = Rows::new(40);
        for row in signed(1500, 3).iter() {
            let values: Vec<f64> = row.values().iter().map(|v| v * factor).collect();
            rows.push(SparseRow::new(row.indices(), &values));
        }
        let model = model(&rows, 1.0, Preprocess::None, rule(Normalization::Dot));
        let mut index = Index::new(model.clone(), None);
        index.add(&NewRows::new(&rows)).unwrap();
        let queries = rows.select(&[0, 1, 2, 3, 4, 5]);
        let found = index.search(&queries, 9).unwrap();
        assert_eq!(found, expected(&model, &rows, &queries, 9), "{factor}");
    }
}

#[test]
fn one_and_two_threads_find_the_same() {
    let rows = texts(5000, 300, 5);
    let model = model(&rows, 0.4, Preprocess::Unit, rule(Normalization::Cosine));
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let mut index = Index::new(model.clone(), None);
            let half: Vec<u32> = (0..2500).collect();
            index.add(&NewRows::new(&rows.select(&half))).unwrap();
            let half: Vec<u32> = (2500..5000).collect();
            index.add(&NewRows::new(&rows.select(&half))).unwrap();
            index.search(&texts(40, 300, 6), 10).unwrap()
        })
    };
    assert_eq!(run(1), run(2));
}

#[test]
fn single_rows_are_merged_into_few_segments() {
    let rows = signed(700, 1);
    let model = model(&rows, 0.0, Preprocess::None, rule(Normalization::Dot));
    let mut index = Index::new(model.clone(), None);
    for row in 0..700 {
        index.add(&NewRows::new(&rows.select(&[row]))).unwrap();
    }
    assert!(index.n_segments() < 30, "{}", index.n_segments());
    let queries = signed(5, 2);
    assert_eq!(
        index.search(&queries, 4).unwrap(),
        expected(&model, &rows, &queries, 4)
    );
}

/// All votes, with classes whose order as numbers differs from that as words.
#[test]
fn predictions_are_those_of_classify() {
    let rows = texts(1500, 100, 8);
    let labels = Labels::from_names((0..1500).map(|row| ["10", "9", "b", "a"][(row * 7) % 4]));
    let queries = texts(80, 100, 9);
    for vote in Vote::ALL {
        for normalization in Normalization::ALL {
            let rule = PredictionRule {
                k: 5,
                vote,
                normalization,
            };
            let model = model(&rows, 0.2, Preprocess::Max, rule);
            let mut index = Index::new(model.clone(), None);
            let new = NewRows {
                labels: Some(&labels),
                ..NewRows::new(&rows)
            };
            index.add(&new).unwrap();
            let wanted = knn::classify(
                model.similarity(),
                &model.prepare(&rows),
                &labels,
                &model.prepare(&queries),
                &rule,
            );
            let wanted = wanted.unwrap();
            let wanted: Vec<&str> = (0..queries.n_rows()).map(|row| wanted.name(row)).collect();
            assert_eq!(
                index.predict(&queries, &rule, CancelToken::NEVER).unwrap(),
                wanted
            );
        }
    }
    let rows = texts(20, 100, 8);
    let mut index = Index::new(
        model(&rows, 0.2, Preprocess::Max, rule(Normalization::Dot)),
        None,
    );
    index.add(&NewRows::new(&rows)).unwrap();
    let error = index
        .predict(&queries, &rule(Normalization::Dot), CancelToken::NEVER)
        .unwrap_err();
    assert!(error.to_string().contains("has no label"), "{error}");
}
