//! However triplets are kept, every way to them gives the same ones.

use super::*;
use crate::cancel::CancelToken;
use crate::data::{Labels, Rows};
use crate::similarity::Dot;
use proptest::prelude::*;

fn written_out(triplets: &Triplets) -> Triplets {
    let mut list = Triplets::new();
    list.append(triplets);
    assert!(matches!(list.kind, Kind::Listed(_)));
    list
}

/// Random rows with one of a few labels each, some of them perhaps alone in their class.
fn labeled() -> impl Strategy<Value = (Rows, Labels)> {
    prop::collection::vec((0u8..5, prop::collection::vec(0u8..3, 4)), 4..20).prop_filter_map(
        "two classes, one of them with two rows",
        |rows| {
            let labels = Labels::from_names(rows.iter().map(|row| row.0.to_string()));
            let counts = labels.counts();
            let mut data = Rows::new(4);
            for (_, values) in &rows {
                let filled: Vec<u32> = (0..4).filter(|&i| values[i as usize] > 0).collect();
                let values: Vec<f64> = filled
                    .iter()
                    .map(|&i| f64::from(values[i as usize]))
                    .collect();
                data.push(crate::SparseRow::new(&filled, &values));
            }
            (counts.len() > 1 && counts.iter().any(|&n| n > 1)).then_some((data, labels))
        },
    )
}

/// Everything there is to say about triplets by anchor, by every way there is to them.
fn agree(triplets: &Triplets, n_rows: usize) {
    let list = written_out(triplets);
    assert_eq!(&list, triplets);
    assert_eq!(triplets, &list);
    assert_eq!(list.len(), triplets.len());
    assert_eq!(list.total_weight(), triplets.total_weight());
    let all: Vec<_> = (0..list.len()).map(|t| list.get(t)).collect();
    assert!(triplets.iter().eq(all.iter().copied()));
    let mut met = Vec::new();
    triplets.each(|anchor, near, far| met.push((anchor, near, far)));
    assert_eq!(met, all);
    assert!(triplets.check(n_rows).is_ok() && list.check(n_rows).is_ok());

    let anchors = triplets.by_anchor(n_rows);
    assert_eq!(anchors.starts().len(), n_rows + 1);
    assert_eq!(anchors.starts()[n_rows], all.len());
    let mut next = 0;
    for anchor in 0..n_rows {
        // What a stable sort by anchor would give.
        let expected: Vec<usize> = (0..all.len())
            .filter(|&t| all[t].0 as usize == anchor)
            .collect();
        assert_eq!(anchors.range(anchor), next..next + expected.len());
        let mut found = Vec::new();
        triplets.each_of_anchor(&anchors, anchor, |position, near, far| {
            assert_eq!(position, next);
            let t = anchors.triplet(position);
            assert_eq!(triplets.weight_at(&anchors, position), list.weight(t));
            assert_eq!(all[t], (anchor as u32, near, far));
            found.push(t);
            next += 1;
        });
        assert_eq!(found, expected);
    }
}

proptest! {
    #[test]
    fn triplets_made_again_are_the_same(
        (rows, labels) in labeled(), per_row in 1usize..7, targets in 1usize..4, impostors in 1usize..4, seed: u64,
    ) {
        let n_rows = rows.n_rows();
        let random = Triplets::at_random(&rows, &labels, per_row, seed).unwrap();
        prop_assert!(random.by_anchor(n_rows).order.is_none());
        agree(&random, n_rows);
        let near = Triplets::by_neighbors(&Dot, &rows, &labels, [targets, impostors], CancelToken::NEVER).unwrap();
        prop_assert!(near.by_anchor(n_rows).order.is_none());
        agree(&near, n_rows);
        agree(&near, n_rows + 3);
        prop_assert!(near.check(n_rows - 1).is_err() && random.check(n_rows - 1).is_err());
    }

    #[test]
    fn given_triplets_are_grouped_by_anchor(
        list in prop::collection::vec((0u32..9, 0u32..9, 0u32..9, 1u8..3), 1..40), sort: bool,
    ) {
        let mut list: Vec<_> = list.into_iter().filter(|(_, near, far, _)| near != far).collect();
        if sort {
            list.sort_by_key(|&(anchor, ..)| anchor);
        }
        prop_assume!(!list.is_empty());
        let mut triplets = Triplets::new();
        for &(anchor, near, far, weight) in &list {
            triplets.push_weighted(anchor, near, far, f64::from(weight));
        }
        prop_assert_eq!(
            triplets.by_anchor(9).order.is_none(),
            list.is_sorted_by_key(|&(anchor, ..)| anchor)
        );
        agree(&triplets, 9);
    }
}

#[test]
fn neighbors_come_target_by_target() {
    // Scores are products of the values below: row 0 has two targets, row 4 has none.
    let values = vec![1.0, 3.0, 2.0, 4.0, 5.0];
    let rows = Rows::from_parts(1, vec![0, 1, 2, 3, 4, 5], vec![0; 5], values).unwrap();
    let labels = Labels::from_names(["a", "a", "a", "b", "c"]);
    let triplets =
        Triplets::by_neighbors(&Dot, &rows, &labels, [2, 2], CancelToken::NEVER).unwrap();
    let expected = [(1, 4), (1, 3), (2, 4), (2, 3)].map(|(near, far)| (0, near, far));
    assert_eq!(triplets.iter().take(4).collect::<Vec<_>>(), expected);
    assert_eq!(triplets.len(), 12);
}

#[test]
fn adding_to_mined_triplets_writes_them_out() {
    let rows = Rows::from_parts(1, vec![0; 5], vec![], vec![]).unwrap();
    let labels = Labels::from_names(["a", "b", "a", "c"]);
    let mined = Triplets::at_random(&rows, &labels, 3, 1).unwrap();
    let mut more = mined.clone();
    more.push(3, 1, 2);
    assert_eq!(more.len(), mined.len() + 1);
    assert!(more.iter().zip(mined.iter()).all(|(a, b)| a == b));
    assert_eq!(more.get(mined.len()), (3, 1, 2));
    assert_eq!(more.weights(), None);
    more.push_weighted(3, 1, 0, 2.0);
    assert_eq!(more.total_weight(), mined.len() as f64 + 3.0);
    assert_ne!(more, mined);
    let other_seed = Triplets::at_random(&rows, &labels, 3, 2).unwrap();
    assert_ne!(other_seed, mined);
    assert_eq!(mined, Triplets::at_random(&rows, &labels, 3, 1).unwrap());
}
