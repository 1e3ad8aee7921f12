//! Items grouped by key: a stable counting sort in compressed sparse form.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Where the groups `0..n_groups` start when items are sorted by key, and at the end the number of items: the items
/// of group g go to `starts[g]..starts[g + 1]`.
///
/// # Panics
/// If a key is not below `n_groups`.
pub(crate) fn group_starts(n_groups: usize, keys: impl IntoIterator<Item = u32>) -> Vec<usize> {
    let mut starts = vec![0; n_groups + 1];
    for key in keys {
        starts[key as usize + 1] += 1;
    }
    for group in 0..n_groups {
        starts[group + 1] += starts[group];
    }
    starts
}

/// Items by group. Items of one group keep the order in which they were given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Groups<T> {
    starts: Vec<usize>,
    items: Vec<T>,
}

impl<T: Copy + Default> Groups<T> {
    /// Groups (key, item) pairs with keys in `0..n_groups`. The pairs are gone through twice.
    pub(crate) fn new(n_groups: usize, pairs: impl Iterator<Item = (u32, T)> + Clone) -> Self {
        // Shifted by one group, so that each entry can serve as the place of the group's next item and is where the
        // next group starts afterwards.
        let mut starts = group_starts(n_groups + 1, pairs.clone().map(|(key, _)| key + 1));
        let mut items = vec![T::default(); starts[n_groups + 1]];
        for (key, item) in pairs {
            let place = &mut starts[key as usize + 1];
            items[*place] = item;
            *place += 1;
        }
        starts.pop();
        Self { starts, items }
    }
}

impl<T> Groups<T> {
    /// Takes groups by their starts and items.
    pub(crate) fn from_parts(starts: Vec<usize>, items: Vec<T>) -> Self {
        Self { starts, items }
    }

    /// The items of one group.
    #[inline]
    pub(crate) fn of(&self, group: usize) -> &[T] {
        &self.items[self.range(group)]
    }

    /// The places of a group's items among all items.
    #[inline]
    pub(crate) fn range(&self, group: usize) -> Range<usize> {
        self.starts[group]..self.starts[group + 1]
    }

    /// Where each group starts, and the end of the last.
    pub(crate) fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// All items, group after group.
    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }

    /// Starts and items.
    pub(crate) fn into_parts(self) -> (Vec<usize>, Vec<T>) {
        (self.starts, self.items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn groups_hold_their_items_in_the_given_order(
            keys in prop::collection::vec(0u32..7, 0..40),
        ) {
            for n_groups in [7, 9] {
                let pairs = keys.iter().copied().zip(0u32..);
                let groups = Groups::new(n_groups, pairs.clone());
                prop_assert_eq!(groups.starts(), &group_starts(n_groups, keys.iter().copied())[..]);
                for group in 0..n_groups {
                    let expected = pairs.clone().filter(|pair| pair.0 as usize == group);
                    let expected: Vec<u32> = expected.map(|pair| pair.1).collect();
                    prop_assert_eq!(groups.of(group), &expected);
                }
                prop_assert_eq!(groups.items().len(), keys.len());
            }
        }
    }
}
