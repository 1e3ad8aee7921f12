use crate::strategies::*;
use hdsl::knn::{self, Neighbor};
use hdsl::{BilinearModel, Dot, KnnIndex, Labels, PredictionRule, Rows, Similarity, SparseRow};
use proptest::prelude::*;

/// Sorts all rows by mapped dot product, which is summed in the same order as the index sums it.
fn brute_force(
    similarity: &impl Similarity,
    train: &Rows,
    queries: &Rows,
    k: usize,
    allowed: impl Fn(u32, u32) -> bool,
) -> Vec<Vec<Neighbor>> {
    let (items, queries) = (similarity.items(train), similarity.queries(queries));
    let one = |q: usize| {
        let mut all: Vec<Neighbor> = (0..train.n_rows() as u32)
            .filter(|&row| allowed(q as u32, row))
            .map(|row| Neighbor {
                row,
                score: queries.row(q).dot(items.row(row as usize)),
            })
            .collect();
        all.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.row.cmp(&b.row)));
        all.truncate(k);
        all
    };
    (0..queries.n_rows()).map(one).collect()
}

fn agrees_with_brute_force(similarity: &impl Similarity, train: &Rows, queries: &Rows, k: usize) {
    let index = KnnIndex::new(similarity, train);
    let k = k.min(train.n_rows());
    let found = index.neighbors(queries, k).unwrap();
    assert_eq!(
        found,
        brute_force(similarity, train, queries, k, |_, _| true)
    );
    let others = |q: u32, r: u32| q != r;
    if k < train.n_rows() {
        let found = index.neighbors_of_others(train, k).unwrap();
        assert_eq!(found, brute_force(similarity, train, train, k, others));
    }
    let odd = |q: u32, r: u32| (q + r) % 3 == 1;
    let found = index.neighbors_where(queries, k, odd).unwrap();
    assert_eq!(found, brute_force(similarity, train, queries, k, odd));
}

proptest! {
    #[test]
    fn ties_zeros_and_negative_scores_like_brute_force(
        train in whole_rows(1..60), queries in whole_rows(1..6), k in 1usize..50,
    ) {
        agrees_with_brute_force(&Dot, &train, &queries, k);
    }

    #[test]
    fn learned_similarities_like_brute_force(
        model in bilinear(), train in rows(1..20), queries in rows(1..6), k in 1usize..8,
    ) {
        agrees_with_brute_force(&model, &train, &queries, k);
        agrees_with_brute_force(&model.reduced(Some(2)), &train, &queries, k);
    }
}

/// Many rows and short queries, so that both ways of searching are taken.
fn spread(n: u32, seed: u32) -> Rows {
    let mut rows = Rows::new(400);
    for r in 0..n {
        let x = (r + seed).wrapping_mul(2_654_435_761);
        let mut row = vec![(x >> 8) % 400, (x >> 20) % 400];
        if r % 7 == 0 {
            row.extend([0, 1]);
        }
        row.sort_unstable();
        row.dedup();
        let values: Vec<f64> = row.iter().map(|f| f64::from((f + r) % 5) - 2.0).collect();
        rows.push(SparseRow::new(&row, &values));
    }
    rows
}

#[test]
fn short_and_long_lists_give_the_same_neighbors() {
    let (train, queries) = (spread(900, 0), spread(60, 77));
    for k in [1, 3, 32, 33, 400, 900] {
        agrees_with_brute_force(&Dot, &train, &queries, k);
    }
}

#[test]
fn same_bytes_for_one_and_two_threads() {
    let (train, queries) = (spread(900, 0), spread(300, 77));
    let atoms = (0..20u32)
        .map(|i| (hdsl::Atom::plus(i, i + 30).unwrap(), 0.05))
        .collect();
    let model = BilinearModel::new(400, 3.0, atoms).unwrap();
    let run = |threads| {
        pool(threads).install(|| {
            KnnIndex::new(&model, &train)
                .neighbors(&queries, 5)
                .unwrap()
        })
    };
    assert_eq!(run(1), run(2));
}

#[test]
fn too_few_rows_are_refused() {
    let rows = Rows::from_parts(1, vec![0, 1, 2], vec![0, 0], vec![1.0, 1.0]).unwrap();
    let index = KnnIndex::new(&Dot, &rows);
    let message = index.neighbors(&rows, 3).unwrap_err().to_string();
    assert!(
        message.contains("fewer rows than neighbors to find"),
        "{message}"
    );
    assert!(index.neighbors_of_others(&rows, 2).is_err());
    assert!(index.neighbors(&rows, 0).is_err());
    assert!(index.neighbors_where(&rows, 0, |_, _| true).is_err());
    let labels = Labels::from_names(["a"]);
    assert!(knn::classify(&Dot, &rows, &labels, &rows, &PredictionRule::nearest(1)).is_err());
}

#[test]
fn votes_and_errors_by_hand() {
    // Two classes of the training part, one more in the test part; names in another order there.
    let train = Rows::from_parts(2, vec![0, 1, 2, 3], vec![0, 0, 1], vec![1.0, 0.5, 1.0]).unwrap();
    let labels = Labels::from_names(["pear", "pear", "zinc"]);
    let test = Rows::from_parts(2, vec![0, 1, 2, 3, 3], vec![0, 1, 1], vec![1.0; 3]).unwrap();
    let truth = Labels::from_names(["pear", "zinc", "apple", "zinc"]);
    let result = knn::evaluate_similarity(
        &Dot,
        &train,
        &labels,
        &test,
        &truth,
        &PredictionRule::nearest(1),
    )
    .unwrap();
    // The last test row is empty: all scores are 0, so row 0 is nearest.
    assert_eq!(result.classes, ["pear", "zinc", "apple"]);
    assert_eq!(result.confusion(), [[1, 0, 0], [1, 1, 0], [0, 1, 0]]);
    assert_eq!((result.n_test, result.n_wrong, result.error), (4, 2, 0.5));
    assert_eq!(result.balanced_error, (0.0 + 0.5 + 1.0) / 3.0);
    assert_eq!(result.count(1, 0), 1);
    assert!(knn::evaluate(&labels, &truth).is_err());
}
