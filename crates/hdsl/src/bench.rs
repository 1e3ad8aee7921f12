//! The parts of one iteration, for benchmarks: the private engine at an iterate of a run, one method per part. Not part
//! of the public API.

use crate::atoms::{ActiveSet, Atom};
use crate::cancel::CancelToken;
use crate::data::Rows;
use crate::error::Result;
use crate::objective::loss::LossKind;
use crate::objective::{Problem, Scored};
use crate::solver::direction::Direction;
use crate::solver::engine::LocalEngine;
use crate::solver::lmo;
use crate::solver::{Incremental, SolverParams};
use crate::triplets::Triplets;

pub use crate::solver::gradient::traffic::Traffic;
pub use crate::solver::timed::{Phase, Phases};

/// Runs the solver for `iterations` and measures the parts of the iterations.
pub fn phases(rows: Rows, triplets: &Triplets, scale: f64, iterations: usize) -> Result<Phases> {
    let params = SolverParams {
        max_iter: iterations,
        ..SolverParams::new(scale)
    };
    let problem = Problem::taking(rows, triplets, scale, params.loss, CancelToken::NEVER)?;
    crate::solver::timed::phases(&problem, &params)
}

/// An incremental engine at the last iterate of a run.
pub struct WarmEngine<'p> {
    engine: Incremental<'p>,
    at: ActiveSet,
    /// The atoms that the heuristic oracle finds there from several starts, the best first.
    found: Vec<Scored>,
}

/// The number of starts.
const STARTS: usize = 16;

/// Runs the solver for `iterations`, and calls `work` with an engine at the last iterate.
pub fn with_warm_engine<T>(
    rows: &Rows,
    triplets: &Triplets,
    scale: f64,
    iterations: usize,
    work: impl FnOnce(&mut WarmEngine<'_>) -> T,
) -> Result<T> {
    let params = SolverParams {
        max_iter: iterations,
        ..SolverParams::new(scale)
    };
    let run = params.build()?.fit(rows, triplets, &mut ())?;
    let (rows, loss) = (rows.clone(), LossKind::default());
    let problem = Problem::taking(rows, triplets, scale, loss, CancelToken::NEVER)?;
    let inside = problem.features.internal(run.active.atoms());
    let inside = inside.expect("the solver used these very features");
    let weighted: Vec<(Atom, f64)> = inside.into_iter().zip(run.active.weights()).collect();
    let at = ActiveSet::from_weighted(&weighted)?;
    let mut engine = Incremental::new(&problem, CancelToken::NEVER)?;
    engine.start_at(at.clone());
    engine.refresh_all();
    let starts = (0..problem.n_columns().min(STARTS)).map(|start| start as u32);
    let mut found = starts
        .map(|start| lmo::alternating(engine.gradient(), start))
        .collect::<Result<Vec<Scored>>>()?;
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    found.dedup();
    Ok(work(&mut WarmEngine { engine, at, found }))
}

impl WarmEngine<'_> {
    /// The number of features that occur. Internally they are numbered by decreasing size.
    pub fn n_columns(&mut self) -> usize {
        self.engine.gradient().problem().n_columns()
    }

    /// Computes a row of H; the score of the best partner in it.
    pub fn partner(&mut self, feature: u32) -> f64 {
        self.engine.gradient().best_partner(feature, None).1
    }

    /// Line search and step towards each atom that the heuristic found, one after the other; the number of steps.
    pub fn steps(&mut self) -> usize {
        let mut taken = 0;
        for &(atom, _) in &self.found {
            let direction = Direction::Forward(atom);
            let gamma = self.engine.search_line(direction, 1.0);
            if gamma > 0.0 {
                let step = direction.step(gamma, self.engine.gradient().active());
                self.engine.advance(&step, gamma);
                self.engine.refresh_all();
                taken += 1;
            }
        }
        taken
    }

    /// Returns to the iterate of the start and recomputes everything; the objective there.
    pub fn rebuild(&mut self) -> f64 {
        self.engine.start_at(self.at.clone());
        self.engine.refresh_all();
        self.engine.objective()
    }

    /// The exact oracle, starting from the best atom of the heuristic; its score.
    pub fn exact(&mut self) -> f64 {
        lmo::Exact::default()
            .best(self.engine.gradient(), self.found[0])
            .1
    }
}
