//! The linear minimization oracle, line 3 of Alg. 1: an atom B_F that minimizes <B, ∇f> over all d(d-1) atoms.

mod alternating;
mod exact;
mod panel;

pub(crate) use alternating::alternating;
pub(crate) use exact::{Exact, row_bounds};

use super::engine::Gradient;
use super::params::{Search, SolverParams};
use crate::checkpoint::OracleState;
use crate::error::Result;
use crate::objective::Scored;
use crate::random;
use rand_chacha::ChaCha8Rng;

/// How many iterations a feature rests. 8 and 128 are about as good.
const REST: usize = 32;

/// The oracle that [`Search`] names. If there is a tolerance, the heuristic sometimes calls the exact oracle, to
/// certify that the gap is within it.
pub(crate) struct Oracle {
    search: Search,
    tolerance: Option<f64>,
    state: OracleState,
    exact: Exact,
}

impl Oracle {
    pub(crate) fn new(params: &SolverParams) -> Self {
        Self {
            search: params.search,
            tolerance: params.tolerance,
            state: OracleState::default(),
            exact: Exact::default(),
        }
    }

    /// Before a step: lets the gradient know the start of the search in iteration `iter`, if it is random.
    pub(crate) fn plan<'p>(&self, gradient: &mut impl Gradient<'p>, iter: usize, rng: &ChaCha8Rng) {
        let n = gradient.features().len();
        if iter.is_multiple_of(2) {
            // The search itself draws the same number.
            gradient.plan(&mut || random::below(&mut rng.clone(), n) as u32);
        }
    }

    /// What the oracle remembers of earlier iterations.
    pub(crate) fn state(&self) -> OracleState {
        self.state
    }

    /// Goes on as an oracle that returned this.
    pub(crate) fn set_state(&mut self, state: OracleState) {
        self.state = state;
    }

    /// The same oracle with another exact search.
    #[cfg(test)]
    pub(crate) fn with_exact(params: &SolverParams, exact: Exact) -> Self {
        Self {
            exact,
            ..Self::new(params)
        }
    }

    /// The best atom that the given search finds. It need not be the search of the run.
    pub(crate) fn best<'p>(
        &mut self,
        gradient: &mut impl Gradient<'p>,
        search: Search,
    ) -> Result<Scored> {
        let start = gradient.best_diagonal()?;
        let found = alternating(gradient, start, None)?;
        match search {
            Search::Alternating => Ok(found),
            Search::Exact => gradient.best_atom(&mut self.exact, found),
        }
    }

    /// The forward atom, and whether it was found by the exact oracle. Its score is at least that of `best_active`. The best
    /// active atom has <B, -∇f> >= <M, -∇f>, so the rate of the forward direction is never negative. `turn` counts
    /// iterations, stalled ones too.
    pub(crate) fn forward<'p>(
        &mut self,
        gradient: &mut impl Gradient<'p>,
        best_active: Scored,
        turn: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Scored, bool)> {
        let found = self.search(gradient, best_active, turn, rng)?;
        // The gap of the heuristic is a lower bound of the true one. If it is above the tolerance, so is the true one.
        let gap = gradient.gain(found.1) - gradient.gain_of_model();
        let may_end = self.tolerance.is_some_and(|tolerance| gap <= tolerance);
        if self.search == Search::Exact || (may_end && turn >= self.state.next_certificate) {
            self.state.next_certificate = turn + 10 + turn / 10;
            Ok((gradient.best_atom(&mut self.exact, found)?, true))
        } else {
            Ok((found, false))
        }
    }

    /// The heuristic from a random feature and from the one with the largest D in turn: on some data, either start alone stalls.
    /// Where the largest D belongs to the same feature for many iterations, it is often of no use. If the search from it finds
    /// no new atom, this feature rests for some iterations, and the search starts from the best active atom instead.
    fn search<'p>(
        &mut self,
        gradient: &mut impl Gradient<'p>,
        best_active: Scored,
        turn: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<Scored> {
        let features = gradient.features();
        if turn.is_multiple_of(2) {
            let start = random::below(rng, features.len()) as u32;
            return Ok(features.better(best_active, alternating(gradient, start, None)?));
        }
        let start = gradient.best_diagonal()?;
        let rests = self.state.resting == Some(start) && turn < self.state.rests_until;
        // After a line search, the scores of two active atoms are equal, and rounding decides which one is the best.
        if rests && gradient.active().len() > 2 {
            return alternating(gradient, best_active.0.i(), Some(best_active));
        }
        let found = features.better(best_active, alternating(gradient, start, None)?);
        if gradient.active().weight(found.0) > 0.0 {
            (self.state.resting, self.state.rests_until) = (Some(start), turn + REST);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atoms::{ActiveSet, Atom};
    use crate::objective::Features;

    /// H and D as dense matrices, and the features whose rows were asked for.
    struct Dense<'a> {
        features: &'a Features,
        active: ActiveSet,
        diagonal: [f64; 5],
        rows: [[f64; 5]; 5],
        asked: Vec<u32>,
    }

    impl Dense<'_> {
        fn set(&mut self, i: usize, j: usize, value: f64) {
            (self.rows[i][j], self.rows[j][i]) = (value, value);
        }
    }

    impl<'a> Gradient<'a> for Dense<'a> {
        fn features(&self) -> &'a Features {
            self.features
        }

        fn active(&self) -> &ActiveSet {
            &self.active
        }

        fn gain(&self, score: f64) -> f64 {
            score
        }

        fn gain_of_model(&self) -> f64 {
            0.0
        }

        fn active_scores(&self) -> Vec<f64> {
            unreachable!("the oracle is given the best active atom")
        }

        fn best_diagonal(&mut self) -> Result<u32> {
            let largest = (0..5u32).rev();
            let d = |&i: &u32| self.diagonal[i as usize];
            Ok(largest
                .max_by(|a, b| d(a).total_cmp(&d(b)))
                .expect("five features"))
        }

        fn best_partner(&mut self, feature: u32, floor: Option<Scored>) -> Result<Scored> {
            self.asked.push(feature);
            let i = feature as usize;
            let partners = (0..5u32).filter(|&j| j != feature);
            let atoms = partners.flat_map(|j| {
                let (sum, h) = (
                    self.diagonal[i] + self.diagonal[j as usize],
                    self.rows[i][j as usize],
                );
                let plus = Atom::plus(feature, j).expect("two features");
                let minus = Atom::minus(feature, j).expect("two features");
                [(plus, sum + h), (minus, sum - h)]
            });
            let best = atoms.chain(floor).reduce(|a, b| self.features.better(a, b));
            Ok(best.expect("four partners"))
        }

        fn best_atom(&mut self, _: &mut Exact, _: Scored) -> Result<Scored> {
            unreachable!("the heuristic is tested")
        }
    }

    #[test]
    fn a_feature_rests_after_a_search_that_found_no_new_atom() {
        let features = Features::new((0..5).collect());
        let atom = |i, j| Atom::plus(i, j).unwrap();
        let active = [(atom(1, 2), 0.5), (atom(2, 3), 0.25), (atom(3, 4), 0.25)];
        let mut gradient = Dense {
            features: &features,
            active: ActiveSet::from_weighted(&active).unwrap(),
            diagonal: [10.0, 1.0, 1.0, 1.0, 1.0],
            rows: [[0.0; 5]; 5],
            asked: Vec::new(),
        };
        gradient.set(1, 2, 30.0);
        let best_active = (atom(1, 2), 32.0);
        let mut oracle = Oracle::new(&SolverParams::new(1.0));
        let mut rng = random::rng(0, 0);
        let mut start = |gradient: &mut Dense<'_>, turn| {
            gradient.asked.clear();
            let found = oracle.forward(gradient, best_active, turn, &mut rng);
            (gradient.asked[0], found.unwrap().0)
        };
        // Feature 0 has the largest D, but no atom with it is better than the best active one.
        assert_eq!(start(&mut gradient, 1), (0, best_active));
        assert_eq!(start(&mut gradient, 3), (1, best_active));
        // From the best active atom, a better one with one of its features is found.
        gradient.set(2, 4, 40.0);
        assert_eq!(start(&mut gradient, 31), (1, (atom(2, 4), 42.0)));
        gradient.set(2, 4, 0.0);
        assert_eq!(start(&mut gradient, 1 + REST), (0, best_active));
        // Another feature does not rest, nor does one that led to a new atom.
        gradient.set(2, 4, 40.0);
        gradient.diagonal[4] = 11.0;
        for turn in [3 + REST, 5 + REST] {
            assert_eq!(start(&mut gradient, turn), (4, (atom(2, 4), 52.0)));
        }
    }
}
