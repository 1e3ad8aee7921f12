//! Section 7: whom single test rows are near to, under both similarities, and why.

use crate::classes::Classes;
use crate::errors::Mistake;
use crate::input::Input;
use crate::names::Names;
use crate::ranking::{Ranked, Rankings, in_words};
use crate::sample::thinned;
use hdsl::{Normalization, Rows, SparseRow};
use serde::Serialize;
use std::collections::BTreeSet;

/// Test rows with neighbors on the page: mistakes, then rows the dot product gets wrong, then others.
const MOST_MISTAKES: usize = 150;
const MOST_CURED: usize = 100;
const MOST_ROWS: usize = 300;
/// Contributions listed for one neighbor; the rest is summed up.
const MOST_REASONS: usize = 8;
/// Bytes of all texts together, and of one text.
const MOST_BYTES: usize = 2_000_000;
const LONGEST_TEXT: usize = 3000;

/// Test rows that can be looked at.
#[derive(Serialize)]
pub(crate) struct NeighborStory {
    k: usize,
    /// How neighbors decide, in words.
    rule: String,
    n_test: usize,
    n_train: usize,
    rows: Vec<Query>,
    /// Texts of the test rows above and of the training rows near them.
    texts: Option<Texts>,
}

#[derive(Serialize)]
struct Query {
    row: u32,
    class: Option<u32>,
    /// The class each similarity gives it.
    by_dot: Option<u32>,
    by_learned: Option<u32>,
    dot: Vec<Near>,
    learned: Vec<Near>,
}

/// One neighbor and what its score is made of.
#[derive(Serialize)]
struct Near {
    row: u32,
    score: f64,
    class: Option<u32>,
    /// (feature, feature, who has which, value): 0 both have it, 1 the first is in the test row, 2 the second, 3 both
    /// ways round.
    why: Vec<(u32, u32, u8, f64)>,
    /// How many contributions are not listed, and their sum.
    rest: (usize, f64),
}

#[derive(Serialize)]
struct Texts {
    test: Vec<(u32, String)>,
    train: Vec<(u32, String)>,
    /// Bytes after which texts are cut.
    bytes: usize,
    n_cut: usize,
}

impl NeighborStory {
    pub(crate) fn of(
        input: &Input<'_>,
        rankings: &Rankings,
        mistakes: &[Mistake],
        classes: &Classes,
        names: &mut Names<'_, '_>,
    ) -> Self {
        let n_test = rankings.test.n_rows();
        let truth = input.test.and_then(|t| t.labels).map(|l| classes.codes(l));
        let guesses = |ranked: &Ranked| ranked.predicted.as_ref().map(|p| classes.codes(p));
        let (by_dot, by_learned) = (guesses(&rankings.dot), guesses(&rankings.learned));
        let voters = input.train.and_then(|t| t.labels).map(|l| classes.codes(l));
        let mut chosen: Vec<u32> = mistakes.iter().take(MOST_MISTAKES).map(|m| m.row).collect();
        if let (Some(truth), Some(dot), Some(learned)) = (&truth, &by_dot, &by_learned) {
            let cured = (0..n_test).filter(|&r| truth[r] != dot[r] && truth[r] == learned[r]);
            let cured: Vec<u32> = cured.map(|r| r as u32).collect();
            chosen.extend(thinned(&cured, MOST_CURED));
        }
        let taken: BTreeSet<u32> = chosen.iter().copied().collect();
        let others: Vec<u32> = (0..n_test as u32).filter(|r| !taken.contains(r)).collect();
        let room = MOST_ROWS.saturating_sub(chosen.len());
        chosen.extend(thinned(&others, room));
        chosen.sort_unstable();

        let learned = input.model.similarity();
        let rows: Vec<Query> = chosen
            .iter()
            .map(|&row| {
                let at = row as usize;
                let mut list = |ranked: &Ranked, queries: &Rows, items: &Rows, is_learned: bool| {
                    let query = queries.row(at);
                    let near = ranked.near.get(at).iter();
                    near.map(|n| {
                        let item = items.row(n.row as usize);
                        let reasons = match is_learned {
                            true => learned
                                .explain_pair(query, item)
                                .pairs
                                .iter()
                                .map(|p| (p.i, p.j, p.value))
                                .collect(),
                            false => shared(query, item),
                        };
                        let class = voters.as_ref().map(|v| v[n.row as usize]);
                        // Reasons add up to the similarity itself, in whatever form it ranks.
                        let score = match is_learned
                            && rankings.rule.normalization == Normalization::Cosine
                        {
                            true => learned.score(query, item),
                            false => n.score,
                        };
                        near_of(n.row, score, class, &reasons, query, item, names)
                    })
                    .collect::<Vec<Near>>()
                };
                Query {
                    row,
                    class: truth.as_ref().map(|t| t[at]),
                    by_dot: by_dot.as_ref().map(|p| p[at]),
                    by_learned: by_learned.as_ref().map(|p| p[at]),
                    dot: list(
                        &rankings.dot,
                        &rankings.plain_test,
                        &rankings.plain_train,
                        false,
                    ),
                    learned: list(&rankings.learned, &rankings.test, &rankings.train, true),
                }
            })
            .collect();
        Self {
            k: rankings.rule.k,
            rule: in_words(rankings.rule).1,
            n_test,
            n_train: rankings.train.n_rows(),
            texts: texts(input, &rows),
            rows,
        }
    }
}

fn near_of(
    row: u32,
    score: f64,
    class: Option<u32>,
    reasons: &[(u32, u32, f64)],
    query: SparseRow<'_>,
    item: SparseRow<'_>,
    names: &mut Names<'_, '_>,
) -> Near {
    let listed = &reasons[..reasons.len().min(MOST_REASONS)];
    let why = listed
        .iter()
        .map(|&(i, j, value)| {
            let here = query.get(i) * item.get(j) != 0.0;
            let there = query.get(j) * item.get(i) != 0.0;
            let way = match (i == j, here, there) {
                (true, _, _) => 0,
                (_, true, true) => 3,
                (_, false, true) => 2,
                _ => 1,
            };
            (names.id(i), names.id(j), way, value)
        })
        .collect();
    let rest = &reasons[listed.len()..];
    Near {
        row,
        score,
        class,
        why,
        rest: (rest.len(), rest.iter().map(|r| r.2).sum()),
    }
}

/// The contributions to a dot product, the largest first, then by feature.
fn shared(a: SparseRow<'_>, b: SparseRow<'_>) -> Vec<(u32, u32, f64)> {
    let mut list: Vec<(u32, u32, f64)> = a
        .iter()
        .map(|(feature, value)| (feature, feature, value * b.get(feature)))
        .filter(|c| c.2 != 0.0)
        .collect();
    list.sort_by(|p, q| q.2.abs().total_cmp(&p.2.abs()));
    list
}

fn texts(input: &Input<'_>, rows: &[Query]) -> Option<Texts> {
    let (train, test) = (input.train?.texts, input.test?.texts);
    if train.is_none() && test.is_none() {
        return None;
    }
    let asked: BTreeSet<u32> = rows.iter().map(|q| q.row).collect();
    let near: BTreeSet<u32> = rows
        .iter()
        .flat_map(|q| q.dot.iter().chain(&q.learned))
        .map(|n| n.row)
        .collect();
    let n = asked.len() + near.len();
    let bytes = (MOST_BYTES / n.max(1)).min(LONGEST_TEXT);
    let mut n_cut = 0;
    let mut pick = |which: &BTreeSet<u32>, texts: Option<&[String]>| -> Vec<(u32, String)> {
        let Some(texts) = texts else {
            return Vec::new();
        };
        which
            .iter()
            .map(|&row| {
                let text = &texts[row as usize];
                let kept = match text.len() > bytes {
                    true => format!("{}…", &text[..boundary(text, bytes)]),
                    false => text.clone(),
                };
                n_cut += usize::from(text.len() > bytes);
                (row, kept)
            })
            .collect()
    };
    Some(Texts {
        test: pick(&asked, test),
        train: pick(&near, train),
        bytes,
        n_cut,
    })
}

/// The last place up to `at` where a text can be cut.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at)
        .rev()
        .find(|&b| text.is_char_boundary(b))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_letters() {
        assert_eq!(boundary("añb", 0), 0);
        assert_eq!(boundary("añb", 2), 1);
        assert_eq!(boundary("añb", 3), 3);
    }
}
