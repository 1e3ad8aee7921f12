//! The side of a shard: answers requests about its own triplets, with a local engine.

use super::protocol::{Partners, Reply, Request, State, received_active};
use crate::cancel::CancelToken;
use crate::error::Result;
use crate::objective::Problem;
use crate::solver::Incremental;
use crate::solver::engine::LocalEngine;
use crate::solver::gradient::SymmetrizedGradient;
use crate::solver::lmo::row_bounds;
use crate::solver::partner::{Limits, Partner, Top};
use crate::solver::recomputed::{AllMargins, Recomputed};

/// The largest number of partners that the first answer to a row lists. Problems with fewer columns have them all listed.
const LISTED: usize = 1 << 10;
/// The first answer lists partners whose D_j + |H_ij| is at least this share of the largest one. Shards of random triplets
/// have similar sums, so the best partner over all shards is nearly always among those. With a lower share, fewer columns
/// can be skipped.
const SHARE: f64 = 0.75;

/// A local engine that also gives the derivatives of φ along the direction of its last line search.
pub(crate) trait ShardEngine<'p>: LocalEngine<'p> {
    /// φ'(γ) and φ''(γ), where φ is V f along the direction.
    fn derivatives(&mut self, gamma: f64) -> (f64, f64);
    /// The breakpoints of φ' in an open interval, as (γ, change of φ''). `None` if there are more than `most`, or if φ' is
    /// not piecewise linear.
    fn breakpoints(&mut self, low: f64, high: f64, most: usize) -> Option<Vec<(f64, f64)>>;
}

/// The engine of a shard, at M = 0.
pub(crate) fn shard_engine<'p>(
    problem: &'p Problem<'p>,
    cancel: CancelToken<'_>,
) -> Result<Box<dyn ShardEngine<'p> + 'p>> {
    let mut engine: Box<dyn ShardEngine<'p> + 'p> = match problem.loss.segments() {
        Some(_) => Box::new(Incremental::new(problem, cancel)?),
        None => Box::new(Recomputed::<AllMargins>::new(problem, None, cancel)?),
    };
    engine.refresh_all();
    Ok(engine)
}

/// Answers requests in turn.
pub(crate) fn answer<'p>(
    engine: &mut dyn ShardEngine<'p>,
    problem: &'p Problem<'p>,
    requests: &[Request],
) -> Result<Vec<Reply>> {
    let each = |request: &Request| answer_one(engine, problem, request);
    requests.iter().map(each).collect()
}

fn answer_one<'p>(
    engine: &mut dyn ShardEngine<'p>,
    problem: &'p Problem<'p>,
    request: &Request,
) -> Result<Reply> {
    Ok(match request {
        Request::Start(active) => {
            engine.start_at(received_active(active)?);
            Reply::State(state(engine, problem))
        }
        Request::Row {
            feature,
            floor,
            columns,
        } => {
            let limits = Limits {
                floor: *floor,
                share: match problem.n_columns() <= LISTED {
                    true => 0.0,
                    false => SHARE,
                },
                most: LISTED,
            };
            let gradient = engine.gradient();
            let top = gradient.top_partners(*feature, limits);
            Reply::Partners(partners(gradient, *feature, Some(top), columns))
        }
        Request::More {
            feature,
            floor,
            most,
            columns,
        } => {
            let gradient = engine.gradient();
            let top = floor.map(|floor| {
                let limits = Limits {
                    floor,
                    share: 0.0,
                    most: *most as usize,
                };
                gradient.more_partners(*feature, limits)
            });
            Reply::Partners(partners(gradient, *feature, top, columns))
        }
        Request::Diagonal { most, columns } => {
            let gradient = engine.gradient();
            let all = (problem.n_columns() <= LISTED).then_some(LISTED);
            let top = gradient.top_diagonal(all.unwrap_or(*most as usize));
            let bound = Some(top.bound());
            let mut listed = top.partners;
            for &column in columns {
                if listed.iter().all(|p| p.column != column) {
                    listed.push(Partner {
                        column,
                        diagonal: gradient.diagonal_at(column),
                        h: 0.0,
                    });
                }
            }
            Reply::Partners(Partners {
                diagonal: 0.0,
                listed,
                bound,
            })
        }
        Request::RowBounds => Reply::Values(row_bounds(engine.gradient())),
        Request::Diagonals => Reply::Values(engine.gradient().diagonal()),
        Request::Line {
            direction,
            gamma_max,
        } => Reply::Line(engine.search_line(direction.received()?, *gamma_max)),
        Request::Breakpoints { low, high, most } => Reply::Breakpoints {
            low: engine.derivatives(*low),
            breakpoints: engine.breakpoints(*low, *high, *most as usize),
        },
        Request::Derivatives(gammas) => {
            let at = gammas.iter().map(|&gamma| engine.derivatives(gamma));
            Reply::Derivatives(at.collect())
        }
        Request::Advance { step, gamma } => {
            engine.advance(&step.received()?, *gamma);
            Reply::State(state(engine, problem))
        }
    })
}

fn state<'p>(engine: &mut dyn ShardEngine<'p>, problem: &Problem<'_>) -> State {
    engine.refresh_all();
    let value = engine.objective() * problem.total_weight;
    let gradient = engine.gradient();
    State {
        value,
        model_gain: gradient.gain_of_model() * problem.total_weight,
        scores: gradient.active_scores(),
    }
}

fn partners(
    gradient: &SymmetrizedGradient<'_>,
    feature: u32,
    top: Option<Top>,
    columns: &[u32],
) -> Partners {
    let bound = top.as_ref().map(Top::bound);
    let mut listed = top.map_or(Vec::new(), |top| top.partners);
    for &column in columns {
        if column != feature && listed.iter().all(|p| p.column != column) {
            listed.push(gradient.partner(column));
        }
    }
    Partners {
        diagonal: gradient.diagonal_at(feature),
        listed,
        bound,
    }
}

/// The answer of a shard without triplets: all sums are 0.
pub(crate) fn empty_reply(request: &Request, n_columns: usize) -> Reply {
    let zeros = |columns: &[u32], bound: Option<f64>| {
        let zero = |&column: &u32| Partner {
            column,
            diagonal: 0.0,
            h: 0.0,
        };
        Reply::Partners(Partners {
            diagonal: 0.0,
            listed: columns.iter().map(zero).collect(),
            bound,
        })
    };
    match request {
        Request::Start(active) => Reply::State(State {
            scores: vec![0.0; active.len()],
            ..State::default()
        }),
        Request::Advance { .. } => Reply::State(State::default()),
        Request::Row { columns, .. } | Request::Diagonal { columns, .. } => {
            zeros(columns, Some(0.0))
        }
        Request::More { columns, floor, .. } => zeros(columns, floor.map(|_| 0.0)),
        Request::RowBounds | Request::Diagonals => Reply::Values(vec![0.0; n_columns]),
        // φ' is 0 everywhere: every γ is a minimum.
        Request::Line { .. } => Reply::Line(f64::NAN),
        Request::Derivatives(gammas) => Reply::Derivatives(vec![(0.0, 0.0); gammas.len()]),
        Request::Breakpoints { .. } => Reply::Breakpoints {
            low: (0.0, 0.0),
            breakpoints: Some(Vec::new()),
        },
    }
}
