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
