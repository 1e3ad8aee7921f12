use crate::strategies::*;
use hdsl::similarity::ReducedTransform;
use hdsl::{Rows, Similarity};
use proptest::prelude::*;

/// What each coordinate is made of, as (feature, factor): the map of unit vectors.
fn directions(reduced: &ReducedTransform) -> Vec<Vec<(u32, f64)>> {
    let n = D as usize;
    let units = Rows::from_parts(n, (0..=n).collect(), (0..D).collect(), vec![1.0; n]).unwrap();
    let mut directions = vec![Vec::new(); reduced.dim()];
    for (feature, row) in (0..D).zip(reduced.transform_rows(&units).iter()) {
        row.iter()
            .for_each(|(c, factor)| directions[c as usize].push((feature, factor)));
    }
    directions
}

proptest! {
    #[test]
    fn full_rank_reproduces_scores_with_orthogonal_directions(model in bilinear(), rows in rows(2)) {
        let reduced = model.reduced(None);
        let (a, b) = (rows.row(0), rows.row(1));
        let (want, _) = dense_score(&dense(&model), a, b);
        let size = model.scale() * a.norm() * b.norm();
        prop_assert!((reduced.score(a, b) - want).abs() <= 1e-12 * size);
        let mapped = reduced.transform_rows(&rows);
        prop_assert!((mapped.row(0).dot(mapped.row(1)) - want).abs() <= 1e-12 * size);
        prop_assert!(reduced.rank() <= model.atoms().len().min(model.n_features_used()));
        let (values, directions) = (reduced.eigenvalues(), directions(&reduced));
        prop_assert!(values.windows(2).all(|w| w[0] >= w[1]) && values.iter().all(|&v| v > 0.0));
        for (p, &value) in values.iter().enumerate() {
            for q in 0..reduced.dim() {
                let gram: f64 = directions[p]
                    .iter()
                    .flat_map(|x| directions[q].iter().map(move |y| (x.0, x.1, y)))
                    .filter(|(f, _, y)| *f == y.0)
                    .map(|(_, x, y)| x * y.1)
                    .sum();
                let want = if p == q { value } else { 0.0 };
                prop_assert!((gram - want).abs() < 1e-12 * model.scale(), "{p} {q}: {gram}");
            }
            // The largest entry is positive, give or take exact ties.
            let most = directions[p].iter().map(|d| d.1).fold(f64::MIN, f64::max);
            let least = directions[p].iter().map(|d| d.1).fold(f64::MAX, f64::min);
            prop_assert!(most >= -least * (1.0 - 1e-6));
        }
    }

    /// Eckart-Young: no matrix of rank r is nearer to M than what remains of its eigenvalues.
    #[test]
    fn cut_off_form_is_the_best_of_its_rank(model in bilinear(), dim in 0usize..6) {
        let all = model.reduced(None);
        let cut = model.reduced(Some(dim));
        prop_assert_eq!(cut.dim(), dim.min(all.rank()));
        prop_assert_eq!(cut.rank(), all.rank());
        let mut rest = dense(&model);
        for direction in directions(&cut) {
            for &(p, x) in &direction {
                for &(q, y) in &direction {
                    rest[p as usize][q as usize] -= x * y;
                }
            }
        }
        let squared: f64 = rest.iter().flatten().map(|e| e * e).sum();
        let lost: f64 = all.eigenvalues().iter().skip(dim).map(|v| v * v).sum();
        let size = model.scale() * model.scale();
        prop_assert!((squared - lost).abs() < 1e-12 * size, "{squared} {lost}");
    }
}

#[test]
fn rank_of_a_cycle_depends_on_its_signs() {
    use hdsl::{Atom, BilinearModel};
    let cycle = |last: Atom| {
        let atoms = [Atom::plus(0, 1).unwrap(), Atom::plus(1, 2).unwrap(), last];
        BilinearModel::new(3, 1.0, atoms.map(|a| (a, 1.0 / 3.0)).to_vec()).unwrap()
    };
    // x_0 = -x_1 = x_2 is a direction nobody sees unless the third atom is a plus.
    assert_eq!(cycle(Atom::minus(0, 2).unwrap()).reduced(None).rank(), 2);
    assert_eq!(cycle(Atom::plus(0, 2).unwrap()).reduced(None).rank(), 3);
}

#[test]
fn weights_of_very_different_size_are_no_trouble() {
    use hdsl::{Atom, BilinearModel, Sign};
    for spread in [-20, -150, -300, -323] {
        let mut atoms = vec![(Atom::plus(0, 1).unwrap(), 1.0)];
        for n in 1..40u32 {
            let sign = if n % 3 == 0 { Sign::Minus } else { Sign::Plus };
            let weight = 10f64.powi(spread * n as i32 / 39).max(5e-324) * 1e-12;
            if weight > 0.0 {
                atoms.push((Atom::new(n, n * n % 41 + n + 1, sign).unwrap(), weight));
            }
        }
        atoms[0].1 = 1.0 - atoms[1..].iter().map(|a| a.1).sum::<f64>();
        atoms.dedup_by_key(|a| a.0);
        let model = BilinearModel::new(100, 1.0, atoms).unwrap();
        let reduced = model.reduced(None);
        assert!(
            reduced
                .eigenvalues()
                .iter()
                .all(|v| v.is_finite() && *v > 0.0)
        );
        assert!((reduced.eigenvalues()[0] - 2.0).abs() < 1e-9);
    }
}

/// A connected graph of `n` features: a tree with some more pairs, and weights over four orders of magnitude.
fn connected(n: u32) -> hdsl::BilinearModel {
    use hdsl::{Atom, BilinearModel, Sign};
    let mix = |k: u32| (u64::from(k) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    let mut atoms = Vec::new();
    for j in 1..n {
        let sign = if mix(j) % 3 == 0 {
            Sign::Minus
        } else {
            Sign::Plus
        };
        let weight = 10f64.powi(-((mix(3 * j) % 4) as i32)) * (1 + mix(7 * j) % 1000) as f64;
        let i = (mix(5 * j) % u64::from(j)) as u32;
        atoms.push((Atom::new(i, j, sign).unwrap(), weight));
        let k = (mix(11 * j) % u64::from(n)) as u32;
        if mix(13 * j) % 2 == 0 && k != j {
            let more = Atom::new(j, k, Sign::Plus).unwrap();
            if atoms.iter().rev().take(2).all(|a| a.0 != more) {
                atoms.push((more, 1.0));
            }
        }
    }
    atoms.sort_by_key(|a| a.0);
    atoms.dedup_by_key(|a| a.0);
    let total: f64 = atoms.iter().map(|a| a.1).sum();
    atoms.iter_mut().for_each(|a| a.1 /= total);
    BilinearModel::new(n as usize, 5.0, atoms).unwrap()
}

/// Large groups are reduced by another method, with the same result.
#[test]
fn large_groups_have_the_directions_of_the_dense_method() {
    let n = 450;
    let model = connected(n);
    let (all, few) = (model.reduced(None), model.reduced(Some(25)));
    assert_eq!((few.dim(), few.rank()), (25, all.rank()));
    let units = (0..=n as usize).collect();
    let units =
        Rows::from_parts(n as usize, units, (0..n).collect(), vec![1.0; n as usize]).unwrap();
    let (all_rows, few_rows) = (all.transform_rows(&units), few.transform_rows(&units));
    let largest = all.eigenvalues()[0];
    for (c, &value) in (0..25).zip(few.eigenvalues()) {
        assert!((value - all.eigenvalues()[c as usize]).abs() < 1e-12 * largest);
        // Directions of eigenvalues that are well apart are the same, with their signs.
        let near = |other: usize| (all.eigenvalues()[other] - value).abs() < 1e-4 * largest;
        if near(c as usize + 1) || (c > 0 && near(c as usize - 1)) {
            continue;
        }
        for row in 0..n as usize {
            let (a, b) = (all_rows.row(row).get(c), few_rows.row(row).get(c));
            assert!((a - b).abs() < 1e-7 * largest.sqrt(), "{c} {row}: {a} {b}");
        }
    }
}

/// As a dense matrix, this would take half a gigabyte and most of an hour.
#[test]
fn a_group_of_8000_features_is_reduced() {
    let model = connected(8000);
    let reduced = model.reduced(Some(20));
    assert_eq!(reduced.dim(), 20);
    assert!(reduced.rank() >= 7999);
    assert!(reduced.eigenvalues().is_sorted_by(|a, b| a >= b));
    // The sum of all eigenvalues is the trace.
    assert!(reduced.eigenvalues().iter().sum::<f64>() < model.trace());
}
