//! For each row, the active features it holds: flat storage with room to grow.

/// (active feature, value) lists, one a row.
#[derive(Default)]
pub(super) struct ActiveRows {
    start: Vec<u32>,
    len: Vec<u16>,
    room: Vec<u16>,
    entries: Vec<(u32, f64)>,
}

impl ActiveRows {
    pub(super) fn new(n_rows: usize) -> Self {
        Self {
            start: vec![0; n_rows],
            len: vec![0; n_rows],
            room: vec![0; n_rows],
            entries: Vec::new(),
        }
    }

    pub(super) fn row(&self, row: usize) -> &[(u32, f64)] {
        let start = self.start[row] as usize;
        &self.entries[start..start + self.len[row] as usize]
    }

    pub(super) fn push(&mut self, row: usize, feature: u32, x: f64) {
        let len = self.len[row] as usize;
        if self.len[row] == self.room[row] {
            // Move the list to the end, twice as long; what it leaves behind is at most what it now takes.
            let start = self.start[row] as usize;
            self.start[row] = u32::try_from(self.entries.len())
                .expect("lists of active features stay below 2^32 entries");
            self.room[row] = (self.room[row] * 2).max(4);
            self.entries.extend_from_within(start..start + len);
            let end = self.start[row] as usize + self.room[row] as usize;
            self.entries.resize(end, (0, 0.0));
        }
        self.entries[self.start[row] as usize + len] = (feature, x);
        self.len[row] += 1;
    }

    pub(super) fn remove(&mut self, row: usize, feature: u32) {
        let (start, len) = (self.start[row] as usize, self.len[row] as usize);
        let list = &mut self.entries[start..start + len];
        if let Some(at) = list.iter().position(|entry| entry.0 == feature) {
            list.swap(at, len - 1);
            self.len[row] -= 1;
        }
    }
}
