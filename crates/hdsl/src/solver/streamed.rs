//! Margins computed anew in a pass over all triplets: works for every loss.

use super::plain::Keeper;
use crate::atoms::ActiveSet;
use crate::objective::Problem;
use crate::solver::direction::{Deltas, Direction, line_search};

/// The margins, and the direction last looked along.
pub(crate) struct Streamed<'p> {
    problem: &'p Problem<'p>,
    pub(super) margins: Vec<f64>,
    deltas: Deltas,
}

impl<'p> Keeper<'p> for Streamed<'p> {
    fn new(problem: &'p Problem<'p>) -> Self {
        Self {
            problem,
            margins: vec![0.0; problem.triplets.len()],
            deltas: Deltas::default(),
        }
    }

    fn start_at(&mut self, active: &ActiveSet) {
        self.margins = self.problem.margins(active);
    }

    fn objective(&mut self) -> f64 {
        self.problem.value(&self.margins)
    }

    fn all(&self, pushes: &mut Vec<f64>, margins: &mut Vec<f64>) {
        self.problem.pushes(&self.margins, pushes);
        margins.clone_from(&self.margins);
    }

    fn triplet(&self, position: u32) -> u32 {
        position
    }

    fn some(&self, positions: &[u32], pushes: &mut Vec<f64>, margins: &mut Vec<f64>) {
        margins.clear();
        margins.extend(positions.iter().map(|&t| self.margins[t as usize]));
        pushes.clear();
        let push = |(&t, &m)| self.problem.push(t as usize, m);
        pushes.extend(positions.iter().zip(&*margins).map(push));
    }

    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> f64 {
        let (problem, margins) = (self.problem, &self.margins);
        let deltas = self.deltas.along(problem, direction, margins);
        line_search(gamma_max, |gamma| problem.along(margins, deltas, gamma))
    }

    fn advance(&mut self, gamma: f64, _: &ActiveSet) {
        self.deltas.apply(gamma, &mut self.margins);
    }
}
