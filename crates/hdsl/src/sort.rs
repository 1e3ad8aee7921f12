//! Sorting for lists whose order takes little of the time.
//!
//! The standard library's sort is compiled anew for every type and closure, to about 8 KB. That of this module is compiled
//! once.

use std::cmp::Ordering;

/// Sorts as [`slice::sort_by`] does: items that compare equal stay in order.
pub(crate) fn sort_by<T>(list: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut from = order(list.len(), &|a, b| compare(&list[a], &list[b]));
    // Each cycle of the permutation is followed once.
    for start in 0..list.len() {
        let mut to = start;
        loop {
            let next = std::mem::replace(&mut from[to], to);
            if next == start {
                break;
            }
            list.swap(to, next);
            to = next;
        }
    }
}

/// Sorts as [`slice::sort_by_key`] does.
pub(crate) fn sort_by_key<T, K: Ord>(list: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(list, |a, b| key(a).cmp(&key(b)));
}

/// The numbers below `n` in the order that `compare` says, equal ones by number.
pub(crate) fn order(n: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| compare(a, b));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;

    proptest! {
        #[test]
        fn lists_are_sorted_as_by_the_standard_library(
            keys in proptest::collection::vec(0u8..20, 0..200),
        ) {
            let mut list: Vec<(u8, usize)> = keys.into_iter().zip(0..).collect();
            let mut expected = list.clone();
            sort_by_key(&mut list, |item| item.0);
            expected.sort_by_key(|item| item.0);
            prop_assert_eq!(&list, &expected);
            sort_by(&mut list, |a, b| b.0.cmp(&a.0));
            expected.sort_by_key(|item| Reverse(item.0));
            prop_assert_eq!(list, expected);
        }
    }
}
