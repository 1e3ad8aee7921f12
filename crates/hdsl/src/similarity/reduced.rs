//! The rank-reduced, orthogonal form of a similarity.

use crate::atoms::Sign;
use crate::data::{Columns, Rows, SparseRow};
use crate::similarity::BilinearModel;
use crate::similarity::Similarity;
use crate::similarity::factors::Factors;
use nalgebra::DMatrix;
use std::borrow::Cow;

/// A map under which a learned similarity, or its best approximation of a given rank, is the inner product, with
/// as few coordinates as possible and orthogonal directions. (Euclidean distance ranks differently.)
///
/// Coordinate `c` is `sqrt(value_c) * (direction_c · x)`, with the eigenvalues and unit eigenvectors of M by
/// decreasing eigenvalue. It is what principal components are to a covariance: cutting it after `dim` coordinates
/// gives the nearest similarity of that rank. See [`BilinearModel::reduced`].
#[derive(Clone, Debug)]
pub struct ReducedTransform {
    rank: usize,
    eigenvalues: Vec<f64>,
    /// The unit eigenvectors, with the eigenvalues of M / λ as values.
    factors: Factors,
}

struct Component {
    value: f64,
    /// Features (numbers of the model's columns) and the unit direction.
    direction: Vec<(u32, f64)>,
}

impl BilinearModel {
    /// The orthogonal form with the `dim` largest eigenvalues, or all that are not 0.
    ///
    /// Features that no chain of atoms joins do not mix, so the work is one small eigenproblem per connected group
    /// of features, cubic in the size of the group and quadratic in memory. The sign of a direction is chosen so
    /// that its largest entry is positive.
    ///
    /// ```
    /// use hdsl::{Atom, BilinearModel, SparseRow};
    /// let atoms = vec![(Atom::plus(0, 2)?, 0.5), (Atom::minus(0, 2)?, 0.25), (Atom::plus(4, 5)?, 0.25)];
    /// let model = BilinearModel::new(6, 2.0, atoms)?;
    /// let reduced = model.reduced(None);
    /// assert_eq!(reduced.rank(), 3);
    /// let close = |x: f64, y: f64| (x - y).abs() < 1e-12;
    /// assert!(reduced.eigenvalues().iter().zip([2.0, 1.0, 1.0]).all(|(&v, w)| close(v, w)));
    /// let (a, b) = (SparseRow::new(&[0], &[1.0]), SparseRow::new(&[0, 2], &[1.0, 3.0]));
    /// assert!(close(reduced.score(a, b), model.score(a, b)));
    /// assert_eq!(model.reduced(Some(1)).dim(), 1);
    /// # Ok::<(), hdsl::Error>(())
    /// ```
    pub fn reduced(&self, dim: Option<usize>) -> ReducedTransform {
        let columns = Columns::from_features(self.n_features(), self.features_used().to_vec());
        let mut components: Vec<Component> = self
            .groups(&columns)
            .iter()
            .flat_map(|group| self.eigen(&columns, group))
            .collect();
        // Stable, so equal eigenvalues stay in the order of their groups.
        components.sort_by(|a, b| b.value.total_cmp(&a.value));
        let rank = components.len();
        components.truncate(dim.unwrap_or(rank));
        let mut entries = Vec::new();
        for (c, component) in (0..).zip(&components) {
            let direction = component.direction.iter();
            entries.extend(direction.map(|&(n, entry)| (c, columns.features()[n as usize], entry)));
        }
        let values: Vec<f64> = components.iter().map(|c| c.value).collect();
        ReducedTransform {
            rank,
            eigenvalues: values.iter().map(|v| v * self.scale()).collect(),
            factors: Factors::new(self.n_features(), self.scale(), values, columns, &entries),
        }
    }

    /// The connected groups of the graph whose nodes are features and whose edges are atoms.
    fn groups(&self, columns: &Columns) -> Vec<Group> {
        let mut forest = Forest::new(columns.len());
        for atom in self.atoms() {
            let number = |f| columns.number(f).expect("used features are numbered") as usize;
            forest.join(number(atom.i()), number(atom.j()), atom.sign());
        }
        let mut groups: Vec<Group> = Vec::new();
        let mut group_of_root = vec![usize::MAX; columns.len()];
        let mut group_of = vec![0; columns.len()];
        for node in 0..columns.len() {
            let (root, _) = forest.find(node);
            if group_of_root[root] == usize::MAX {
                group_of_root[root] = groups.len();
                groups.push(Group {
                    features: Vec::new(),
                    atoms: Vec::new(),
                    balanced: !forest.frustrated[root],
                });
            }
            group_of[node] = group_of_root[root];
            groups[group_of[node]].features.push(node as u32);
        }
        for (atom, which) in self.atoms().iter().enumerate() {
            let node = columns
                .number(which.i())
                .expect("used features are numbered");
            groups[group_of[node as usize]].atoms.push(atom);
        }
        groups
    }

    /// The eigenvalues of M / λ on one group that are not 0, with their directions.
    fn eigen(&self, columns: &Columns, group: &Group) -> Vec<Component> {
        let n = group.features.len();
        let place = |feature: u32| {
            let number = columns.number(feature).expect("used features are numbered");
            group
                .features
                .binary_search(&number)
                .expect("atoms stay within their group")
        };
        let mut matrix = DMatrix::<f64>::zeros(n, n);
        for &number in &group.atoms {
            let (atom, weight) = (self.atoms()[number], self.weights()[number]);
            let (i, j) = (place(atom.i()), place(atom.j()));
            matrix[(i, i)] += weight;
            matrix[(j, j)] += weight;
            matrix[(i, j)] += atom.sign().value() * weight;
            matrix[(j, i)] += atom.sign().value() * weight;
        }
        let eigen = matrix.symmetric_eigen();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| eigen.eigenvalues[b].total_cmp(&eigen.eigenvalues[a]));
        // The vectors e_i ± e_j of a connected graph of n nodes span n dimensions, or n - 1 if the signs around
        // every cycle agree (a balanced signed graph): the rank is known without looking at the numbers. What is
        // lost in rounding goes too.
        order.truncate(n - usize::from(group.balanced));
        let floor = n as f64 * f64::EPSILON * eigen.eigenvalues[order[0]];
        order.retain(|&c| eigen.eigenvalues[c] > floor);
        order
            .into_iter()
            .map(|c| {
                let vector = eigen.eigenvectors.column(c);
                // The first among the largest, give or take rounding: ties are common in small groups.
                let largest = vector.iter().fold(0.0f64, |m, v| m.max(v.abs()));
                let head = vector
                    .iter()
                    .find(|v| v.abs() >= largest * (1.0 - 1e-9))
                    .expect("a vector has a largest entry");
                let sign = head.signum();
                Component {
                    value: eigen.eigenvalues[c],
                    direction: group
                        .features
                        .iter()
                        .copied()
                        .zip(vector.iter().map(|v| sign * v))
                        .collect(),
                }
            })
            .collect()
    }
}

impl ReducedTransform {
    /// How many coordinates there are.
    pub fn dim(&self) -> usize {
        self.eigenvalues.len()
    }

    /// The rank of M: how many coordinates there would be if none had been cut off.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many features rows have, used or not.
    pub fn n_features(&self) -> usize {
        self.factors.n_features()
    }

    /// The eigenvalues of M that were kept, the largest first.
    pub fn eigenvalues(&self) -> &[f64] {
        &self.eigenvalues
    }

    /// What one coordinate is made of: (feature, factor) by increasing feature, so that the coordinate of a row is
    /// the sum of factor times value.
    pub fn direction(&self, coordinate: usize) -> Vec<(u32, f64)> {
        let mut factors = Vec::new();
        for &feature in self.factors.columns().features() {
            let entries = self.factors.using(feature);
            if let Ok(at) = entries.binary_search_by_key(&(coordinate as u64), |e| e.0.into()) {
                factors.push((feature, self.factors.roots()[coordinate] * entries[at].1));
            }
        }
        factors
    }

    /// The inner product of two rows after the map.
    pub fn score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        self.factors.score(a, b)
    }

    /// One row, mapped.
    pub fn transform(&self, x: SparseRow<'_>) -> Vec<f64> {
        self.factors.transform(x)
    }

    /// Many rows, mapped in parallel. Coordinates that are 0 are not stored; one beyond the range of `f64` becomes the
    /// largest number.
    pub fn transform_rows(&self, rows: &Rows) -> Rows {
        self.factors.transform_rows(rows)
    }
}

impl Similarity for ReducedTransform {
    fn score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        ReducedTransform::score(self, a, b)
    }

    fn queries<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows> {
        Cow::Owned(self.transform_rows(rows))
    }
}

struct Group {
    /// Numbers of the model's columns, increasing.
    features: Vec<u32>,
    atoms: Vec<usize>,
    balanced: bool,
}

/// Disjoint sets of nodes, each node with its sign relative to the root of its set.
struct Forest {
    parent: Vec<(usize, bool)>,
    frustrated: Vec<bool>,
}

impl Forest {
    fn new(n: usize) -> Self {
        Self {
            parent: (0..n).map(|node| (node, false)).collect(),
            frustrated: vec![false; n],
        }
    }

    /// The root of a node, and whether the node's sign is opposite to the root's.
    fn find(&mut self, node: usize) -> (usize, bool) {
        let (mut root, mut opposite) = (node, false);
        while self.parent[root].0 != root {
            opposite ^= self.parent[root].1;
            root = self.parent[root].0;
        }
        // Point everything on the way straight at the root.
        let (mut at, mut sign) = (node, opposite);
        while self.parent[at].0 != root && at != root {
            let (next, step) = self.parent[at];
            self.parent[at] = (root, sign);
            sign ^= step;
            at = next;
        }
        (root, opposite)
    }

    /// e_i + e_j vanishes on vectors whose two entries are opposite, e_i - e_j where they are equal.
    fn join(&mut self, i: usize, j: usize, sign: Sign) {
        let wanted = sign == Sign::Plus;
        let ((a, p), (b, q)) = (self.find(i), self.find(j));
        if a == b {
            self.frustrated[a] |= (p ^ q) != wanted;
        } else {
            self.parent[b] = (a, p ^ q ^ wanted);
            self.frustrated[a] |= self.frustrated[b];
        }
    }
}
