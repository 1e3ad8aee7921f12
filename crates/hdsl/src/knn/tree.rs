//! Bounds for many rows at once, where rows have few columns to choose from: a tree over rows that are alike.
//!
//! Eight neighboring places are a leaf, eight leaves a node, and so on until the nodes are few. For each column that
//! occurs below it, a node has the greatest and the least value below each of its eight children. No row below a child
//! scores more than Σ max(x · least, x · greatest) over the query's columns; for a single row, the child of a leaf,
//! that is its score. So one pass over the query's columns bounds eight children, and a search that opens the more
//! promising nodes first sees few of them.

use std::ops::Range;

/// Children of a node.
const FAN: usize = 8;

/// The highest nodes, at most so many, are bounded all at once.
const TOPS: usize = 128;

/// A number for each child, in single precision.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Lanes([f32; FAN]);

/// How many of the highest nodes are bounded at a time: as many as there are registers for.
const STRETCH: usize = 32;

/// A number for each of some of the highest nodes.
type Stretch = [f32; STRETCH];

const ZEROS: Lanes = Lanes([0.0; FAN]);

/// All levels of the tree, leaves first.
pub(super) struct Tree {
    n_places: usize,
    levels: Vec<Level>,
    /// The greatest and the least values below the highest nodes, for each stretch of them and each column.
    tops: Vec<[Stretch; 2]>,
}

/// The nodes of one level.
struct Level {
    n_nodes: usize,
    /// How many places are below a child.
    span: usize,
    n_ranks: usize,
    /// Where the lanes of a column are, counted from the node's first; 0 if it does not occur below the node.
    slots: Vec<u16>,
    /// The first lanes of each node, which are zeros, for all columns that do not occur.
    firsts: Vec<u32>,
    greatest: Vec<Lanes>,
    /// Nothing if there is no difference.
    least: Vec<Lanes>,
}

/// Rows by place: columns by rank, and values.
pub(super) struct ByPlace<'a> {
    pub(super) starts: &'a [usize],
    pub(super) ranks: &'a [u32],
    pub(super) values: &'a [f64],
}

/// A query in single precision, its values from 0 up and those below.
#[derive(Default)]
pub(super) struct Query {
    above: Vec<(u32, f32)>,
    below: Vec<(u32, f32)>,
}

impl Query {
    pub(super) fn set(&mut self, columns: &[(u32, f64)]) {
        self.above.clear();
        self.below.clear();
        for &(rank, x) in columns {
            let side = if x < 0.0 {
                &mut self.below
            } else {
                &mut self.above
            };
            side.push((rank, x as f32));
        }
    }
}

/// Whom to look for: places within the ranges, called by `each` with the floor for what follows as the answer.
struct Search<'a, F> {
    query: &'a Query,
    ranges: &'a [Range<usize>],
    floor: f32,
    /// How many nodes may still be opened.
    left: usize,
    each: F,
}

impl Tree {
    /// Whether a tree pays: its tables of columns, one a leaf, should not outgrow the rows themselves.
    pub(super) fn pays(n_places: usize, n_ranks: usize, nnz: usize) -> bool {
        n_ranks < usize::from(u16::MAX)
            && n_ranks.saturating_mul(n_places) <= nnz.saturating_mul(48)
    }

    pub(super) fn new(rows: &ByPlace<'_>, n_ranks: usize) -> Self {
        let mut levels = vec![Level::leaves(rows, n_ranks)];
        while let Some(below) = levels.last().filter(|level| level.n_nodes > TOPS) {
            levels.push(Level::above(below));
        }
        let tops = levels[levels.len() - 1].tops();
        Self {
            n_places: rows.starts.len() - 1,
            levels,
            tops,
        }
    }

    #[cfg(test)]
    pub(super) fn height(&self) -> usize {
        self.levels.len()
    }

    /// Calls `each` with places of the given ranges and their scores in single precision, leaving out those that are
    /// surely below the floor, which `each` gives for what follows. False if it gave up: too few could be left out.
    pub(super) fn search(
        &self,
        query: &Query,
        ranges: &[Range<usize>],
        each: impl FnMut(usize, f32) -> f32,
    ) -> bool {
        let level = self.levels.len() - 1;
        let n = self.levels[level].n_nodes;
        let mut bounds = [0.0; TOPS];
        for (bounds, tops) in bounds
            .chunks_exact_mut(STRETCH)
            .zip(self.tops.chunks_exact(self.levels[level].n_ranks))
        {
            let mut sums = [0.0; STRETCH];
            for (side, columns) in [(0, &query.above), (1, &query.below)] {
                for &(rank, x) in columns {
                    for (sum, &end) in sums.iter_mut().zip(&tops[rank as usize][side]) {
                        *sum += x * end;
                    }
                }
            }
            bounds.copy_from_slice(&sums);
        }
        let bounds = &mut bounds[..n];
        let mut search = Search {
            query,
            ranges,
            floor: f32::NEG_INFINITY,
            left: 16 + self.levels[0].n_nodes / 2,
            each,
        };
        // The best first, for a floor; then all that reach it, in order.
        let best = (1..n).fold(0, |best, node| match bounds[node] > bounds[best] {
            true => node,
            false => best,
        });
        if !self.open(level, best, &mut search) {
            return false;
        }
        bounds[best] = f32::NEG_INFINITY;
        let mut order = [0u8; TOPS];
        let mut left = 0;
        for (node, &bound) in bounds.iter().enumerate() {
            order[left] = node as u8;
            left += usize::from(bound >= search.floor);
        }
        let order = &mut order[..left];
        order.sort_unstable_by(|&a, &b| bounds[b as usize].total_cmp(&bounds[a as usize]));
        for &node in order.iter() {
            let node = node as usize;
            if node == best || bounds[node] < search.floor {
                continue;
            }
            if !self.open(level, node, &mut search) {
                return false;
            }
        }
        true
    }

    fn open<F: FnMut(usize, f32) -> f32>(
        &self,
        level: usize,
        node: usize,
        search: &mut Search<'_, F>,
    ) -> bool {
        let here = &self.levels[level];
        let first = node * FAN * here.span;
        let places = first..(first + FAN * here.span).min(self.n_places);
        let meets = |r: &Range<usize>| r.start < places.end && places.start < r.end;
        if !search.ranges.iter().any(meets) {
            return true;
        }
        if search.left == 0 {
            return false;
        }
        search.left -= 1;
        let mut bounds = here.bounds(node, search.query).0;
        if level == 0 {
            let n = places.len();
            for (&score, place) in bounds[..n].iter().zip(places) {
                if score >= search.floor && search.ranges.iter().any(|r| r.contains(&place)) {
                    search.floor = (search.each)(place, score);
                }
            }
            return true;
        }
        let n = places.len().div_ceil(here.span);
        loop {
            let (mut best, mut child) = (f32::NEG_INFINITY, 0);
            for (at, &bound) in bounds[..n].iter().enumerate() {
                if bound > best {
                    (best, child) = (bound, at);
                }
            }
            if best < search.floor || best == f32::NEG_INFINITY {
                return true;
            }
            bounds[child] = f32::NEG_INFINITY;
            if !self.open(level - 1, node * FAN + child, search) {
                return false;
            }
        }
    }
}

impl Level {
    fn new(n_nodes: usize, span: usize, n_ranks: usize) -> Self {
        Self {
            n_nodes,
            span,
            n_ranks,
            slots: vec![0; n_nodes * n_ranks],
            firsts: Vec::with_capacity(n_nodes),
            greatest: Vec::new(),
            least: Vec::new(),
        }
    }

    /// The ends of whole nodes, for each stretch of nodes and each column.
    fn tops(&self) -> Vec<[Stretch; 2]> {
        let mut tops = vec![[[0.0; STRETCH]; 2]; self.n_nodes.div_ceil(STRETCH) * self.n_ranks];
        for node in 0..self.n_nodes {
            let stretch = &mut tops[node / STRETCH * self.n_ranks..][..self.n_ranks];
            for (top, &slot) in stretch.iter_mut().zip(self.slots_of(node)) {
                if slot != 0 {
                    let ends = self.ends(node, slot);
                    top[0][node % STRETCH] = ends[0];
                    top[1][node % STRETCH] = ends[1];
                }
            }
        }
        tops
    }

    /// The greatest and the least value of a column below a node.
    fn ends(&self, node: usize, slot: u16) -> [f32; 2] {
        let at = self.firsts[node] as usize + usize::from(slot);
        let (greatest, least) = (&self.greatest[at].0, &self.least()[at].0);
        let more = |a: f32, b: f32| if b > a { b } else { a };
        let less = |a: f32, b: f32| if b < a { b } else { a };
        // In halves, which go side by side.
        let [mut high, mut low] = [[0.0; FAN / 2]; 2];
        for i in 0..FAN / 2 {
            high[i] = more(greatest[i], greatest[i + FAN / 2]);
            low[i] = less(least[i], least[i + FAN / 2]);
        }
        [
            more(more(high[0], high[1]), more(high[2], high[3])),
            less(less(low[0], low[1]), less(low[2], low[3])),
        ]
    }

    fn slots_of(&self, node: usize) -> &[u16] {
        &self.slots[node * self.n_ranks..(node + 1) * self.n_ranks]
    }

    fn least(&self) -> &Vec<Lanes> {
        match self.least.is_empty() {
            true => &self.greatest,
            false => &self.least,
        }
    }

    /// The places of the rows, eight a leaf.
    fn leaves(rows: &ByPlace<'_>, n_ranks: usize) -> Self {
        let n_places = rows.starts.len() - 1;
        let mut level = Self::new(n_places.div_ceil(FAN), 1, n_ranks);
        level
            .greatest
            .reserve(level.n_nodes + rows.values.len() / 2);
        for leaf in 0..level.n_nodes {
            let slots = &mut level.slots[leaf * n_ranks..(leaf + 1) * n_ranks];
            let first = level.greatest.len();
            level.firsts.push(first as u32);
            level.greatest.push(ZEROS);
            for (lane, place) in (leaf * FAN..n_places).take(FAN).enumerate() {
                let entries = rows.starts[place]..rows.starts[place + 1];
                let values = &rows.values[entries.clone()];
                for (&rank, &value) in rows.ranks[entries].iter().zip(values) {
                    let slot = &mut slots[rank as usize];
                    if *slot == 0 {
                        *slot = (level.greatest.len() - first) as u16;
                        level.greatest.push(ZEROS);
                    }
                    level.greatest[first + usize::from(*slot)].0[lane] = value as f32;
                }
            }
        }
        level
    }

    /// The nodes above those of a level, eight below each.
    fn above(below: &Self) -> Self {
        let n_ranks = below.n_ranks;
        let mut level = Self::new(below.n_nodes.div_ceil(FAN), below.span * FAN, n_ranks);
        for node in 0..level.n_nodes {
            let slots = &mut level.slots[node * n_ranks..(node + 1) * n_ranks];
            let first = level.greatest.len();
            level.firsts.push(first as u32);
            level.greatest.push(ZEROS);
            level.least.push(ZEROS);
            for (lane, child) in (node * FAN..below.n_nodes).take(FAN).enumerate() {
                for (slot, &child_slot) in slots.iter_mut().zip(below.slots_of(child)) {
                    if child_slot == 0 {
                        continue;
                    }
                    if *slot == 0 {
                        *slot = (level.greatest.len() - first) as u16;
                        level.greatest.push(ZEROS);
                        level.least.push(ZEROS);
                    }
                    let at = first + usize::from(*slot);
                    let [greatest, least] = below.ends(child, child_slot);
                    level.greatest[at].0[lane] = greatest;
                    level.least[at].0[lane] = least;
                }
            }
        }
        level
    }

    /// What the rows below each child of a node score at most.
    fn bounds(&self, node: usize, query: &Query) -> Lanes {
        let slots = self.slots_of(node);
        let first = self.firsts[node] as usize;
        let mut sums = ZEROS;
        for (side, ends) in [(&query.above, &self.greatest), (&query.below, self.least())] {
            let ends = &ends[first..];
            for &(rank, x) in side {
                let lanes = &ends[usize::from(slots[rank as usize])];
                for (sum, &end) in sums.0.iter_mut().zip(&lanes.0) {
                    *sum += x * end;
                }
            }
        }
        sums
    }
}
