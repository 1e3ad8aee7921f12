//! Communities of a graph by the Louvain method (Blondel et al., *Fast unfolding of communities in large networks*, 2008):
//! each node moves to the neighboring group with the largest gain in modularity; then groups become the nodes of a
//! smaller graph, until no node moves. Nodes are visited in order, so the same graph gives the same groups.

use super::Graph;

/// A limit on the sweeps over the nodes of one level. Usually, a few suffice.
const MAX_SWEEPS: usize = 100;

/// The group of each node, numbered by size, the largest first.
pub(super) fn communities(graph: &Graph) -> Vec<usize> {
    let mut group: Vec<usize> = (0..graph.n).collect();
    let mut level = Level {
        neighbors: graph.neighbors(),
        own: vec![0.0; graph.n],
    };
    loop {
        let (found, n_found) = level.improve();
        group.iter_mut().for_each(|g| *g = found[*g]);
        if n_found == level.own.len() {
            return by_size(group);
        }
        level = level.aggregated(&found, n_found);
    }
}

/// A graph whose nodes are the groups of the previous level.
struct Level {
    neighbors: Vec<Vec<(usize, f64)>>,
    /// Twice the weight of the edges inside each node.
    own: Vec<f64>,
}

impl Level {
    /// Moves nodes while the modularity increases. Returns the group of each node and the number of groups.
    fn improve(&self) -> (Vec<usize>, usize) {
        let n = self.own.len();
        let degree: Vec<f64> = (0..n)
            .map(|node| self.own[node] + self.neighbors[node].iter().map(|e| e.1).sum::<f64>())
            .collect();
        let total: f64 = degree.iter().sum();
        let mut group: Vec<usize> = (0..n).collect();
        let mut in_group = degree.clone();
        let mut joined = vec![0.0; n];
        for _ in 0..MAX_SWEEPS {
            let mut moved = false;
            for node in 0..n {
                let mut candidates = vec![group[node]];
                for &(other, weight) in &self.neighbors[node] {
                    if joined[group[other]] == 0.0 {
                        candidates.push(group[other]);
                    }
                    joined[group[other]] += weight;
                }
                in_group[group[node]] -= degree[node];
                let gain = |g: usize| joined[g] - degree[node] * in_group[g] / total;
                let mut best = group[node];
                for &g in &candidates {
                    // The tolerance prevents cycles caused by rounding.
                    if gain(g) > gain(best) + 1e-12 {
                        best = g;
                    }
                }
                moved |= best != group[node];
                group[node] = best;
                in_group[best] += degree[node];
                candidates.iter().for_each(|&g| joined[g] = 0.0);
            }
            if !moved {
                break;
            }
        }
        let mut numbers = vec![usize::MAX; n];
        let mut n_groups = 0;
        for g in &mut group {
            if numbers[*g] == usize::MAX {
                numbers[*g] = n_groups;
                n_groups += 1;
            }
            *g = numbers[*g];
        }
        (group, n_groups)
    }

    /// The graph whose nodes are the groups.
    fn aggregated(&self, group: &[usize], n_groups: usize) -> Self {
        let mut own = vec![0.0; n_groups];
        let mut between: Vec<std::collections::BTreeMap<usize, f64>> =
            vec![Default::default(); n_groups];
        for (node, list) in self.neighbors.iter().enumerate() {
            own[group[node]] += self.own[node];
            for &(other, weight) in list {
                match group[node] == group[other] {
                    true => own[group[node]] += weight,
                    false => *between[group[node]].entry(group[other]).or_insert(0.0) += weight,
                }
            }
        }
        Self {
            neighbors: between
                .into_iter()
                .map(|m| m.into_iter().collect())
                .collect(),
            own,
        }
    }
}

fn by_size(mut group: Vec<usize>) -> Vec<usize> {
    let n_groups = group.iter().max().map_or(0, |g| g + 1);
    let mut sizes = vec![0usize; n_groups];
    group.iter().for_each(|&g| sizes[g] += 1);
    let mut order: Vec<usize> = (0..n_groups).collect();
    order.sort_by_key(|&g| (std::cmp::Reverse(sizes[g]), g));
    let mut number = vec![0; n_groups];
    order.iter().enumerate().for_each(|(at, &g)| number[g] = at);
    group.iter_mut().for_each(|g| *g = number[*g]);
    group
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modularity(graph: &Graph, group: &[usize]) -> f64 {
        let total: f64 = graph.edges.iter().map(|e| 2.0 * e.2).sum();
        let mut degree = vec![0.0; graph.n];
        for e in &graph.edges {
            degree[e.0] += e.2;
            degree[e.1] += e.2;
        }
        let mut q: f64 = graph
            .edges
            .iter()
            .filter(|e| group[e.0] == group[e.1])
            .map(|e| 2.0 * e.2 / total)
            .sum();
        for a in 0..graph.n {
            for b in 0..graph.n {
                if group[a] == group[b] {
                    q -= degree[a] * degree[b] / (total * total);
                }
            }
        }
        q
    }

    #[test]
    fn two_cliques_with_a_bridge_are_two_groups() {
        let mut edges = vec![(0, 4, 0.5)];
        for base in [0, 4] {
            for a in 0..4 {
                for b in 0..a {
                    edges.push((base + a, base + b, 1.0));
                }
            }
        }
        let graph = Graph { n: 9, edges };
        let group = communities(&graph);
        assert_eq!(group, [0, 0, 0, 0, 1, 1, 1, 1, 2]);
    }

    #[test]
    fn groups_of_a_ring_have_a_high_modularity() {
        // A ring with short edges of varying weights.
        let mut edges = Vec::new();
        for a in 0..60usize {
            for step in [1, 2, 7] {
                let weight = ((a * 37 + step * 11) % 10 + 1) as f64 / 10.0;
                edges.push((a, (a + step) % 60, weight));
            }
        }
        let graph = Graph { n: 60, edges };
        let group = communities(&graph);
        let reached = modularity(&graph, &group);
        assert!(reached > 0.3, "modularity {reached}");
        assert!(reached > modularity(&graph, &vec![0; 60]));
    }

    #[test]
    fn a_graph_without_nodes_has_no_groups() {
        let graph = Graph {
            n: 0,
            edges: vec![],
        };
        assert!(communities(&graph).is_empty());
    }
}
