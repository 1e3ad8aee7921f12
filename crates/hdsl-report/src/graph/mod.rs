//! Section 4, the graph: features as nodes, pairs as edges, with communities and positions.

mod communities;
mod layout;

use crate::names::Names;
use crate::sample::rounded;
use hdsl::Model;
use serde::Serialize;
use std::collections::HashMap;

/// The nodes, by decreasing weight of the feature. The edges are the pairs in `Entries`.
#[derive(Serialize)]
pub(crate) struct GraphSection {
    id: Vec<u32>,
    x: Vec<f64>,
    y: Vec<f64>,
    /// The community of each node; the largest one is 0.
    group: Vec<usize>,
    n_groups: usize,
}

/// An undirected graph: (node, node, weight above 0).
pub(crate) struct Graph {
    pub(crate) n: usize,
    pub(crate) edges: Vec<(usize, usize, f64)>,
}

impl Graph {
    /// The neighbors of each node with the weight between them.
    fn neighbors(&self) -> Vec<Vec<(usize, f64)>> {
        let mut lists = vec![Vec::new(); self.n];
        for &(a, b, weight) in &self.edges {
            lists[a].push((b, weight));
            lists[b].push((a, weight));
        }
        lists
    }
}

impl GraphSection {
    pub(crate) fn of(model: &Model, names: &mut Names<'_, '_>) -> Self {
        let learned = model.similarity();
        let features: Vec<u32> = learned
            .features_by_weight()
            .iter()
            .map(|f| f.feature)
            .collect();
        let node: HashMap<u32, usize> = features
            .iter()
            .enumerate()
            .map(|(at, &f)| (f, at))
            .collect();
        let pairs = learned.pairs_by_weight();
        let largest = pairs.first().map_or(1.0, |p| p.weight.abs());
        let graph = Graph {
            n: features.len(),
            // Relative to the largest, so that the result does not depend on λ.
            edges: pairs
                .iter()
                .map(|p| (node[&p.i], node[&p.j], p.weight.abs() / largest))
                .collect(),
        };
        let group = communities::communities(&graph);
        let positions = layout::positions(&graph);
        Self {
            id: features.iter().map(|&f| names.id(f)).collect(),
            x: positions.iter().map(|p| rounded(p.0, 4)).collect(),
            y: positions.iter().map(|p| rounded(p.1, 4)).collect(),
            n_groups: group.iter().max().map_or(0, |g| g + 1),
            group,
        }
    }
}
