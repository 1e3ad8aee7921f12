//! How much of the scores comes from the base, and how much from the learned atoms.

use crate::input::Input;
use crate::ranking::Rankings;
use crate::sample::spaced;
use hdsl::Rows;
use hdsl::ranking::Judged;
use serde::Serialize;
use std::collections::HashMap;

/// Test rows whose neighbors are looked at.
const MAX_QUERIES: usize = 500;
/// Test rows and training rows of the pairs of a sample.
const MAX_SAMPLED: usize = 200;

/// The parts of the score S(x, z) = β ⟨x, z⟩ + xᵀMz, as means over groups of pairs of rows.
#[derive(Serialize)]
pub(crate) struct BaseSection {
    groups: Vec<Group>,
    /// Whether the second group has pairs that belong together and the third pairs that do not.
    has_contrast: bool,
}

/// Pairs of a test row and a training row.
#[derive(Serialize, Default)]
struct Group {
    name: String,
    n_pairs: usize,
    /// The mean of β ⟨x, z⟩.
    base: f64,
    /// The mean of xᵀMz.
    learned: f64,
    /// Σ |xᵀMz| / Σ (|β ⟨x, z⟩| + |xᵀMz|). Absolute values, since the learned part may be below 0.
    share: f64,
}

impl BaseSection {
    /// `None` without a base, or without training and test rows.
    pub(crate) fn of(input: &Input<'_>, rankings: Option<&Rankings>) -> Option<Self> {
        let rankings = rankings.filter(|_| input.model.base() > 0.0)?;
        let (train, test) = (&rankings.learned.train, &rankings.learned.test);
        let parts = Parts { input, train, test };
        let n_test = test.n_rows();
        let k = rankings.rule.k;
        let nearest = spaced(n_test, MAX_QUERIES).into_iter().flat_map(|query| {
            let found = rankings.learned.neighbors[query as usize].iter().take(k);
            found.map(move |neighbor| (query, neighbor.row))
        });
        let name = match k {
            1 => "test rows and their nearest training row".to_owned(),
            _ => format!("test rows and their {k} nearest training rows"),
        };
        let mut groups = vec![parts.group(name, nearest)];
        let contrast = parts.contrast();
        let has_contrast = contrast.is_some();
        match contrast {
            Some(contrast) => groups.extend(contrast),
            None => groups.push(parts.group("a sample of all pairs".to_owned(), parts.sample())),
        }
        Some(Self {
            groups,
            has_contrast,
        })
    }
}

/// The preprocessed rows.
struct Parts<'a> {
    input: &'a Input<'a>,
    train: &'a Rows,
    test: &'a Rows,
}

impl Parts<'_> {
    fn group(&self, name: String, pairs: impl Iterator<Item = (u32, u32)>) -> Group {
        let similarity = self.input.model.similarity();
        let (mut group, mut sizes) = (Group::default(), (0.0, 0.0));
        group.name = name;
        for (query, item) in pairs {
            let (x, z) = (self.test.row(query as usize), self.train.row(item as usize));
            let base = similarity.base_score(x, z);
            let learned = similarity.learned_score(x, z);
            group.n_pairs += 1;
            group.base += base;
            group.learned += learned;
            sizes.0 += base.abs();
            sizes.1 += learned.abs();
        }
        let n = group.n_pairs.max(1) as f64;
        group.base /= n;
        group.learned /= n;
        if sizes.0 + sizes.1 > 0.0 {
            group.share = sizes.1 / (sizes.0 + sizes.1);
        }
        group
    }

    /// Evenly spaced test rows with evenly spaced training rows.
    fn sample(&self) -> impl Iterator<Item = (u32, u32)> {
        let items = spaced(self.train.n_rows(), MAX_SAMPLED);
        let queries = spaced(self.test.n_rows(), MAX_SAMPLED).into_iter();
        queries.flat_map(move |query| {
            let items = items.clone().into_iter();
            items.map(move |item| (query, item))
        })
    }

    /// Pairs that belong together, and others: of the same class, or of a query and a relevant document.
    fn contrast(&self) -> Option<[Group; 2]> {
        if let Some(judged) = self.input.judged_test_rows() {
            let relevant = judged.judged.iter().flat_map(|(query, judged)| {
                let answers = judged.answers();
                answers.map(move |answer| (*query, answer.0))
            });
            let by_query: HashMap<u32, &Judged> =
                judged.judged.iter().map(|of| (of.0, &of.1)).collect();
            let is_relevant = |query: u32, item: u32| {
                let gain = by_query.get(&query).and_then(|of| of.gain(item));
                gain.is_some_and(|gain| gain > 0.0)
            };
            let others = self.sample().filter(|&(q, d)| !is_relevant(q, d));
            return Some([
                self.group("queries and relevant documents".to_owned(), relevant),
                self.group("a sample of queries and other documents".to_owned(), others),
            ]);
        }
        let train = self.input.train?.labels?;
        let test = self.input.test?.labels?;
        let is_same =
            |&(query, item): &(u32, u32)| test.name(query as usize) == train.name(item as usize);
        let (same, different): (Vec<_>, Vec<_>) = self.sample().partition(is_same);
        Some([
            self.group(
                "a sample of rows of the same class".to_owned(),
                same.into_iter(),
            ),
            self.group(
                "a sample of rows of different classes".to_owned(),
                different.into_iter(),
            ),
        ])
    }
}
