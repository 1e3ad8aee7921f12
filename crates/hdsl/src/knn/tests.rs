//! All searches against brute force, with and without a tree.

use super::on_base::OnBase;
use super::*;
use crate::atoms::{ActiveSet, Atom};
use crate::data::{Preprocess, Preprocessor};
use crate::similarity::{BilinearModel, Dot, Normalization};
use proptest::prelude::*;
use std::borrow::Cow;

/// Rows whose scores tie, cancel and vanish often.
fn whole(n: std::ops::Range<usize>) -> impl Strategy<Value = Rows> {
    let row = prop::collection::btree_map(0u32..12, -2i32..4, 0..7);
    prop::collection::vec(row, n).prop_map(|list| {
        let mut rows = Rows::new(12);
        for row in list {
            let (indices, values): (Vec<u32>, Vec<f64>) = row
                .into_iter()
                .map(|(f, v)| (f, f64::from(v) / 3.0))
                .unzip();
            rows.push(SparseRow::new(&indices, &values));
        }
        rows
    })
}

fn brute_force(
    train: &Rows,
    query: SparseRow<'_>,
    k: usize,
    allowed: impl Fn(u32) -> bool,
) -> Vec<Neighbor> {
    let mut all: Vec<Neighbor> = (0..train.n_rows() as u32)
        .filter(|&row| allowed(row))
        .map(|row| Neighbor {
            row,
            score: query.dot(train.row(row as usize)),
        })
        .collect();
    all.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.row.cmp(&b.row)));
    all.truncate(k);
    all
}

fn check_lists(rows: &Rows, labels: &Labels, k: [usize; 2], with_tree: bool) {
    let never = CancelToken::NEVER;
    let index =
        Index::with_tree(Cow::Borrowed(rows), Some(labels.codes()), with_tree, never).unwrap();
    let lists = class_lists(&index, rows, labels, k, never).unwrap();
    let class = labels.codes();
    for (query, row) in rows.iter().enumerate() {
        let same = |r: u32| class[r as usize] == class[query];
        let near = brute_force(rows, row, k[0], |r| r as usize != query && same(r));
        assert_eq!(lists[query][0], near, "same class, query {query}");
        let far = brute_force(rows, row, k[1], |r| !same(r));
        assert_eq!(lists[query][1], far, "other classes, query {query}");
    }
}

proptest! {
    #[test]
    fn lists_of_both_kinds_like_brute_force(
        rows in whole(1..90), classes in 1u32..5, same in 1usize..5, other in 1usize..9,
    ) {
        let labels = Labels::from_names((0..rows.n_rows() as u32).map(|r| (r * r % 7 % classes).to_string()));
        for with_tree in [true, false] {
            check_lists(&rows, &labels, [same, other], with_tree);
        }
    }

    #[test]
    fn neighbors_of_values_of_any_size_like_brute_force(
        train in whole(1..150), queries in whole(1..5), k in 1usize..6, power in -30i32..30,
    ) {
        // Values of any size, also those that single precision cannot hold.
        let factor = 10f64.powi(power);
        let scale = |rows: &Rows| {
            let values = rows.values().iter().map(|v| v * factor).collect();
            Rows::from_parts(12, rows.starts().to_vec(), rows.indices().to_vec(), values).unwrap()
        };
        let (train, queries) = (scale(&train), scale(&queries));
        let k = k.min(train.n_rows());
        for with_tree in [true, false] {
            let index = KnnIndex {
                similarity: &Dot,
                index: Index::with_tree(Cow::Borrowed(&train), None, with_tree, CancelToken::NEVER).unwrap(),
                cancel: CancelToken::NEVER,
            };
            let found = index.neighbors(&queries, k).unwrap();
            for (query, row) in queries.iter().enumerate() {
                prop_assert_eq!(&found[query], &brute_force(&train, row, k, |_| true));
            }
        }
    }
}

/// Rows enough for the default thresholds, with a few columns that almost every row has.
fn crowded(n: u32, signed: bool) -> (Rows, Labels) {
    let mut rows = Rows::new(600);
    for r in 0..n {
        let mut x = (r + 1).wrapping_mul(2_654_435_761);
        let mut row: Vec<u32> = (0..4).filter(|f| (r >> f) % 5 != 0).collect();
        for _ in 0..12 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let share = f64::from(x >> 8) / f64::from(1 << 24);
            row.push(4 + (share * share * 590.0) as u32);
        }
        row.sort_unstable();
        row.dedup();
        let value = |f: &u32| {
            let v = f64::from((f * 7 + r) % 9 + 1) / 9.0;
            if signed && (f + r).is_multiple_of(4) {
                -v
            } else {
                v
            }
        };
        let values: Vec<f64> = row.iter().map(value).collect();
        rows.push(SparseRow::new(&row, &values));
    }
    // Two large classes, one of three rows and one of a single row.
    let class = |r: u32| match r {
        5 => "one",
        9 | 80 | 300 => "three",
        r if r % 3 == 0 => "large",
        _ => "larger",
    };
    (rows, Labels::from_names((0..n).map(class)))
}

#[test]
fn rows_that_are_not_allowed_do_not_displace_others() {
    let (rows, _) = crowded(900, true);
    let index = KnnIndex::new(&Dot, &rows);
    // All but one row, every hundredth row, two rows, none.
    let rules: [fn(u32, u32) -> bool; 4] = [
        |query, row| query != row,
        |query, row| row % 100 == query % 100,
        |query, row| row == query / 2 || row == query + 1,
        |_, _| false,
    ];
    for allowed in rules {
        let found = index.neighbors_where(&rows, 5, allowed).unwrap();
        for (query, row) in (0..).zip(rows.iter()) {
            let expected = brute_force(&rows, row, 5, |r| allowed(query, r));
            assert_eq!(found[query as usize], expected, "query {query}");
        }
    }
}

#[test]
fn crowded_columns_and_small_classes_like_brute_force() {
    for signed in [false, true] {
        let (rows, labels) = crowded(900, signed);
        for with_tree in [true, false] {
            check_lists(&rows, &labels, [3, 5], with_tree);
        }
        check_lists(&rows, &labels, [40, 2], true);
    }
}

#[test]
fn trees_of_several_levels_like_brute_force() {
    for signed in [false, true] {
        let (rows, labels) = crowded(8_300, signed);
        let class = labels.codes();
        let index = Index::new(Cow::Borrowed(&rows), Some(class), CancelToken::NEVER).unwrap();
        assert_eq!(index.tree_height(), 5);
        let lists = mine(&rows, &labels);
        for query in (0..rows.n_rows()).step_by(97).chain([5, 9]) {
            let same = |r: u32| class[r as usize] == class[query];
            let row = rows.row(query);
            let near = brute_force(&rows, row, 3, |r| r as usize != query && same(r));
            assert_eq!(lists[query][0], near, "same class, query {query}");
            let far = brute_force(&rows, row, 5, |r| !same(r));
            assert_eq!(lists[query][1], far, "others, query {query}");
        }
    }
}

fn mine(rows: &Rows, labels: &Labels) -> Vec<Vec<Vec<Neighbor>>> {
    class_neighbors(&Dot, rows, labels, [3, 5], CancelToken::NEVER).unwrap()
}

#[test]
fn mining_gives_the_same_bytes_for_one_and_two_threads() {
    let (rows, labels) = crowded(1500, true);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| mine(&rows, &labels))
    };
    assert_eq!(run(1), run(2));
}

/// Fewer rows than a dense column is shared among: a column must still cost something, or pruning never ends.
#[test]
fn a_handful_of_rows_can_be_pruned() {
    let (rows, _) = crowded(3, false);
    let labels = Labels::from_names(["a", "a", "b"]);
    for with_tree in [true, false] {
        check_lists(&rows, &labels, [1, 1], with_tree);
    }
}

#[test]
fn wide_rows_of_fractions_are_ranked_right() {
    let mut rng = crate::random::rng(11, 0);
    let mut rows = Rows::new(900);
    for _ in 0..200 {
        let mut columns: Vec<u32> = (0..300)
            .map(|_| {
                let u = crate::random::below(&mut rng, 1000) as f64 / 1000.0;
                (900.0 * u * u) as u32
            })
            .collect();
        columns.sort_unstable();
        columns.dedup();
        let values: Vec<f64> = columns
            .iter()
            .map(|&c| {
                let most = 1 + c as usize % 9;
                (1 + crate::random::below(&mut rng, most)) as f64 / most as f64
            })
            .collect();
        rows.push(SparseRow::new(&columns, &values));
    }
    let labels = Labels::from_names((0..200).map(|r| ["a", "b", "c"][r % 3]));
    for with_tree in [true, false] {
        check_lists(&rows, &labels, [3, 5], with_tree);
    }
}

proptest! {
    #[test]
    fn neighbors_by_blocks_are_those_among_all_rows(
        rows in whole(1..40), codes in prop::collection::vec(0u32..3, 40), cuts in prop::collection::vec(0usize..40, 0..4),
        k in (1usize..5, 1usize..5)
    ) {
        let n = rows.n_rows();
        let names = ["a", "b", "c"].map(String::from).to_vec();
        let labels = Labels::from_codes(names, codes[..n].to_vec()).unwrap();
        let counts = [k.0, k.1];
        let whole = class_neighbors(&Dot, &rows, &labels, counts, CancelToken::NEVER).unwrap();
        let mut bounds: Vec<usize> = cuts.into_iter().map(|cut| cut.min(n)).chain([0, n]).collect();
        bounds.sort_unstable();
        let parts: Vec<(Rows, usize)> = bounds.windows(2)
            .map(|b| (rows.select(&(b[0] as u32..b[1] as u32).collect::<Vec<_>>()), b[0])).collect();
        let block = |(rows, first): &'_ (Rows, usize)| -> (Rows, Vec<u32>, u32) {
            (rows.clone(), codes[*first..first + rows.n_rows()].to_vec(), *first as u32)
        };
        for queries in &parts {
            let (q, q_codes, q_first) = block(queries);
            let found: Vec<_> = parts.iter().map(|items| {
                let (i, i_codes, i_first) = block(items);
                class_neighbors_between(
                    &Dot,
                    Block { rows: &q, classes: &q_codes, first: q_first },
                    Block { rows: &i, classes: &i_codes, first: i_first },
                    counts,
                ).unwrap()
            }).collect();
            for query in 0..q.n_rows() {
                for which in 0..2 {
                    let lists = found.iter().map(|f| f[query][which].as_slice());
                    let merged = merge_neighbors(lists, counts[which]);
                    prop_assert_eq!(&merged, &whole[q_first as usize + query][which]);
                }
            }
        }
    }
}

/// A model on a base with atoms of these features.
fn on_base(rows: &Rows, atoms: &[(u32, u32)], base: f64) -> BilinearModel {
    let mut active = ActiveSet::default();
    for (at, &(i, j)) in atoms.iter().enumerate() {
        let atom = match at % 2 {
            0 => Atom::plus(i.min(j), i.max(j)),
            _ => Atom::minus(i.min(j), i.max(j)),
        };
        if let Some(atom) = atom.ok().filter(|atom| !active.atoms().contains(atom)) {
            let weights = active.atoms().to_vec().into_iter().zip(active.weights());
            let halved: Vec<_> = weights.map(|(a, w)| (a, w / 2.0)).collect();
            let own = if halved.is_empty() { 1.0 } else { 0.5 };
            let all: Vec<_> = halved.into_iter().chain([(atom, own)]).collect();
            active = ActiveSet::from_weighted(&all).unwrap();
        }
    }
    BilinearModel::on_base(rows.n_features(), 7.0, &active, base).unwrap()
}

proptest! {
    #[test]
    fn predictions_on_a_base_are_those_of_mapped_rows(
        rows in whole(3..90), queries in whole(1..6), base in 1u32..400, unit in prop::bool::ANY,
        atoms in prop::collection::vec((0u32..12, 0u32..12), 0..9),
    ) {
        let kind = if unit { Preprocess::Unit } else { Preprocess::None };
        let [rows, queries] = [rows, queries].map(|rows| Preprocessor::fit(kind, &rows).apply(&rows));
        let labels = Labels::from_names((0..rows.n_rows()).map(|r| (r * r % 7 % 3).to_string()));
        let model = on_base(&rows, &atoms, f64::from(base) / 37.0);
        let votes = [(1, Vote::Majority), (3, Vote::Weighted), (2, Vote::Squared), (1, Vote::ClassMean)];
        let rules = Normalization::ALL.into_iter().flat_map(|normalization| {
            votes.map(|(k, vote)| PredictionRule { k, vote, normalization })
        });
        let rules: Vec<PredictionRule> = rules.collect();
        let mapped = [Normalization::Dot, Normalization::Cosine].map(|n| {
            [&rows, &queries].map(|rows| n.apply(model.queries(rows)).into_owned())
        });
        let predictor = Predictor::new(&rows, &labels, &queries).unwrap();
        for most in [0, usize::MAX] {
            let index = BaseIndex::with_products(&rows, &queries, most).unwrap();
            let found = OnBase::new(&index, &rows, &model).unwrap();
            let found = found.neighbors([&mapped[0][1], &mapped[1][1]], [3, 2], CancelToken::NEVER).unwrap();
            for (query, lists) in found.iter().enumerate() {
                for (at, (list, k)) in lists.iter().zip([3, 2]).enumerate() {
                    let [items, queries] = &mapped[at];
                    prop_assert_eq!(list, &brute_force(items, queries.row(query), k, |_| true));
                }
            }
            let predicted = predictor.predictions_on_base(&index, &model, &rules).unwrap();
            prop_assert_eq!(predicted, predictor.predictions(&model, &rules).unwrap());
        }
    }

    #[test]
    fn the_scores_of_class_means_are_dot_products(rows in whole(4..60), queries in whole(1..6), classes in 1usize..5) {
        let labels = Labels::from_names((0..rows.n_rows()).map(|r| (r * r % 7 % classes).to_string()));
        let means = ClassMeans::new(&rows, &labels).unwrap();
        let (nearest, scores) = (means.nearest(&queries).unwrap(), means.scores(&queries).unwrap());
        let mut sums = vec![vec![0.0; 12]; labels.names().len()];
        for (row, &class) in rows.iter().zip(labels.codes()) {
            row.iter().for_each(|(column, value)| sums[class as usize][column as usize] += value);
        }
        let mut of_classes = Rows::new(12);
        for (sums, count) in sums.iter().zip(labels.counts()) {
            let mean: Vec<f64> = sums.iter().map(|sum| sum / count as f64).collect();
            of_classes.push(SparseRow::new(&(0..12).collect::<Vec<u32>>(), &mean));
        }
        for (query, row) in queries.iter().enumerate() {
            let wanted = brute_force(&of_classes, row, sums.len(), |_| true);
            let wanted: Vec<(u32, f64)> = wanted.iter().map(|near| (near.row, near.score)).collect();
            prop_assert_eq!(nearest[query], wanted[0].0);
            prop_assert_eq!(&scores[query], &wanted);
        }
    }
}

#[test]
fn rows_out_of_range_are_mapped() {
    let rows = |value| Rows::from_parts(2, vec![0, 1, 2], vec![0, 1], vec![value, 1.0]).unwrap();
    assert!(BaseIndex::new(&rows(1e4), &rows(1.0)).is_some());
    for value in [1e-7, 1e7] {
        assert!(BaseIndex::new(&rows(value), &rows(1.0)).is_none());
        assert!(BaseIndex::new(&rows(1.0), &rows(value)).is_none());
    }
    let (rows, index) = (rows(1.0), BaseIndex::new(&rows(1.0), &rows(1.0)).unwrap());
    for base in [1e-12, 1e12] {
        let model = on_base(&rows, &[(0, 1)], base);
        assert!(OnBase::new(&index, &rows, &model).is_none());
        let labels = Labels::from_names(["a", "b"]);
        let predictor = Predictor::new(&rows, &labels, &rows).unwrap();
        let rules = [PredictionRule::nearest(1)];
        let predicted = predictor
            .predictions_on_base(&index, &model, &rules)
            .unwrap();
        assert_eq!(predicted, predictor.predictions(&model, &rules).unwrap());
    }
}
