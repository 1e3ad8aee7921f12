//! For each row, the active features it holds: flat storage with room to grow.

/// (active feature, value) lists, one a row.
#[derive(Default)]
pub(super) struct ActiveRows {
    lists: Vec<List>,
    entries: Vec<(u32, f64)>,
}

/// Where a list is, how long, and how long it may grow: together, for rows are met in no order.
#[derive(Clone, Copy, Default)]
struct List {
    start: u32,
    len: u16,
    room: u16,
}

impl ActiveRows {
    pub(super) fn new(n_rows: usize) -> Self {
        Self {
            lists: vec![List::default(); n_rows],
            entries: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn row(&self, row: usize) -> &[(u32, f64)] {
        let List { start, len, .. } = self.lists[row];
        &self.entries[start as usize..start as usize + usize::from(len)]
    }

    pub(super) fn push(&mut self, row: usize, feature: u32, x: f64) {
        let list = &mut self.lists[row];
        let len = usize::from(list.len);
        if list.len == list.room {
            // Move the list to the end, twice as long; what it leaves behind is at most what it now takes.
            let start = list.start as usize;
            list.start = u32::try_from(self.entries.len())
                .expect("lists of active features stay below 2^32 entries");
            list.room = (list.room * 2).max(4);
            self.entries.extend_from_within(start..start + len);
            let end = list.start as usize + usize::from(list.room);
            self.entries.resize(end, (0, 0.0));
        }
        self.entries[list.start as usize + len] = (feature, x);
        list.len += 1;
    }

    pub(super) fn remove(&mut self, row: usize, feature: u32) {
        let list = &mut self.lists[row];
        let (start, len) = (list.start as usize, usize::from(list.len));
        let entries = &mut self.entries[start..start + len];
        if let Some(at) = entries.iter().position(|entry| entry.0 == feature) {
            entries.swap(at, len - 1);
            list.len -= 1;
        }
    }
}
