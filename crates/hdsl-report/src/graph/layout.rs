//! Places for the nodes of a graph: each connected part by forces (Fruchterman and Reingold, *Graph drawing by
//! force-directed placement*, 1991: edges pull, nodes push), then all parts side by side, the largest in the middle.

use super::Graph;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const ROUNDS: usize = 300;
/// Nodes push each other within this many edge lengths, once the rough shape is found.
const REACH: f64 = 5.0;
/// Rounds in which every node pushes every other, so that large parts unfold.
const FULL_ROUNDS: usize = 60;
/// Parts larger than this have fewer such rounds: their cost is the square of the nodes.
const LARGE: usize = 1500;

/// A place for each node. Edges come out about one unit long.
pub(super) fn places(graph: &Graph) -> Vec<(f64, f64)> {
    let mut places = vec![(0.0, 0.0); graph.n];
    let mut parts = parts(graph);
    parts.sort_by_key(|part| (std::cmp::Reverse(part.len()), part[0]));
    let mut number = vec![0; graph.n];
    let mut discs: Vec<Disc> = Vec::new();
    let neighbors = graph.neighbors();
    for part in &parts {
        part.iter()
            .enumerate()
            .for_each(|(at, &node)| number[node] = at);
        let edges: Vec<(usize, usize, f64)> = part
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
        let mut local = forces(part.len(), &edges);
        let (cx, cy) = center(&local);
        local.iter_mut().for_each(|p| *p = (p.0 - cx, p.1 - cy));
        let radius = local.iter().map(|p| p.0.hypot(p.1)).fold(0.0, f64::max) + 0.6;
        let disc = fit(&discs, radius);
        for (&node, p) in part.iter().zip(&local) {
            places[node] = (p.0 + disc.x, p.1 + disc.y);
        }
        discs.push(disc);
    }
    places
}

struct Disc {
    x: f64,
    y: f64,
    radius: f64,
}

/// The first free place for a disc along a spiral from the middle.
fn fit(discs: &[Disc], radius: f64) -> Disc {
    let mut turn = 0.0f64;
    loop {
        let away = 0.25 * turn;
        let disc = Disc {
            // Wider than high, as pages are.
            x: 1.35 * away * turn.cos(),
            y: away * turn.sin(),
            radius,
        };
        let free =
            |other: &Disc| (disc.x - other.x).hypot(disc.y - other.y) >= disc.radius + other.radius;
        if discs.iter().all(free) {
            return disc;
        }
        // About half a unit further along the spiral.
        turn += 0.5 / away.max(0.5);
    }
}

/// The connected parts, each with its nodes in increasing order.
fn parts(graph: &Graph) -> Vec<Vec<usize>> {
    let neighbors = graph.neighbors();
    let mut seen = vec![false; graph.n];
    let mut parts = Vec::new();
    for start in 0..graph.n {
        if seen[start] {
            continue;
        }
        seen[start] = true;
        let mut part = vec![start];
        let mut at = 0;
        while at < part.len() {
            for &(other, _) in &neighbors[part[at]] {
                if !std::mem::replace(&mut seen[other], true) {
                    part.push(other);
                }
            }
            at += 1;
        }
        part.sort_unstable();
        parts.push(part);
    }
    parts
}

fn center(places: &[(f64, f64)]) -> (f64, f64) {
    let n = places.len().max(1) as f64;
    let sum = places
        .iter()
        .fold((0.0, 0.0), |s, p| (s.0 + p.0, s.1 + p.1));
    (sum.0 / n, sum.1 / n)
}

/// One connected part.
fn forces(n: usize, edges: &[(usize, usize, f64)]) -> Vec<(f64, f64)> {
    match n {
        1 => return vec![(0.0, 0.0)],
        2 => return vec![(-0.5, 0.0), (0.5, 0.0)],
        _ => {}
    }
    let mut random = ChaCha8Rng::seed_from_u64(n as u64);
    let mut uniform = || random.next_u32() as f64 / u32::MAX as f64 - 0.5;
    let side = (n as f64).sqrt();
    let mut places: Vec<(f64, f64)> = (0..n)
        .map(|_| (side * uniform(), side * uniform()))
        .collect();
    let full_rounds = FULL_ROUNDS * LARGE.pow(2) / n.max(LARGE).pow(2);
    for round in 0..ROUNDS {
        let mut push = vec![(0.0, 0.0); n];
        match round < full_rounds || n < 200 {
            true => {
                for a in 0..n {
                    for b in 0..a {
                        repel(&places, &mut push, a, b);
                    }
                }
            }
            false => near(&places, |a, b| repel(&places, &mut push, a, b)),
        }
        for &(a, b, _) in edges {
            let (dx, dy) = (places[a].0 - places[b].0, places[a].1 - places[b].1);
            let pull = dx.hypot(dy);
            push[a] = (push[a].0 - dx * pull, push[a].1 - dy * pull);
            push[b] = (push[b].0 + dx * pull, push[b].1 + dy * pull);
        }
        // Moves get smaller, so that the picture settles.
        let most = 0.15 * side * (1.0 - round as f64 / ROUNDS as f64).powi(2) + 0.002;
        for (place, force) in places.iter_mut().zip(&push) {
            let size = force.0.hypot(force.1).max(1e-9);
            let step = size.min(most) / size;
            // A little of it leads to the middle: a part stays together however long its arms are.
            place.0 += step * force.0 - 0.002 * place.0;
            place.1 += step * force.1 - 0.002 * place.1;
        }
    }
    places
}

fn repel(places: &[(f64, f64)], push: &mut [(f64, f64)], a: usize, b: usize) {
    let (dx, dy) = (places[a].0 - places[b].0, places[a].1 - places[b].1);
    let squared = (dx * dx + dy * dy).max(1e-4);
    let (fx, fy) = (dx / squared, dy / squared);
    push[a] = (push[a].0 + fx, push[a].1 + fy);
    push[b] = (push[b].0 - fx, push[b].1 - fy);
}

/// Calls for every two nodes in the same or in neighboring cells of a grid, in a fixed order.
fn near(places: &[(f64, f64)], mut each: impl FnMut(usize, usize)) {
    let cell = |p: &(f64, f64)| ((p.0 / REACH).floor() as i64, (p.1 / REACH).floor() as i64);
    let mut grid: std::collections::BTreeMap<(i64, i64), Vec<usize>> = Default::default();
    for (node, place) in places.iter().enumerate() {
        grid.entry(cell(place)).or_default().push(node);
    }
    for (&(x, y), nodes) in &grid {
        for (at, &a) in nodes.iter().enumerate() {
            nodes[..at].iter().for_each(|&b| each(a, b));
            // Half of the neighbors; the other half has this cell among its own.
            for beside in [(x + 1, y), (x - 1, y + 1), (x, y + 1), (x + 1, y + 1)] {
                grid.get(&beside)
                    .into_iter()
                    .flatten()
                    .for_each(|&b| each(a, b));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_do_not_lie_on_each_other_and_edges_are_short() {
        // A tree, two small parts and a lone node.
        let mut edges: Vec<(usize, usize, f64)> = (1..60).map(|n| (n, (n - 1) / 3, 1.0)).collect();
        edges.extend([(60, 61, 1.0), (62, 63, 1.0), (63, 64, 1.0), (64, 62, 1.0)]);
        let graph = Graph { n: 66, edges };
        let places = places(&graph);
        let gap = |a: usize, b: usize| (places[a].0 - places[b].0).hypot(places[a].1 - places[b].1);
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
        assert_eq!(places, super::places(&graph));
    }
}
