//! Positions of the nodes of a graph: each connected component by forces (Fruchterman and Reingold, *Graph drawing by
//! force-directed placement*, 1991: edges attract, nodes repel), then all components side by side, the largest in the
//! center.

use super::Graph;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::{BTreeMap, HashMap};

const ITERATIONS: usize = 300;
/// After the first iterations, nodes repel each other only within this distance, in edge lengths.
const REACH: f64 = 5.0;
/// Iterations in which all nodes repel each other, so that large components unfold.
const FULL_ITERATIONS: usize = 60;
/// The most pairs of close nodes in one iteration. In a component where more nodes crowd, the distance is shorter.
const MAX_PAIRS: usize = 2_000_000;
/// Larger components have fewer such iterations, whose cost is quadratic in the number of nodes.
const LARGE: usize = 1500;

/// The position of each node. Edges are about one unit long.
pub(super) fn positions(graph: &Graph) -> Vec<(f64, f64)> {
    let mut positions = vec![(0.0, 0.0); graph.n];
    let mut components = components(graph);
    components.sort_by_key(|nodes| (std::cmp::Reverse(nodes.len()), nodes[0]));
    let mut number = vec![0; graph.n];
    let mut discs = Discs::default();
    let neighbors = graph.neighbors();
    for nodes in &components {
        nodes
            .iter()
            .enumerate()
            .for_each(|(at, &node)| number[node] = at);
        let edges: Vec<(usize, usize, f64)> = nodes
            .iter()
            .flat_map(|&node| {
                let here = number[node];
                let number = &number;
                neighbors[node]
                    .iter()
                    .map(move |&(other, weight)| (here, number[other], weight))
            })
            .filter(|e| e.0 < e.1)
            .collect();
        let mut local = forces(nodes.len(), &edges);
        let (cx, cy) = center(&local);
        local.iter_mut().for_each(|p| *p = (p.0 - cx, p.1 - cy));
        let radius = local.iter().map(|p| p.0.hypot(p.1)).fold(0.0, f64::max) + 0.6;
        let disc = discs.place(radius);
        for (&node, p) in nodes.iter().zip(&local) {
            positions[node] = (p.0 + disc.x, p.1 + disc.y);
        }
    }
    positions
}

#[derive(Clone, Copy)]
struct Disc {
    x: f64,
    y: f64,
    radius: f64,
}

/// Discs that do not overlap, placed one after the other from the largest to the smallest.
#[derive(Default)]
struct Discs {
    /// The discs that overlap each cell of a grid.
    cells: HashMap<(i64, i64), Vec<Disc>>,
    /// Where the last search ended for each radius, by its bits: everything before is taken, for a disc of that radius.
    taken: HashMap<u64, f64>,
}

impl Discs {
    /// The width of a cell. A pair of nodes has a radius of 1.1.
    const CELL: f64 = 2.5;

    /// Places a disc at the first free position along a spiral from the center. The cost of a position is that of the
    /// discs in the cells around it, and discs of equal radius continue where the last one was placed.
    fn place(&mut self, radius: f64) -> Disc {
        let mut angle = self.taken.get(&radius.to_bits()).copied().unwrap_or(0.0);
        loop {
            let distance = 0.25 * angle;
            let disc = Disc {
                // Wider than high, like the chart.
                x: 1.35 * distance * angle.cos(),
                y: distance * angle.sin(),
                radius,
            };
            if self.is_free(&disc) {
                self.taken.insert(radius.to_bits(), angle);
                for cell in cells(&disc) {
                    self.cells.entry(cell).or_default().push(disc);
                }
                return disc;
            }
            // About half a unit further along the spiral.
            angle += 0.5 / distance.max(0.5);
        }
    }

    fn is_free(&self, disc: &Disc) -> bool {
        let free =
            |other: &Disc| (disc.x - other.x).hypot(disc.y - other.y) >= disc.radius + other.radius;
        cells(disc).all(|cell| {
            self.cells
                .get(&cell)
                .is_none_or(|discs| discs.iter().all(free))
        })
    }
}

/// The cells that the square around a disc overlaps. Discs that overlap have one in common.
fn cells(disc: &Disc) -> impl Iterator<Item = (i64, i64)> {
    let cell = |at: f64| (at / Discs::CELL).floor() as i64;
    let [left, right] = [disc.x - disc.radius, disc.x + disc.radius].map(cell);
    let [top, bottom] = [disc.y - disc.radius, disc.y + disc.radius].map(cell);
    (left..=right).flat_map(move |x| (top..=bottom).map(move |y| (x, y)))
}

/// The connected components, each with its nodes in increasing order.
fn components(graph: &Graph) -> Vec<Vec<usize>> {
    let neighbors = graph.neighbors();
    let mut seen = vec![false; graph.n];
    let mut components = Vec::new();
    for start in 0..graph.n {
        if seen[start] {
            continue;
        }
        seen[start] = true;
        let mut nodes = vec![start];
        let mut at = 0;
        while at < nodes.len() {
            for &(other, _) in &neighbors[nodes[at]] {
                if !std::mem::replace(&mut seen[other], true) {
                    nodes.push(other);
                }
            }
            at += 1;
        }
        nodes.sort_unstable();
        components.push(nodes);
    }
    components
}

fn center(positions: &[(f64, f64)]) -> (f64, f64) {
    let n = positions.len().max(1) as f64;
    let sum = positions
        .iter()
        .fold((0.0, 0.0), |s, p| (s.0 + p.0, s.1 + p.1));
    (sum.0 / n, sum.1 / n)
}

/// The positions of the nodes of one component, by simulated forces.
fn forces(n: usize, edges: &[(usize, usize, f64)]) -> Vec<(f64, f64)> {
    match n {
        1 => return vec![(0.0, 0.0)],
        2 => return vec![(-0.5, 0.0), (0.5, 0.0)],
        _ => {}
    }
    let mut random = ChaCha8Rng::seed_from_u64(n as u64);
    let mut uniform = || random.next_u32() as f64 / u32::MAX as f64 - 0.5;
    let side = (n as f64).sqrt();
    let mut positions: Vec<(f64, f64)> = (0..n)
        .map(|_| (side * uniform(), side * uniform()))
        .collect();
    let full_iterations = FULL_ITERATIONS * LARGE.pow(2) / n.max(LARGE).pow(2);
    for iteration in 0..ITERATIONS {
        let mut force = vec![(0.0, 0.0); n];
        match iteration < full_iterations || n < 200 {
            true => {
                for a in 0..n {
                    for b in 0..a {
                        repel(&positions, &mut force, a, b);
                    }
                }
            }
            false => close_pairs(&positions, |a, b| repel(&positions, &mut force, a, b)),
        }
        for &(a, b, _) in edges {
            let (dx, dy) = (
                positions[a].0 - positions[b].0,
                positions[a].1 - positions[b].1,
            );
            let pull = dx.hypot(dy);
            force[a] = (force[a].0 - dx * pull, force[a].1 - dy * pull);
            force[b] = (force[b].0 + dx * pull, force[b].1 + dy * pull);
        }
        // The longest allowed move decreases, so that the layout converges.
        let longest = 0.15 * side * (1.0 - iteration as f64 / ITERATIONS as f64).powi(2) + 0.002;
        for (position, force) in positions.iter_mut().zip(&force) {
            let size = force.0.hypot(force.1).max(1e-9);
            let step = size.min(longest) / size;
            // A weak attraction to the center keeps long components compact.
            position.0 += step * force.0 - 0.002 * position.0;
            position.1 += step * force.1 - 0.002 * position.1;
        }
    }
    positions
}

fn repel(positions: &[(f64, f64)], force: &mut [(f64, f64)], a: usize, b: usize) {
    let (dx, dy) = (
        positions[a].0 - positions[b].0,
        positions[a].1 - positions[b].1,
    );
    let squared = (dx * dx + dy * dy).max(1e-4);
    let (fx, fy) = (dx / squared, dy / squared);
    force[a] = (force[a].0 + fx, force[a].1 + fy);
    force[b] = (force[b].0 - fx, force[b].1 - fy);
}

/// Calls `each` for every two nodes in the same or in neighboring cells of a grid, in a fixed order. The cells are as wide as
/// the reach, or narrower if there are too many such pairs.
fn close_pairs(positions: &[(f64, f64)], mut each: impl FnMut(usize, usize)) {
    let mut reach = REACH;
    let mut grid = grid(positions, reach);
    while reach > 0.01 && n_pairs(&grid) > MAX_PAIRS {
        reach /= 2.0;
        grid = self::grid(positions, reach);
    }
    for (&cell, nodes) in &grid {
        for (at, &a) in nodes.iter().enumerate() {
            nodes[..at].iter().for_each(|&b| each(a, b));
            for beside in half_around(cell) {
                grid.get(&beside)
                    .into_iter()
                    .flatten()
                    .for_each(|&b| each(a, b));
            }
        }
    }
}

/// The nodes in each cell.
type Grid = BTreeMap<(i64, i64), Vec<usize>>;

fn grid(positions: &[(f64, f64)], reach: f64) -> Grid {
    let cell = |p: &(f64, f64)| ((p.0 / reach).floor() as i64, (p.1 / reach).floor() as i64);
    let mut grid = Grid::new();
    for (node, position) in positions.iter().enumerate() {
        grid.entry(cell(position)).or_default().push(node);
    }
    grid
}

/// Half of the neighboring cells: each pair of cells is visited once.
fn half_around((x, y): (i64, i64)) -> [(i64, i64); 4] {
    [(x + 1, y), (x - 1, y + 1), (x, y + 1), (x + 1, y + 1)]
}

/// How many pairs of nodes are in the same or in neighboring cells.
fn n_pairs(grid: &Grid) -> usize {
    let size = |cell: &(i64, i64)| grid.get(cell).map_or(0, Vec::len);
    let pairs = grid.iter().map(|(&cell, nodes)| {
        let around: usize = half_around(cell).iter().map(size).sum();
        nodes.len() * (nodes.len() - 1) / 2 + nodes.len() * around
    });
    pairs.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_do_not_overlap_and_edges_are_short() {
        // A tree, two small components and an isolated node.
        let mut edges: Vec<(usize, usize, f64)> = (1..60).map(|n| (n, (n - 1) / 3, 1.0)).collect();
        edges.extend([(60, 61, 1.0), (62, 63, 1.0), (63, 64, 1.0), (64, 62, 1.0)]);
        let graph = Graph { n: 66, edges };
        let positions = positions(&graph);
        let gap = |a: usize, b: usize| {
            (positions[a].0 - positions[b].0).hypot(positions[a].1 - positions[b].1)
        };
        let mut closest = f64::INFINITY;
        for a in 0..66 {
            for b in 0..a {
                closest = closest.min(gap(a, b));
            }
        }
        assert!(closest > 0.2, "two nodes are {closest} apart");
        let lengths: Vec<f64> = graph.edges.iter().map(|e| gap(e.0, e.1)).collect();
        let mean = lengths.iter().sum::<f64>() / lengths.len() as f64;
        let spread = (0..66).map(|a| gap(a, 0)).fold(0.0, f64::max);
        assert!(mean < spread / 3.0, "edges {mean}, spread {spread}");
        assert_eq!(positions, super::positions(&graph));
    }

    /// The first free place among all discs, one by one: what the grid is compared with.
    fn place_by_scan(discs: &[Disc], radius: f64) -> Disc {
        let mut angle = 0.0f64;
        loop {
            let distance = 0.25 * angle;
            let (x, y) = (1.35 * distance * angle.cos(), distance * angle.sin());
            let free = |d: &Disc| (x - d.x).hypot(y - d.y) >= radius + d.radius;
            if discs.iter().all(free) {
                return Disc { x, y, radius };
            }
            angle += 0.5 / distance.max(0.5);
        }
    }

    #[test]
    fn discs_are_placed_as_by_a_scan_of_all() {
        let mut radii: Vec<f64> = vec![14.3, 6.0, 6.0, 3.2, 3.2, 3.1, 1.9];
        radii.extend([1.1; 150]);
        radii.extend([0.6; 40]);
        let (mut placed, mut grid) = (Vec::new(), Discs::default());
        for radius in radii {
            let (want, got) = (place_by_scan(&placed, radius), grid.place(radius));
            assert_eq!((want.x, want.y), (got.x, got.y));
            placed.push(want);
        }
    }

    /// 8,000 features in separate pairs, or all around one: cubic or quadratic work would take minutes.
    #[test]
    fn many_components_and_crowded_ones_are_placed() {
        let pairs = (0..4000).map(|n| (2 * n, 2 * n + 1, 1.0)).collect();
        let star = (1..8000).map(|n| (0, n, 1.0)).collect();
        for edges in [pairs, star] {
            let graph = Graph { n: 8000, edges };
            let positions = positions(&graph);
            assert!(positions.iter().all(|p| p.0.is_finite() && p.1.is_finite()));
        }
    }
}
