//! Changes of pair coefficients that were applied to C, but not yet to D and the H_ij of active atoms.

use super::Affine;

/// Changes by anchor. Pairs are numbered from the anchor's first pair.
#[derive(Default)]
pub(super) struct Changes {
    list: Vec<(usize, Affine)>,
    /// Anchors, and where the changes of each end in the list. An anchor occurs twice if triplets of it are affected by a step and
    /// others only change their segment.
    anchors: Vec<(usize, usize)>,
}

impl Changes {
    /// Adds the changes of an anchor's pairs, and returns them.
    pub(super) fn push(
        &mut self,
        anchor: usize,
        changes: impl Iterator<Item = (usize, Affine)>,
    ) -> &[(usize, Affine)] {
        let start = self.list.len();
        self.list.extend(changes);
        self.anchors.push((anchor, self.list.len()));
        &self.list[start..]
    }

    /// The number of changes.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// The anchors with their changes, in the order in which they were added.
    pub(super) fn by_anchor(&self) -> impl Iterator<Item = (usize, &[(usize, Affine)])> {
        let mut start = 0;
        self.anchors.iter().map(move |&(anchor, end)| {
            let changes = &self.list[start..end];
            start = end;
            (anchor, changes)
        })
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.anchors.clear();
    }
}
