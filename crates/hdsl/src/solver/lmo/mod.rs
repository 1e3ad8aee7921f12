//! The linear minimization oracle, line 3 of Alg. 1: an atom B_F that minimizes <B, ∇f> over all d(d-1) atoms.

mod alternating;
mod exact;
mod panel;

pub(crate) use alternating::alternating;
pub(crate) use exact::{Exact, row_bounds};

use super::engine::Gradient;
use super::params::{Search, SolverParams, StepRule};
use crate::atoms::ActiveSet;
use crate::checkpoint::OracleState;
use crate::error::Result;
use crate::objective::Scored;
use crate::random;
use rand_chacha::ChaCha8Rng;

/// How many iterations a feature rests. 8 and 128 are about as good.
const REST: usize = 32;
/// The oracle skips its search if the predicted decrease along an active atom is more than this many times the mean decrease by new
/// atoms. With 2, the same objective takes 1 to 5% longer.
const SKIP_FACTOR: f64 = 4.0;
/// The largest number of iterations in a row without a search. It bounds how late a new atom is found, and was not varied.
const MAX_SKIPPED: usize = 5;
/// The weight of the latest search in the mean decrease by new atoms, which is a running mean. It was not varied either.
const LATEST_WEIGHT: f64 = 0.3;

/// After this many searches in a row that found no new atom along which f decreases, most searches start from an active feature.
/// Only for the heuristic under [`StepRule::Decrease`]. The number was not varied.
const MAX_WITHOUT_NEW: usize = 32;
/// The share of searches that then start from an active feature. It was not varied either.
const ACTIVE_SHARE: f64 = 0.75;

/// The oracle that [`Search`] names. If there is a tolerance, the heuristic sometimes calls the exact oracle, to
/// certify that the gap is within it.
pub(crate) struct Oracle {
    search: Search,
    rule: StepRule,
    tolerance: Option<f64>,
    state: OracleState,
    /// The feature with the largest D, if the last search started from it.
    largest: Option<u32>,
    /// Whether the last search started from an active feature, because others found no new atom.
    from_active: bool,
    exact: Exact,
}

impl Oracle {
    pub(crate) fn new(params: &SolverParams) -> Self {
        Self {
            search: params.search,
            rule: params.rule(),
            tolerance: params.tolerance,
            state: OracleState::default(),
            largest: None,
            from_active: false,
            exact: Exact::default(),
        }
    }

    /// Before a step: lets the gradient know the start of the search in iteration `iter`, if it is likely to be a random one of all
    /// features.
    pub(crate) fn plan<'p>(&self, gradient: &mut impl Gradient<'p>, iter: usize, rng: &ChaCha8Rng) {
        let n = gradient.features().len();
        let is_random = iter.is_multiple_of(2) || iter < self.state.rests_until;
        if is_random && !self.may_start_from_active() {
            // The search itself draws the same number.
            gradient.plan(&mut || random_start(&mut rng.clone(), n));
        }
    }

    /// Whether most searches start from active features.
    fn may_start_from_active(&self) -> bool {
        self.state.n_without_new >= MAX_WITHOUT_NEW
            && self.search == Search::Alternating
            && self.rule == StepRule::Decrease
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
        let found = alternating(gradient, start)?;
        match search {
            Search::Alternating => Ok(found),
            Search::Exact => gradient.best_atom(&mut self.exact, found),
        }
    }

    /// The atom that a search finds, and whether it is the best of all atoms. The heuristic may find one with a lower score than
    /// that of `best_active`. `turn` counts iterations, stalled ones too.
    pub(crate) fn search<'p>(
        &mut self,
        gradient: &mut impl Gradient<'p>,
        best_active: Scored,
        turn: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Scored, bool)> {
        self.state.n_skipped = 0;
        let start = self.start(gradient, turn, rng)?;
        let found = alternating(gradient, start)?;
        // The gap of the heuristic is a lower bound of the true one. If it is above the tolerance, so is the true one.
        let best = gradient.features().better(best_active, found);
        let gap = gradient.gain(best.1) - gradient.gain_of_model();
        let may_end = self.tolerance.is_some_and(|tolerance| gap <= tolerance);
        if self.search == Search::Exact || (may_end && turn >= self.state.next_certificate) {
            self.state.next_certificate = turn + 10 + turn / 10;
            Ok((gradient.best_atom(&mut self.exact, best)?, true))
        } else {
            Ok((found, false))
        }
    }

    /// The feature from which the heuristic starts: the one with the largest D and a random one in turn. On some data, either
    /// alone stalls. Where the largest D belongs to the same feature for many iterations, it is often of no use. If the atom
    /// that was found from it is not used (with other rules than `decrease`: is not better than the best active one), this
    /// feature rests for some iterations, and all starts are random. If no such search finds a new atom for long, most starts
    /// are random active features.
    fn start<'p>(
        &mut self,
        gradient: &mut impl Gradient<'p>,
        turn: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<u32> {
        self.largest = None;
        self.from_active = self.may_start_from_active() && random::unit(rng) < ACTIVE_SHARE;
        if self.from_active {
            return Ok(random_active(rng, gradient.active()));
        }
        if !turn.is_multiple_of(2) {
            let start = gradient.best_diagonal()?;
            let rests = self.state.resting == Some(start) && turn < self.state.rests_until;
            self.largest = Some(start).filter(|_| !rests);
        }
        let n = gradient.features().len();
        Ok(self.largest.unwrap_or_else(|| random_start(rng, n)))
    }

    /// Whether to skip the search, because the predicted decrease along an active atom is so large that a search is not worth its
    /// time.
    pub(crate) fn may_skip(&mut self, predicted: f64) -> bool {
        let state = &mut self.state;
        let skips = self.search == Search::Alternating
            && predicted > SKIP_FACTOR * state.mean_decrease
            && state.n_skipped < MAX_SKIPPED;
        state.n_skipped += usize::from(skips);
        skips
    }

    /// Takes note of the decrease of f by the step to the atom of the last search, 0 if that is not new, and of whether this step
    /// is taken.
    pub(crate) fn learn(&mut self, decrease: f64, is_taken: bool, turn: usize) {
        let state = &mut self.state;
        match state.mean_decrease.is_finite() {
            true => state.mean_decrease += LATEST_WEIGHT * (decrease - state.mean_decrease),
            false => state.mean_decrease = decrease,
        }
        if !self.from_active {
            state.n_without_new = match decrease > 0.0 {
                true => 0,
                false => MAX_WITHOUT_NEW.min(state.n_without_new + 1),
            };
        }
        if !is_taken && self.largest.is_some() {
            (state.resting, state.rests_until) = (self.largest, turn + REST);
        }
    }
}

/// One of the two features of a random active atom.
fn random_active(rng: &mut ChaCha8Rng, active: &ActiveSet) -> u32 {
    let atoms = active.atoms();
    let at = (random::unit(rng) * (2 * atoms.len()) as f64) as usize;
    let atom = atoms[at / 2];
    if at.is_multiple_of(2) {
        atom.i()
    } else {
        atom.j()
    }
}

/// A random feature, from which a search starts: number u³ n of n, where u is uniform. Internal features are ordered by
/// decreasing size, and searches from features in many rows lead to better atoms.
fn random_start(rng: &mut ChaCha8Rng, n: usize) -> u32 {
    let u = random::unit(rng);
    // Rounding may give n itself.
    ((u * u * u * n as f64) as usize).min(n - 1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atoms::Atom;
    use crate::objective::Features;

    /// H and D as dense matrices, and the features whose rows were asked for.
    struct Dense<'a> {
        features: &'a Features,
        active: ActiveSet,
        diagonal: [f64; 5],
        rows: [[f64; 5]; 5],
        asked: Vec<u32>,
    }

    impl<'a> Dense<'a> {
        /// D = 1, and H = 0 beside it.
        fn of(features: &'a Features) -> Self {
            Self {
                features,
                active: ActiveSet::single(Atom::plus(1, 2).expect("two features")),
                diagonal: [1.0; 5],
                rows: [[0.0; 5]; 5],
                asked: Vec::new(),
            }
        }

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
    fn a_feature_rests_after_a_search_whose_atom_is_not_used() {
        let features = Features::new((0..5).collect());
        let atom = |i, j| Atom::plus(i, j).unwrap();
        let mut gradient = Dense::of(&features);
        gradient.diagonal[0] = 10.0;
        gradient.set(1, 2, 30.0);
        let mut oracle = Oracle::new(&SolverParams::new(1.0));
        let mut rng = random::rng(0, 0);
        let mut search = |gradient: &mut Dense<'_>, turn, is_taken| {
            gradient.asked.clear();
            let random = random_start(&mut rng.clone(), 5);
            let found = oracle.search(gradient, (atom(1, 2), 32.0), turn, &mut rng);
            oracle.learn(1.0, is_taken, turn);
            // Whether the start was that of the largest D, or the random one.
            (
                gradient.asked[0] == 0,
                gradient.asked[0] == random,
                found.unwrap().0,
            )
        };
        // From feature 0, which has the largest D, both 1 and 2 are among the best partners.
        let (largest, _, found) = search(&mut gradient, 1, true);
        assert!(largest);
        assert_eq!(found, (atom(1, 2), 32.0));
        // An atom that is used changes nothing; one that is not used lets the feature rest.
        assert!(search(&mut gradient, 3, false).0);
        for turn in (5..3 + REST).step_by(2) {
            assert!(search(&mut gradient, turn, true).1, "turn {turn}");
        }
        assert!(search(&mut gradient, 3 + REST, false).0);
        // Even turns start from random features, which do not rest.
        assert!(search(&mut gradient, 4 + REST, false).1);
        // Another feature with the largest D does not rest.
        gradient.diagonal[4] = 11.0;
        search(&mut gradient, 5 + REST, true);
        assert_eq!(gradient.asked[0], 4);
    }

    #[test]
    fn active_features_are_starts_after_many_searches_without_a_new_atom() {
        let features = Features::new((0..5).collect());
        // The only active features are 1 and 2. The largest D is that of 0.
        let mut gradient = Dense::of(&features);
        gradient.diagonal[0] = 10.0;
        let best = gradient.active.atoms()[0];
        let mut oracle = Oracle::new(&SolverParams::new(1.0));
        let mut rng = random::rng(0, 0);
        let mut turn = 0;
        // Whether the search starts from an active feature on purpose.
        let mut search = |oracle: &mut Oracle, decrease: f64| {
            gradient.asked.clear();
            turn += 1;
            let found = oracle.search(&mut gradient, (best, 2.0), turn, &mut rng);
            assert!(found.is_ok());
            oracle.learn(decrease, false, turn);
            assert!(!oracle.from_active || [1, 2].contains(&gradient.asked[0]));
            oracle.from_active
        };
        for _ in 0..3 {
            (1..MAX_WITHOUT_NEW).for_each(|_| assert!(!search(&mut oracle, 0.0)));
            // A new atom begins the count again.
            assert!(!search(&mut oracle, 0.1));
        }
        (0..MAX_WITHOUT_NEW).for_each(|_| assert!(!search(&mut oracle, 0.0)));
        // New atoms from active features do not end this, and some searches still start elsewhere.
        let n_active = (0..400).filter(|_| search(&mut oracle, 0.0)).count();
        assert!((250..350).contains(&n_active), "{n_active}");
        while !search(&mut oracle, 0.0) {}
        oracle.learn(0.1, true, 1000);
        assert!(oracle.may_start_from_active());
        while search(&mut oracle, 0.0) {}
        oracle.learn(0.1, true, 1000);
        (0..MAX_WITHOUT_NEW).for_each(|_| assert!(!search(&mut oracle, 0.0)));

        // Neither an exact search nor another step rule does this.
        let mut exact = SolverParams::new(1.0);
        exact.search = Search::Exact;
        let mut away = SolverParams::new(1.0);
        away.steps = StepRule::Away;
        for params in [exact, away] {
            let mut other = Oracle::new(&params);
            other.set_state(oracle.state());
            assert!(other.state.n_without_new >= MAX_WITHOUT_NEW);
            for turn in 0..100 {
                let start = other.start(&mut gradient, turn, &mut rng);
                assert!(start.is_ok() && !other.from_active);
            }
        }
    }

    #[test]
    fn no_search_while_the_decrease_along_active_atoms_is_large() {
        let mut oracle = Oracle::new(&SolverParams::new(1.0));
        assert!(!oracle.may_skip(1e9), "nothing is known");
        oracle.learn(2.0, true, 1);
        oracle.learn(1.0, false, 2);
        // The mean decrease is now 2 - 0.3.
        assert!(!oracle.may_skip(SKIP_FACTOR * 1.69));
        for _ in 0..MAX_SKIPPED {
            assert!(oracle.may_skip(SKIP_FACTOR * 1.71));
        }
        assert!(!oracle.may_skip(SKIP_FACTOR * 1.71), "a search is due");
        // Any search starts the count again, also one that is made for another reason.
        let features = Features::new((0..5).collect());
        let best = (Atom::plus(1, 2).unwrap(), 2.0);
        let mut rng = random::rng(0, 0);
        let found = oracle.search(&mut Dense::of(&features), best, 1, &mut rng);
        assert!(found.is_ok() && oracle.may_skip(SKIP_FACTOR * 1.71));

        let mut exact = SolverParams::new(1.0);
        exact.search = Search::Exact;
        let mut oracle = Oracle::new(&exact);
        oracle.learn(1.0, true, 1);
        assert!(
            !oracle.may_skip(1e9),
            "an exact search certifies every iterate"
        );
    }

    #[test]
    fn random_starts_are_features_of_any_size_and_mostly_large_ones() {
        let (mut rng, n) = (random::rng(1, 0), 1000);
        let starts: Vec<u32> = (0..20_000).map(|_| random_start(&mut rng, n)).collect();
        // The first share x of the features has the probability x^(1/3).
        for share in [0.001f64, 0.008, 0.125, 0.5, 0.9] {
            let below = starts.iter().filter(|&&s| f64::from(s) < share * n as f64);
            let found = below.count() as f64 / starts.len() as f64;
            assert!((found - share.cbrt()).abs() < 0.015, "{share}: {found}");
        }
        assert!(starts.iter().all(|&start| (start as usize) < n));
        assert_eq!(random_start(&mut rng, 1), 0);
    }
}
