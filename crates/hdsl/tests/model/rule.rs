//! Votes and normalizations against their definitions, score by score.

use crate::strategies::*;
use hdsl::baselines::{DiagonalModel, OasisModel};
use hdsl::knn::{self, ClassMeans, Predictor};
use hdsl::{
    BilinearModel, Dot, Labels, Model, Normalization, PredictionRule, Rows, Similarity, SparseRow,
    Vote,
};
use proptest::prelude::*;

/// Classes for so many rows, of which the one called 1 may have none.
fn classes(n_rows: usize, n_classes: u32, salt: u32) -> Labels {
    let names = (0..n_classes).map(|c| format!("c{c}")).collect();
    let code = |r: u32| (r + salt).wrapping_mul(2_654_435_761) % 97 % n_classes;
    let skipped = |c: u32| {
        if c == 1 && salt.is_multiple_of(2) {
            0
        } else {
            c
        }
    };
    let codes = (0..n_rows as u32).map(|r| skipped(code(r))).collect();
    Labels::from_codes(names, codes).unwrap()
}

/// Scores of one query with every row, summed as the index sums them.
fn scores(
    similarity: &impl Similarity,
    normalization: Normalization,
    train: &Rows,
    query: &Rows,
) -> Vec<f64> {
    let normalized = normalization.of(similarity);
    let (items, query) = (normalized.items(train), normalized.queries(query));
    items.iter().map(|item| query.row(0).dot(item)).collect()
}

/// The definition: every row is scored and sorted, every class is summed.
fn by_definition(scores: &[f64], labels: &Labels, rule: &PredictionRule) -> u32 {
    let class = |row: usize| labels.codes()[row] as usize;
    let n_classes = labels.names().len();
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
    order.truncate(rule.k);
    let (mut counts, mut weights) = (vec![0usize; n_classes], vec![0.0; n_classes]);
    for &row in &order {
        counts[class(row)] += 1;
        weights[class(row)] += match rule.vote {
            // As the definition says, but relative to the nearest, which rounds differently.
            Vote::Squared if scores[order[0]] > 0.0 => {
                (scores[row].max(0.0) / scores[order[0]]).powi(2)
            }
            Vote::Squared => 0.0,
            _ => scores[row].max(0.0),
        };
    }
    let rank = |c: usize| order.iter().position(|&row| class(row) == c);
    let voted = (0..n_classes).filter(|&c| counts[c] > 0);
    let winner = match rule.vote {
        Vote::Majority => voted.min_by_key(|&c| (usize::MAX - counts[c], rank(c))),
        Vote::Weighted | Vote::Squared => voted.min_by(|&a, &b| {
            let by_weight = weights[b].total_cmp(&weights[a]);
            by_weight
                .then((usize::MAX - counts[a], rank(a)).cmp(&(usize::MAX - counts[b], rank(b))))
        }),
        Vote::ClassMean => unreachable!("means are compared with room for rounding"),
    };
    winner.unwrap() as u32
}

/// The mean score of each class, and nothing for a class without rows.
fn mean_scores(scores: &[f64], labels: &Labels) -> Vec<Option<f64>> {
    let mean = |class: u32| {
        let mine = || (0..scores.len()).filter(|&r| labels.codes()[r] == class);
        let sum: f64 = mine().map(|r| scores[r]).sum();
        (mine().count() > 0).then(|| sum / mine().count() as f64)
    };
    (0..labels.names().len() as u32).map(mean).collect()
}

fn like_the_definition(
    similarity: &impl Similarity,
    train: &Rows,
    labels: &Labels,
    queries: &Rows,
    mut rule: PredictionRule,
) {
    rule.k = rule.k.min(train.n_rows());
    let found = knn::classify(similarity, train, labels, queries, &rule).unwrap();
    assert_eq!(found.names(), labels.names());
    for (query, &code) in found.codes().iter().enumerate() {
        let one = queries.select(&[query as u32]);
        let scores = scores(similarity, rule.normalization, train, &one);
        if rule.vote != Vote::ClassMean {
            assert_eq!(code, by_definition(&scores, labels, &rule), "query {query}");
            continue;
        }
        let means = mean_scores(&scores, labels);
        let mine = means[code as usize].expect("a class without rows is never chosen");
        let size = scores.iter().fold(0.0f64, |m, s| m.max(s.abs()));
        let best = means
            .iter()
            .flatten()
            .fold(f64::NEG_INFINITY, |m, &s| m.max(s));
        assert!(
            mine >= best - 1e-11 * size,
            "query {query}: {mine} of {best}"
        );
    }
}

fn lawful(similarity: &impl Similarity, rows: &Rows) {
    let cosine = Normalization::Cosine.of(similarity);
    let (queries, items) = (cosine.queries(rows), cosine.items(rows));
    let (plain_queries, plain_items) = (similarity.queries(rows), similarity.items(rows));
    for (p, a) in rows.iter().enumerate() {
        for (q, b) in rows.iter().enumerate() {
            let score = cosine.score(a, b);
            assert!((score - queries.row(p).dot(items.row(q))).abs() < 1e-12);
            assert!((-1.0 - 1e-12..=1.0 + 1e-12).contains(&score), "{score}");
            let lengths = plain_queries.row(p).norm() * plain_items.row(q).norm();
            let want = if lengths > 0.0 {
                similarity.score(a, b) / lengths
            } else {
                0.0
            };
            assert!((score - want).abs() < 1e-9, "{score} {want}");
        }
    }
}

proptest! {
    #[test]
    fn every_vote_and_normalization_like_its_definition(
        model in bilinear(), train in rows(1..30), queries in rows(1..6),
        rule in rule(), n_classes in 1u32..5, salt in 0u32..50,
    ) {
        let labels = classes(train.n_rows(), n_classes, salt);
        like_the_definition(&model, &train, &labels, &queries, rule);
    }

    #[test]
    fn ties_zeros_and_negative_scores_like_the_definition(
        train in whole_rows(1..40), queries in whole_rows(1..6),
        rule in rule(), n_classes in 1u32..5, salt in 0u32..50,
    ) {
        let labels = classes(train.n_rows(), n_classes, salt);
        like_the_definition(&Dot, &train, &labels, &queries, rule);
    }

    #[test]
    fn similarities_whose_maps_differ_like_the_definition(
        values in prop::collection::vec(-2.0f64..2.0, 81), train in whole_rows(1..20), queries in whole_rows(1..4),
        rule in rule(), salt in 0u32..50,
    ) {
        let labels = classes(train.n_rows(), 3, salt);
        let diagonal = values[..9].iter().enumerate().map(|(i, &v)| (i as u32, v)).collect();
        let diagonal = DiagonalModel::new(9, diagonal).unwrap();
        like_the_definition(&diagonal, &train, &labels, &queries, rule);
        let oasis = OasisModel::from_matrix(9, values).unwrap();
        like_the_definition(&oasis, &train, &labels, &queries, rule);
        lawful(&diagonal, &queries);
        lawful(&oasis, &queries);
    }

    #[test]
    fn cosine_obeys_the_law_and_is_the_score_over_the_roots(model in bilinear(), rows in rows(1..5)) {
        lawful(&model, &rows);
        lawful(&Dot, &rows);
        for a in rows.iter() {
            for b in rows.iter() {
                let (own, other) = (model.score(a, a), model.score(b, b));
                let want = if own * other > 0.0 { model.score(a, b) / (own * other).sqrt() } else { 0.0 };
                prop_assert!((Normalization::Cosine.of(&model).score(a, b) - want).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn a_class_mean_is_the_mean_of_scores(
        model in bilinear(), train in rows(1..30), query in rows(1), n_classes in 1u32..5, salt in 0u32..50,
    ) {
        let labels = classes(train.n_rows(), n_classes, salt);
        for normalization in Normalization::ALL {
            let scores = scores(&model, normalization, &train, &query);
            let size = scores.iter().fold(0.0f64, |m, s| m.max(s.abs()));
            let normalized = normalization.of(&model);
            let means = ClassMeans::new(&normalized.items(&train), &labels).unwrap();
            let found = means.scores(&normalized.queries(&query)).unwrap().remove(0);
            let nearest = means.nearest(&normalized.queries(&query)).unwrap();
            prop_assert_eq!(nearest, vec![found[0].0]);
            prop_assert!(found.windows(2).all(|w| w[0].1 >= w[1].1));
            let mapped = normalized.items(&train);
            let within = |class: u32| {
                let mine: Vec<usize> = (0..train.n_rows()).filter(|&r| labels.codes()[r] == class).collect();
                let with_all = |&a: &usize| -> f64 { mine.iter().map(|&b| mapped.row(a).dot(mapped.row(b))).sum() };
                mine.iter().map(with_all).sum::<f64>() / (mine.len() * mine.len()) as f64
            };
            let want = found.iter().map(|f| within(f.0)).sum::<f64>() / found.len() as f64;
            prop_assert!((means.within() - want).abs() <= 1e-9 * want.max(1e-6));
            let mut seen = vec![None; labels.names().len()];
            found.iter().for_each(|&(class, mean)| seen[class as usize] = Some(mean));
            for (have, want) in seen.iter().zip(mean_scores(&scores, &labels)) {
                prop_assert_eq!(have.is_some(), want.is_some());
                prop_assert!((have.unwrap_or(0.0) - want.unwrap_or(0.0)).abs() <= 1e-11 * size);
            }
        }
    }

    #[test]
    fn many_rules_predict_as_each_alone(
        model in bilinear(), train in rows(12..30), queries in rows(1..6),
        rules in prop::collection::vec(rule(), 0..8), salt in 0u32..50,
    ) {
        let labels = classes(train.n_rows(), 3, salt);
        let together = Predictor::new(&train, &labels, &queries).unwrap().predictions(&model, &rules).unwrap();
        prop_assert_eq!(together.len(), rules.len());
        for (codes, rule) in together.iter().zip(&rules) {
            let alone = knn::classify(&model, &train, &labels, &queries, rule).unwrap();
            prop_assert_eq!(&codes[..], alone.codes());
        }
    }

    #[test]
    fn models_carry_their_rule(parts in parts(), rule in rule()) {
        let own = parts.config.rule;
        let model = Model::new(parts).unwrap();
        prop_assert_eq!(model.rule(), own);
        let changed = model.with_rule(&rule).unwrap();
        prop_assert_eq!(changed.rule(), rule);
        let loaded = Model::from_bytes("m.hdsl", &changed.to_bytes()).unwrap();
        prop_assert_eq!(&loaded, &changed);
        prop_assert_eq!(loaded.rule(), rule);
        prop_assert_eq!(loaded.at(0).unwrap().rule(), rule);
        prop_assert_eq!(changed.with_rule(&PredictionRule::default()).unwrap().rule(), PredictionRule::default());
        prop_assert_eq!(rule.vote.to_string().parse::<Vote>().unwrap(), rule.vote);
        prop_assert_eq!(rule.normalization.to_string().parse::<Normalization>().unwrap(), rule.normalization);
    }
}

#[test]
fn a_model_has_the_rule_of_its_configuration() {
    let path =
        hdsl::atoms::Path::new(vec![(hdsl::Atom::plus(0, 1).unwrap(), 1.0)], vec![]).unwrap();
    let mut parts = hdsl::ModelParts::new(2, 1.0, path);
    parts.config.rule = PredictionRule::nearest(7);
    let model = Model::new(parts.clone()).unwrap();
    assert_eq!(model.rule(), PredictionRule::nearest(7));
    parts.config.rule.k = 0;
    let message = Model::new(parts).unwrap_err().to_string();
    assert!(message.contains("`k` is 0"), "{message}");
}

/// The means of equal classes are equal, so the first class wins although others have nearer rows.
#[test]
fn classes_of_equal_mean_go_to_the_first() {
    let train =
        Rows::from_parts(1, vec![0, 1, 2, 3, 3], vec![0, 0, 0], vec![4.0, 2.0, 2.0]).unwrap();
    let labels = Labels::from_codes(
        ["none", "even", "odd"].map(String::from).to_vec(),
        vec![2, 1, 1, 2],
    );
    let rule = PredictionRule {
        vote: Vote::ClassMean,
        k: 99,
        ..PredictionRule::default()
    };
    let query = train.select(&[0, 3]);
    let found = knn::classify(&Dot, &train, &labels.unwrap(), &query, &rule).unwrap();
    assert_eq!(found.codes(), [1, 1]);
}

#[test]
fn predictions_are_the_same_for_one_and_two_threads() {
    let mut rows = Rows::new(40);
    for r in 0..900u32 {
        let x = r.wrapping_mul(2_654_435_761);
        let mut row = vec![(x >> 8) % 40, (x >> 16) % 40, (x >> 24) % 40];
        row.sort_unstable();
        row.dedup();
        let values: Vec<f64> = row
            .iter()
            .map(|f| 1.0 / f64::from(1 + (f + r) % 7))
            .collect();
        rows.push(SparseRow::new(&row, &values));
    }
    let atoms = (0..20u32).map(|i| (hdsl::Atom::plus(i, i + 20).unwrap(), 0.05));
    let model = BilinearModel::new(40, 3.0, atoms.collect()).unwrap();
    let labels = classes(900, 4, 1);
    let all: Vec<PredictionRule> = Vote::ALL
        .into_iter()
        .flat_map(|vote| {
            Normalization::ALL.map(|normalization| PredictionRule {
                k: 5,
                vote,
                normalization,
            })
        })
        .collect();
    let run = |threads| {
        pool(threads).install(|| {
            Predictor::new(&rows, &labels, &rows)
                .unwrap()
                .predictions(&model, &all)
                .unwrap()
        })
    };
    assert_eq!(run(1), run(2));
}

#[test]
fn too_few_rows_to_predict_from_are_refused() {
    let rows = Rows::from_parts(1, vec![0, 1, 2], vec![0, 0], vec![1.0, 1.0]).unwrap();
    let labels = Labels::from_names(["a", "b"]);
    let predictor = Predictor::new(&rows, &labels, &rows).unwrap();
    let message = |rule: PredictionRule| {
        predictor
            .predictions(&Dot, &[rule])
            .unwrap_err()
            .to_string()
    };
    assert!(message(PredictionRule::nearest(0)).contains("`k` is 0"));
    assert!(message(PredictionRule::nearest(3)).contains("fewer rows than neighbors to find"));
    assert!(predictor.predictions(&Dot, &[]).unwrap().is_empty());
    assert!(Predictor::new(&rows, &Labels::from_names(["a"]), &rows).is_err());
    let (none, unlabeled) = (Rows::new(1), Labels::from_names::<&str>([]));
    let by_mean = PredictionRule {
        vote: Vote::ClassMean,
        ..PredictionRule::default()
    };
    let empty = Predictor::new(&none, &unlabeled, &rows).unwrap();
    assert!(empty.predictions(&Dot, &[by_mean]).is_err());
    assert!("loud".parse::<Vote>().is_err() && "sine".parse::<Normalization>().is_err());
}

#[test]
fn values_near_the_limit_do_not_panic() {
    let rows = Rows::from_parts(
        2,
        vec![0, 2, 3],
        vec![0, 1, 0],
        vec![f64::MAX, -f64::MAX, f64::MAX],
    )
    .unwrap();
    let labels = Labels::from_names(["a", "a"]);
    for vote in Vote::ALL {
        for normalization in Normalization::ALL {
            let rule = PredictionRule {
                k: 2,
                vote,
                normalization,
            };
            let found = knn::classify(&Dot, &rows, &labels, &rows, &rule).unwrap();
            assert_eq!(found.codes(), [0, 0]);
        }
    }
    assert!(
        (Normalization::Cosine
            .of(&Dot)
            .score(rows.row(0), rows.row(0))
            - 1.0)
            .abs()
            < 1e-12
    );
}
