//! The solver state of a coordinator whose triplets are on shards, possibly on other machines.
//!
//! The coordinator has the iterate and no rows. Its rounds (one message to every shard, one answer from each) in an
//! iteration are: one row of H for each step of the alternating search, and a second one if the answers leave the best
//! partner open ([`merge`](super::merge)); two for each line search, of which there are mostly one or two; one for the step, whose answer also
//! contains the scores of active atoms and the largest D.
//!
//! If a shard is lost, the [`Link`] makes new shards of the same triplets, and the engine starts them at its iterate. The
//! algorithm continues as if nothing had happened; its sums differ by rounding errors only.

use super::line::PiecewiseSlope;
use super::merge::Merge;
use super::protocol::{Partners, Reply, Request, Sent, SentStep, State, sent_active};
use crate::atoms::{ActiveSet, Atom, Step};
use crate::error::{Error, Result};
use crate::objective::{Features, Scored};
use crate::solver::bounds::better_pair;
use crate::solver::direction::{Direction, line_search};
use crate::solver::engine::{Engine, Gradient};
use crate::solver::lmo::Exact;
use rand_chacha::ChaCha8Rng;

/// The number of features with the largest D that a shard lists.
const LARGEST_DIAGONALS: u32 = 16;
/// The features of this many of the latest active atoms are asked for with every row. They are often the best partners.
const LATEST_ATOMS: usize = 8;
/// The largest number of partners and of breakpoints in one answer, the first time they are asked for.
const MOST: u32 = 1 << 12;
const MOST_BREAKPOINTS: u32 = 1 << 14;
/// The number of γ at which derivatives are asked for if there are too many breakpoints.
const GRID: usize = 16;

/// The shards, as the engine reaches them.
pub(crate) trait Shards {
    /// One round: sends the requests to every shard, and returns the replies of each, in the order of shards.
    /// [`Error::WorkerLost`] if a shard is gone.
    fn ask(&self, requests: &[Request]) -> Result<Vec<Vec<Reply>>>;
    /// Makes new shards of the same triplets, at M = 0, after one was lost.
    fn recover(&self, reason: &str) -> Result<()>;
}

pub(crate) struct Sharded<'p> {
    gradient: ShardedGradient<'p>,
    /// Whether φ' is piecewise linear.
    has_segments: bool,
}

pub(crate) struct ShardedGradient<'p> {
    features: &'p Features,
    shards: &'p dyn Shards,
    lambda: f64,
    /// V over all shards.
    total_weight: f64,
    active: ActiveSet,
    state: State,
    /// What is known of the largest D.
    diagonal: Merge,
    /// D of features that are known from the latest row of H.
    known_diagonals: Vec<(u32, f64)>,
    /// The feature whose row of H is asked for together with the next step, and then its answers.
    planned: Option<u32>,
    prefetched: Option<(u32, Vec<Partners>)>,
}

impl<'p> Sharded<'p> {
    /// The state at M = 0. The shards must be at M = 0, too.
    pub(crate) fn new(
        shards: &'p dyn Shards,
        features: &'p Features,
        lambda: f64,
        total_weight: f64,
        has_segments: bool,
    ) -> Result<Self> {
        let mut engine = Self {
            gradient: ShardedGradient {
                features,
                shards,
                lambda,
                total_weight,
                active: ActiveSet::default(),
                state: State::default(),
                diagonal: Merge::default(),
                known_diagonals: Vec::new(),
                planned: None,
                prefetched: None,
            },
            has_segments,
        };
        engine.gradient.attempt(|gradient| {
            let diagonal = gradient.diagonal_request();
            let [answers] = gradient.ask([diagonal])?;
            gradient.take_diagonal(answers)
        })?;
        Ok(engine)
    }

    /// [`Engine::search_line`] without a lost shard.
    fn search_shards(&mut self, direction: Direction, gamma_max: f64) -> Result<f64> {
        let gradient = &self.gradient;
        let line = Request::Line {
            direction: Sent::of(direction),
            gamma_max,
        };
        if !self.has_segments {
            gradient.ask([line])?;
            let mut failed = None;
            let gamma = line_search(gamma_max, |gamma| {
                // After a failure, the search ends at once.
                let sums = match failed {
                    None => gradient.derivatives(&[gamma]),
                    Some(_) => Ok(vec![(0.0, 1.0)]),
                };
                sums.map_or_else(
                    |error| {
                        failed = Some(error);
                        (0.0, 1.0)
                    },
                    |sums| sums[0],
                )
            });
            return failed.map_or(Ok(gamma), Err);
        }
        let [replies] = gradient.ask([line])?;
        let minima = replies.into_iter().map(|reply| match reply {
            Reply::Line(gamma) => Ok(gamma),
            other => Err(unexpected(&other)),
        });
        let minima = minima.collect::<Result<Vec<f64>>>()?;
        // φ is a sum of convex functions: its minimum is between the first and the last of their minima.
        let low = minima.iter().copied().fold(f64::INFINITY, f64::min);
        let high = minima.iter().copied().fold(0.0, f64::max);
        match low < high {
            true => self.search_between(low, high),
            false => Ok(low),
        }
    }

    /// The minimum between two γ: from all breakpoints between them, or if those are too many, after narrowing the
    /// interval.
    fn search_between(&self, mut low: f64, mut high: f64) -> Result<f64> {
        let gradient = &self.gradient;
        loop {
            let request = Request::Breakpoints {
                low,
                high,
                most: MOST_BREAKPOINTS,
            };
            let [replies] = gradient.ask([request])?;
            let mut slope = PiecewiseSlope {
                low,
                high,
                at_low: (0.0, 0.0),
                breakpoints: Vec::new(),
            };
            let mut is_complete = true;
            for reply in replies {
                let Reply::Breakpoints { low, breakpoints } = reply else {
                    return Err(unexpected(&reply));
                };
                slope.at_low = (slope.at_low.0 + low.0, slope.at_low.1 + low.1);
                match breakpoints {
                    Some(breakpoints) => slope.breakpoints.extend(breakpoints),
                    None => is_complete = false,
                }
            }
            if is_complete {
                return Ok(slope.root());
            }
            let step = (high - low) / (GRID + 1) as f64;
            let grid: Vec<f64> = (1..=GRID).map(|k| low + k as f64 * step).collect();
            let sums = gradient.derivatives(&grid)?;
            let n_below = sums.iter().take_while(|sum| sum.0 < 0.0).count();
            let (from, to) = (low, high);
            low = n_below.checked_sub(1).map_or(from, |k| grid[k]);
            high = grid.get(n_below).copied().unwrap_or(to);
            if high - low <= 1e-15 * high {
                return Ok(low);
            }
        }
    }
}

fn unexpected(reply: &Reply) -> Error {
    Error::data(format!("a shard gave an unexpected answer: {reply:?}"))
}

impl<'p> ShardedGradient<'p> {
    /// One round. Returns the replies of all shards, by request.
    fn ask<const N: usize>(&self, requests: [Request; N]) -> Result<[Vec<Reply>; N]> {
        let mut by_request: [Vec<Reply>; N] = std::array::from_fn(|_| Vec::new());
        for replies in self.shards.ask(&requests)? {
            if replies.len() != N {
                return Err(Error::data("a shard did not answer every request"));
            }
            for (request, reply) in by_request.iter_mut().zip(replies) {
                request.push(reply);
            }
        }
        Ok(by_request)
    }

    /// Repeats an operation until no shard is lost during it.
    fn attempt<R>(&mut self, operation: impl Fn(&mut Self) -> Result<R>) -> Result<R> {
        loop {
            match operation(self) {
                Err(Error::WorkerLost(reason)) => self.restore(reason)?,
                done => return done,
            }
        }
    }

    /// Replaces lost shards, and starts all shards at the iterate.
    fn restore(&mut self, mut reason: String) -> Result<()> {
        loop {
            self.prefetched = None;
            self.shards.recover(&reason)?;
            match self.start_shards() {
                Err(Error::WorkerLost(again)) => reason = again,
                done => return done,
            }
        }
    }

    /// Starts the shards at the iterate.
    fn start_shards(&mut self) -> Result<()> {
        let diagonal = self.diagonal_request();
        if self.active.is_empty() {
            let [answers] = self.ask([diagonal])?;
            return self.take_diagonal(answers);
        }
        let start = Request::Start(sent_active(&self.active));
        let [states, diagonals] = self.ask([start, diagonal])?;
        self.take_state(states)?;
        self.take_diagonal(diagonals)
    }

    fn diagonal_request(&self) -> Request {
        Request::Diagonal {
            most: LARGEST_DIAGONALS,
            columns: self
                .diagonal
                .complete()
                .map(|d| d.column)
                .take(LARGEST_DIAGONALS as usize)
                .collect(),
        }
    }

    fn take_diagonal(&mut self, answers: Vec<Reply>) -> Result<()> {
        self.diagonal = Merge::default();
        self.known_diagonals.clear();
        self.diagonal.add(partners(answers)?);
        Ok(())
    }

    fn take_state(&mut self, replies: Vec<Reply>) -> Result<()> {
        let mut sum = State {
            scores: vec![0.0; self.active.len()],
            ..State::default()
        };
        for reply in replies {
            let Reply::State(part) = reply else {
                return Err(unexpected(&reply));
            };
            sum.value += part.value;
            sum.model_gain += part.model_gain;
            for (sum, part) in sum.scores.iter_mut().zip(part.scores) {
                *sum += part;
            }
        }
        self.state = sum;
        Ok(())
    }

    /// φ' and φ'' at each γ, over all shards.
    fn derivatives(&self, gammas: &[f64]) -> Result<Vec<(f64, f64)>> {
        let mut sums = vec![(0.0, 0.0); gammas.len()];
        let [replies] = self.ask([Request::Derivatives(gammas.to_vec())])?;
        for reply in replies {
            let Reply::Derivatives(parts) = reply else {
                return Err(unexpected(&reply));
            };
            for (sum, part) in sums.iter_mut().zip(parts) {
                *sum = (sum.0 + part.0, sum.1 + part.1);
            }
        }
        Ok(sums)
    }

    /// The feature with the largest D, without a lost shard.
    fn largest_diagonal(&mut self) -> Result<u32> {
        let mut most = LARGEST_DIAGONALS;
        loop {
            let mut best: Option<(u32, f64)> = None;
            for found in self.diagonal.complete() {
                if best.is_none_or(|best| found.diagonal > best.1) {
                    best = Some((found.column, found.diagonal));
                }
            }
            let open = self
                .diagonal
                .open(best.map_or(f64::NEG_INFINITY, |best| best.1));
            if let Some(best) = best.filter(|_| open.is_empty()) {
                return Ok(best.0);
            }
            most = most.saturating_mul(if open.unseen { 16 } else { 1 });
            let columns = open.columns;
            let [answers] = self.ask([Request::Diagonal { most, columns }])?;
            self.diagonal.add(partners(answers)?);
        }
    }

    /// [`Gradient::best_partner`] without a lost shard.
    fn partner_of(&mut self, feature: u32, floor: Option<Scored>) -> Result<Scored> {
        let known = self.known_diagonals.iter().find(|known| known.0 == feature);
        let required = floor.zip(known).map(|(floor, known)| floor.1 - known.1);
        let mut merge = Merge::default();
        // The bounds of the last answer have as many shards as there are.
        let share = required.map_or(f64::NEG_INFINITY, |r| self.diagonal.share_of(r));
        let prefetched = self.prefetched.take().filter(|row| row.0 == feature);
        merge.add(match prefetched {
            Some((_, answers)) => answers,
            None => {
                let [answers] = self.ask([self.row_request(feature, share)])?;
                partners(answers)?
            }
        });
        let placeholder = Atom::plus(0, 1).expect("the features differ");
        let mut most = MOST;
        loop {
            let mut best = floor.unwrap_or((placeholder, f64::NEG_INFINITY));
            for partner in merge.complete() {
                let (pair, diagonals) =
                    ([feature, partner.column], merge.diagonal + partner.diagonal);
                best = better_pair(self.features, best, pair, diagonals, partner.h);
            }
            let required = best.1 - merge.diagonal;
            let open = merge.open(required);
            if open.is_empty() {
                self.known_diagonals = merge.complete().map(|p| (p.column, p.diagonal)).collect();
                self.known_diagonals.push((feature, merge.diagonal));
                return Ok(best);
            }
            let [answers] = self.ask([Request::More {
                feature,
                floor: open.unseen.then(|| merge.share_of(required)),
                most,
                columns: open.columns,
            }])?;
            merge.add(partners(answers)?);
            most = most.saturating_mul(8);
        }
    }

    fn row_request(&self, feature: u32, floor: f64) -> Request {
        Request::Row {
            feature,
            floor,
            columns: self.likely_partners(feature),
        }
    }

    /// Columns that are asked for with a row: at least one, so that there is an atom to compare with.
    fn likely_partners(&self, feature: u32) -> Vec<u32> {
        let latest = self.active.atoms().iter().rev().take(LATEST_ATOMS);
        let mut columns: Vec<u32> = latest.flat_map(|atom| [atom.i(), atom.j()]).collect();
        columns.extend(self.diagonal.complete().map(|d| d.column).take(4));
        columns.extend([0, 1]);
        columns.sort_unstable();
        columns.dedup();
        columns.retain(|&column| column != feature);
        columns
    }

    /// D of every feature, or an upper bound of each row of H, summed over shards.
    fn values(&self, request: Request) -> Result<Vec<f64>> {
        let mut sums = vec![0.0; self.features.len()];
        let [replies] = self.ask([request])?;
        for reply in replies {
            let Reply::Values(values) = reply else {
                return Err(unexpected(&reply));
            };
            sums.iter_mut().zip(values).for_each(|(sum, x)| *sum += x);
        }
        Ok(sums)
    }
}

fn partners(replies: Vec<Reply>) -> Result<Vec<Partners>> {
    let each = replies.into_iter().map(|reply| match reply {
        Reply::Partners(partners) => Ok(partners),
        other => Err(unexpected(&other)),
    });
    each.collect()
}

impl<'p> Gradient<'p> for ShardedGradient<'p> {
    fn features(&self) -> &'p Features {
        self.features
    }

    fn active(&self) -> &ActiveSet {
        &self.active
    }

    fn gain(&self, score: f64) -> f64 {
        self.lambda * score / self.total_weight
    }

    fn gain_of_model(&self) -> f64 {
        self.state.model_gain / self.total_weight
    }

    fn active_scores(&self) -> Vec<f64> {
        self.state.scores.clone()
    }

    fn plan(&mut self, draw: &mut dyn FnMut() -> u32) {
        self.planned = Some(draw());
    }

    fn best_diagonal(&mut self) -> Result<u32> {
        self.attempt(Self::largest_diagonal)
    }

    fn best_partner(&mut self, feature: u32, floor: Option<Scored>) -> Result<Scored> {
        self.attempt(|gradient| gradient.partner_of(feature, floor))
    }

    /// With h_i >= max_j |H_ij| and s_i = D_i + h_i / 2, the score of an atom is at most s_i + s_j. Features are visited
    /// by decreasing s until the two largest of the rest cannot form a better atom.
    fn best_atom(&mut self, _: &mut Exact, found: Scored) -> Result<Scored> {
        let diagonal = self.attempt(|gradient| gradient.values(Request::Diagonals))?;
        let bounds = self.attempt(|gradient| gradient.values(Request::RowBounds))?;
        let size = |i: u32| diagonal[i as usize] + 0.5 * bounds[i as usize];
        let mut order: Vec<u32> = (0..self.features.len() as u32).collect();
        order.sort_by(|&a, &b| size(b).total_cmp(&size(a)));
        let mut best = found;
        for pair in order.windows(2) {
            let most = size(pair[0]) + size(pair[1]);
            if most + 1e-9 * most.abs() < best.1 {
                break;
            }
            best = self.best_partner(pair[0], Some(best))?;
        }
        Ok(best)
    }
}

impl<'p> Engine<'p> for Sharded<'p> {
    type Gradient = ShardedGradient<'p>;

    fn gradient(&mut self) -> &mut ShardedGradient<'p> {
        &mut self.gradient
    }

    fn refresh(&mut self, _rng: &mut ChaCha8Rng) -> Result<()> {
        Ok(())
    }

    fn refresh_all(&mut self) -> Result<()> {
        Ok(())
    }

    fn reestimated_rates(&mut self, _: &[Atom], _: &mut ChaCha8Rng) -> Result<Option<Vec<f64>>> {
        Ok(None)
    }

    fn rounding(&self) -> f64 {
        // The shards may be others than those of an earlier run.
        1e-9
    }

    fn objective(&mut self) -> Result<f64> {
        Ok(self.gradient.state.value / self.gradient.total_weight)
    }

    fn start_at(&mut self, active: ActiveSet) -> Result<()> {
        self.gradient.active = active;
        self.gradient.attempt(ShardedGradient::start_shards)
    }

    fn search_line(&mut self, direction: Direction, gamma_max: f64) -> Result<f64> {
        loop {
            match self.search_shards(direction, gamma_max) {
                Err(Error::WorkerLost(reason)) => self.gradient.restore(reason)?,
                done => return done,
            }
        }
    }

    fn advance(&mut self, step: &Step, gamma: f64) -> Result<()> {
        let gradient = &mut self.gradient;
        gradient.active.apply(step);
        let advance = Request::Advance {
            step: SentStep::of(step),
            gamma,
        };
        let diagonal = gradient.diagonal_request();
        let planned = gradient.planned.take();
        gradient.prefetched = None;
        let answers = match planned {
            None => {
                let asked = gradient.ask([advance, diagonal]);
                asked.map(|[states, diagonals]| (states, diagonals, None))
            }
            Some(feature) => {
                let row = gradient.row_request(feature, f64::NEG_INFINITY);
                let asked = gradient.ask([advance, diagonal, row]);
                asked.map(|[states, diagonals, row]| (states, diagonals, Some((feature, row))))
            }
        };
        match answers {
            Ok((states, diagonals, row)) => {
                gradient.take_state(states)?;
                gradient.take_diagonal(diagonals)?;
                if let Some((feature, row)) = row {
                    gradient.prefetched = Some((feature, partners(row)?));
                }
                Ok(())
            }
            // New shards start after the step.
            Err(Error::WorkerLost(reason)) => gradient.restore(reason),
            Err(error) => Err(error),
        }
    }
}
