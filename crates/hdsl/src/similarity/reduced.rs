//! The rank-reduced, orthogonal form of a similarity.

use crate::atoms::Sign;
use crate::data::{Rows, SparseRow};
use crate::eigen::{Eigenpair, symmetric_eigen};
use crate::similarity::BilinearModel;
use crate::similarity::Similarity;
use crate::similarity::factors::Factors;
use crate::similarity::lanczos::{self, SumOfPairs};
use crate::sort::sort_by;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A map under which a learned similarity, or its best approximation of a given rank, is the inner product, with
/// as few coordinates as possible and orthogonal directions. (Euclidean distance ranks differently.)
///
/// With a base, only the learned part is reduced: the coordinates `sqrt(base) * x` come first and are all kept, so that the
/// map has [`ReducedTransform::dim`] coordinates more than there are features. Eigenvalues, rank and dimension are those of
/// M, the learned part.
///
/// Learned coordinate `c` is `sqrt(value_c) * (direction_c · x)`, with the eigenvalues and unit eigenvectors of M by
/// decreasing eigenvalue. It is what principal components are to a covariance: cutting it after `dim` coordinates
/// gives the nearest similarity of that rank. See [`BilinearModel::reduced`].
#[derive(Clone, Debug)]
pub struct ReducedTransform {
    rank: usize,
    eigenvalues: Vec<f64>,
    /// The unit eigenvectors, with the eigenvalues of M / λ as values.
    factors: Factors,
}

/// A connected group of more features than this has its largest eigenvalues computed by the Lanczos method, if it is asked for
/// a small part of them; otherwise as a dense matrix, which takes time cubic in the size of the group.
const DENSE: usize = 400;

/// A group of more features than this becomes a dense matrix only if all of its directions are asked for.
const MAX_DENSE: usize = 1500;

/// The most directions that are computed in a group of more than [`MAX_DENSE`] features.
const MAX_DIRECTIONS: usize = 256;

/// An eigenvalue of M / λ, and its unit eigenvector as (feature, entry).
type Component = (f64, Vec<(u32, f64)>);

impl BilinearModel {
    /// The orthogonal form with the `dim` largest eigenvalues of M, or all that are not 0. A base is kept as it is.
    ///
    /// Features that no chain of atoms joins do not mix, so the work is one small eigenproblem per connected group
    /// of features. Without a `dim` it is cubic in the size of the group and quadratic in memory. With a `dim`, groups of
    /// more than 400 features are reduced by the Lanczos method, and a group of more than 1,500 features has at most 256
    /// directions: [`ReducedTransform::dim`] may then be less than `dim`. The sign of a direction is chosen so that its
    /// largest entry is positive.
    ///
    /// ```
    /// use hdsl::{Atom, BilinearModel, Similarity, SparseRow};
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
        let groups = self.groups();
        let (mut components, mut rank): (Vec<Component>, usize) = (Vec::new(), 0);
        for group in &groups {
            let (found, group_rank) = self.eigen(group, dim);
            components.extend(found);
            rank += group_rank;
        }
        // Stable, so equal eigenvalues stay in the order of their groups.
        sort_by(&mut components, |a, b| b.0.total_cmp(&a.0));
        components.truncate(dim.unwrap_or(rank));
        let mut entries = Vec::new();
        for (c, (_, direction)) in (0..).zip(&components) {
            entries.extend(
                direction
                    .iter()
                    .map(|&(feature, entry)| (c, feature, entry)),
            );
        }
        let values: Vec<f64> = components.iter().map(|component| component.0).collect();
        let columns = self.factors.columns.clone();
        let eigenvalues = values.iter().map(|v| v * self.scale()).collect();
        let mut factors = Factors::new(self.n_features(), self.scale(), values, columns, &entries);
        factors.base = self.base();
        ReducedTransform {
            rank,
            eigenvalues,
            factors,
        }
    }

    /// The connected groups of the graph whose nodes are features and whose edges are atoms, by their first feature.
    fn groups(&self) -> Vec<Group> {
        let columns = &self.factors.columns;
        let number = |f| columns.number(f).expect("used features are numbered") as usize;
        // Entry x_i of a vector is node 2i, and -x_i is node 2i + 1. An atom joins nodes that are equal in the vectors it
        // vanishes on: x_i = -x_j for e_i + e_j, x_i = x_j for e_i - e_j.
        let mut sets = DisjointSets::new(2 * columns.len());
        for atom in self.atoms() {
            let (i, j) = (2 * number(atom.i()), 2 * number(atom.j()));
            let opposite = usize::from(atom.sign() == Sign::Plus);
            sets.join(i, j + opposite);
            sets.join(i + 1, j + 1 - opposite);
        }
        let mut groups: BTreeMap<usize, Group> = BTreeMap::new();
        for (n, &feature) in columns.features().iter().enumerate() {
            let roots = [sets.root(2 * n), sets.root(2 * n + 1)];
            let group = groups.entry(roots[0].min(roots[1])).or_default();
            group.features.push(feature);
            group.balanced = roots[0] != roots[1];
        }
        for (atom, which) in self.atoms().iter().enumerate() {
            let n = number(which.i());
            let root = sets.root(2 * n).min(sets.root(2 * n + 1));
            groups.entry(root).or_default().atoms.push(atom);
        }
        groups.into_values().collect()
    }

    /// The largest `dim` eigenvalues of M / λ on one group, or all that are not 0, with their directions; and how many are
    /// not 0.
    fn eigen(&self, group: &Group, dim: Option<usize>) -> (Vec<Component>, usize) {
        let n = group.features.len();
        let place = |feature| {
            group
                .features
                .binary_search(&feature)
                .expect("it is in the group")
        };
        let pairs = group.atoms.iter().map(|&number| {
            let (atom, weight) = (self.atoms()[number], self.weights()[number]);
            (
                place(atom.i()),
                place(atom.j()),
                atom.sign().value(),
                weight,
            )
        });
        let matrix = SumOfPairs {
            n,
            pairs: pairs.collect(),
        };
        // The vectors e_i ± e_j of a connected graph of n nodes span n dimensions, or n - 1 if the signs around
        // every cycle agree (a balanced signed graph): the rank is known without looking at the numbers.
        let rank = n - usize::from(group.balanced);
        let few = dim.map(|dim| match n > MAX_DENSE {
            true => dim.min(MAX_DIRECTIONS),
            false => dim,
        });
        let (mut found, is_all) = match few {
            Some(few) if n > DENSE && few <= MAX_DIRECTIONS.min(n / 4) => {
                (lanczos::largest(&matrix, few.min(rank)), false)
            }
            _ => (dense_eigen(&matrix), true),
        };
        found.truncate(rank);
        // Directions that are lost to rounding are left out, too.
        let floor = n as f64 * f64::EPSILON * found.first().map_or(0.0, |pair| pair.0);
        found.retain(|pair| pair.0 > floor);
        let rank = if is_all { found.len() } else { rank };
        let component = |(value, mut vector): (f64, Vec<f64>)| {
            // The first among the largest, give or take rounding: ties are common in small groups.
            let largest = vector.iter().fold(0.0f64, |most, v| most.max(v.abs()));
            let head = vector.iter().find(|v| v.abs() >= largest * (1.0 - 1e-9));
            let sign = head.expect("a vector has a largest entry").signum();
            vector.iter_mut().for_each(|v| *v *= sign);
            (value, group.features.iter().copied().zip(vector).collect())
        };
        (found.into_iter().map(component).collect(), rank)
    }
}

/// All eigenvalues with their vectors, the largest first, as a dense matrix.
fn dense_eigen(matrix: &SumOfPairs) -> Vec<Eigenpair> {
    let n = matrix.n;
    let mut dense = vec![vec![0.0; n]; n];
    for &(i, j, sign, weight) in &matrix.pairs {
        dense[i][i] += weight;
        dense[j][j] += weight;
        dense[i][j] += sign * weight;
        dense[j][i] += sign * weight;
    }
    symmetric_eigen(dense)
}

impl ReducedTransform {
    /// How many learned coordinates there are.
    pub fn dim(&self) -> usize {
        self.eigenvalues.len()
    }

    /// The rank of M: how many learned coordinates there would be if none had been cut off.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The eigenvalues of M that were kept, the largest first.
    pub fn eigenvalues(&self) -> &[f64] {
        &self.eigenvalues
    }

    /// Many rows, mapped in parallel. Coordinates that are 0 are not stored; one beyond the range of `f64` becomes the
    /// largest number.
    pub fn transform_rows(&self, rows: &Rows) -> Rows {
        self.factors.transform_rows(rows)
    }
}

impl Similarity for ReducedTransform {
    fn score(&self, a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
        self.factors.score(a, b)
    }

    fn queries<'a>(&self, rows: &'a Rows) -> Cow<'a, Rows> {
        Cow::Owned(self.transform_rows(rows))
    }
}

/// A connected group of features.
#[derive(Default)]
struct Group {
    /// In increasing order.
    features: Vec<u32>,
    /// The numbers of the atoms between them.
    atoms: Vec<usize>,
    /// Whether some vector other than 0 is orthogonal to all of its atoms.
    balanced: bool,
}

/// Sets of nodes as trees; the root of each is its lowest node.
struct DisjointSets {
    parent: Vec<usize>,
}

impl DisjointSets {
    fn new(n: usize) -> Self {
        Self {
            parent: (0..n).collect(),
        }
    }

    /// The root of a node's set. Nodes on the way are moved up.
    fn root(&mut self, mut node: usize) -> usize {
        while self.parent[node] != node {
            self.parent[node] = self.parent[self.parent[node]];
            node = self.parent[node];
        }
        node
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.parent[a.max(b)] = a.min(b);
    }
}
