//! The step rule `decrease`, recomputed from its definition along runs.

use super::candidates::{Candidates, Move};
use super::curvature::Curvatures;
use super::direction::Direction;
use super::engine::LocalEngine;
use super::tests::{assert_same_path, close, h_by_definition, in_shards, run, without_ties, wordy};
use super::*;
use crate::atoms::{Atom, Step};
use crate::objective::loss::LossKind;
use crate::random;

/// <B - M, -∇f> of an atom, from H as a dense matrix.
fn rate_of(atom: Atom, problem: &Problem<'_>, h: &[Vec<f64>], active: &ActiveSet) -> f64 {
    let gain = |atom: Atom| {
        let (i, j) = (atom.i() as usize, atom.j() as usize);
        let score = 0.5 * (h[i][i] + h[j][j]) + atom.sign().value() * h[i][j];
        problem.lambda * score / problem.total_weight
    };
    let of_model: f64 = active
        .iter()
        .map(|(atom, weight)| weight * gain(atom))
        .sum();
    gain(atom) - of_model
}

/// Takes up to 150 steps of the rule. Calls `check` with the active set before each step and with the step.
fn walk(
    problem: &Problem<'_>,
    seed: u64,
    mut check: impl FnMut(&ActiveSet, &Move, &Step, f64, f64),
) {
    let rule = StepRule::Decrease;
    let mut engine = in_shards(problem, 2);
    let mut oracle = Oracle::new(&SolverParams::new(problem.lambda));
    let (mut curvatures, mut rng) = (Curvatures::default(), random::rng(seed, 1));
    let start = oracle.best(LocalEngine::gradient(&mut engine), Search::Alternating);
    LocalEngine::start_at(&mut engine, ActiveSet::single(start.unwrap().0));
    for turn in 1..=150 {
        let before = LocalEngine::objective(&mut engine);
        let active = LocalEngine::gradient(&mut engine).active().clone();
        let at = (turn, false);
        let candidates = Candidates::find(
            &mut engine,
            &mut oracle,
            &mut curvatures,
            rule,
            at,
            &mut rng,
        );
        let chosen = candidates.unwrap();
        let chosen = chosen.choose(&mut engine, &mut oracle, rule, before, turn);
        let Some(chosen) = chosen.unwrap() else {
            continue;
        };
        let Move {
            direction,
            rate,
            gamma,
        } = chosen;
        let step = direction.step(gamma, &active);
        LocalEngine::advance(&mut engine, &step, gamma);
        let after = LocalEngine::gradient(&mut engine).active().clone();
        curvatures.learn(&step, rate, gamma, &after);
        let after = LocalEngine::objective(&mut engine);
        check(&active, &chosen, &step, before, after);
    }
}

#[test]
fn every_step_has_the_largest_predicted_decrease_or_is_to_a_new_atom_worth_it() {
    for (loss, seed) in [
        (LossKind::SmoothedHinge, 1),
        (LossKind::SmoothedHinge, 2),
        (LossKind::SquaredHinge, 3),
    ] {
        let (rows, triplets) = wordy(60, 150, seed);
        let problem = Problem::new(&rows, &triplets, 100.0, loss).unwrap();
        // The curvatures that line searches told.
        let mut known: Vec<(Atom, f64)> = Vec::new();
        let (mut n_new, mut n_active) = (0, 0);
        walk(&problem, seed, |active, chosen, step, _, _| {
            known.retain(|known| active.position(known.0).is_some());
            let sum: f64 = known.iter().map(|known| known.1).sum();
            let mean = sum / known.len().max(1) as f64;
            let h = h_by_definition(&problem, active);
            let predicted = |(atom, weight): (Atom, f64)| {
                let rate = rate_of(atom, &problem, &h, active);
                let longest = if rate >= 0.0 {
                    1.0
                } else {
                    weight / (1.0 - weight)
                };
                let curvature = known.iter().find(|known| known.0 == atom);
                let curvature = curvature.map_or(mean, |known| known.1);
                // The largest value of a concave parabola between 0 and `longest`.
                let decrease = |gamma: f64| gamma * rate.abs() - 0.5 * gamma * gamma * curvature;
                match rate.abs() < longest * curvature {
                    true => decrease(rate.abs() / curvature),
                    false => decrease(longest),
                }
            };
            let decreases: Vec<_> = active.iter().map(|one| (one.0, predicted(one))).collect();
            let most = decreases.iter().map(|one| one.1).fold(0.0, f64::max);
            let (Direction::Forward(atom) | Direction::Away(atom)) = chosen.direction else {
                panic!("the rule takes no pairwise steps");
            };
            let rate = rate_of(atom, &problem, &h, active);
            let is_forward = matches!(chosen.direction, Direction::Forward(_));
            assert!(is_forward == (rate >= 0.0) && close(rate.abs(), chosen.rate, 1e-7));
            match decreases.iter().find(|one| one.0 == atom) {
                None => {
                    n_new += 1;
                    assert!(
                        chosen.gamma * chosen.rate >= most - 1e-9,
                        "step to a new atom"
                    );
                }
                Some(&(_, decrease)) => {
                    n_active += 1;
                    assert!(close(decrease, most, 1e-7), "{decrease} of {most}");
                }
            }
            if let Step::Forward { .. } | Step::Away { .. } = step {
                known.retain(|known| known.0 != atom);
                known.push((atom, chosen.rate / chosen.gamma));
            }
        });
        assert!(n_new > 20 && n_active > 20, "{n_new} and {n_active} steps");
    }
}

#[test]
fn a_line_search_tells_the_curvature_where_f_is_quadratic() {
    let mut n_checked = 0;
    for (seed, lambda) in (0..6).flat_map(|seed| [0.7, 1.0, 1.4, 2.0].map(|lambda| (seed, lambda)))
    {
        let (rows, triplets) = wordy(60, 150, seed);
        let problem = Problem::new(&rows, &triplets, lambda, LossKind::SquaredHinge).unwrap();
        walk(&problem, seed, |active, chosen, _, before, after| {
            let (Direction::Forward(atom) | Direction::Away(atom)) = chosen.direction else {
                panic!("the rule takes no pairwise steps");
            };
            let margins = problem.margins(active);
            let of_atom = problem.margins(&ActiveSet::single(atom));
            let along: Vec<f64> = of_atom.iter().zip(&margins).map(|(b, m)| b - m).collect();
            let sign = match chosen.direction {
                Direction::Forward(_) => 1.0,
                _ => -1.0,
            };
            // The squared hinge is quadratic below margins of 1.
            let ends = margins
                .iter()
                .zip(&along)
                .map(|(m, d)| m + sign * chosen.gamma * d);
            let is_quadratic = margins.iter().copied().chain(ends).all(|m| m < 1.0);
            if is_quadratic && chosen.gamma < chosen.direction.gamma_max(active) {
                n_checked += 1;
                let squares: f64 = along.iter().map(|d| d * d).sum();
                let curvature = squares / problem.total_weight;
                assert!(close(chosen.rate / chosen.gamma, curvature, 1e-9));
                let decrease = 0.5 * chosen.gamma * chosen.rate;
                assert!((before - after - decrease).abs() < 1e-12, "{decrease}");
            }
        });
    }
    assert!(n_checked > 20, "{n_checked} steps");
}

#[test]
fn rounding_errors_do_not_decide_between_steps() {
    for seed in 0..20 {
        let (rows, triplets) = wordy(60, 150, seed);
        let rows = without_ties(&rows);
        let problem = Problem::new(&rows, &triplets, 10.0, LossKind::SmoothedHinge).unwrap();
        let params = SolverParams {
            max_iter: 60,
            ..SolverParams::new(10.0)
        };
        let fit = |n_shards| run(in_shards(&problem, n_shards), &params);
        let one = fit(1);
        // With an objective near 0, all rates would be rounding errors.
        assert!(one.objective() > 0.01, "{}", one.objective());
        assert_same_path(&one, &fit(3));
    }
}
