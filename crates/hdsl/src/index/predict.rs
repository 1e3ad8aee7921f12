//! Classes predicted from the rows of an index.

use super::Index;
use crate::cancel::CancelToken;
use crate::data::{Labels, RowsView};
use crate::error::{Error, Result};
use crate::knn::{ClassMeans, Neighbor, PredictionRule, predict_class};
use std::collections::HashMap;

impl Index {
    /// The predicted class of each raw query, as [`classify`](crate::knn::classify) predicts it from the same rows. All rows
    /// that vote need a label, and the rule has the normalization of the index.
    pub fn predict<'a>(
        &self,
        queries: impl Into<RowsView<'a>>,
        rule: &PredictionRule,
        cancel: CancelToken<'_>,
    ) -> Result<Vec<String>> {
        rule.check(self.n_rows())?;
        if rule.normalization != self.normalization() {
            let want = format!("{}, as in the index", self.normalization());
            return Err(Error::param("normalization", rule.normalization, want));
        }
        let queries = queries.into();
        if !rule.vote.has_k() {
            return self.predict_by_means(queries);
        }
        let near = self.search_where(queries, rule.k, |_, _| true, cancel)?;
        let mut numbers: Vec<u32> = near.iter().flatten().map(|n| n.row).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let labels = self.labels_of(&numbers)?;
        let place: HashMap<u32, u32> = numbers.into_iter().zip(0..).collect();
        let class = |list: &Vec<Neighbor>| {
            let numbered = list.iter().map(|n| Neighbor {
                row: place[&n.row],
                score: n.score,
            });
            let code = predict_class(rule.vote, &numbered.collect::<Vec<_>>(), &labels);
            labels.names()[code as usize].clone()
        };
        Ok(near.iter().map(class).collect())
    }

    fn predict_by_means(&self, queries: RowsView<'_>) -> Result<Vec<String>> {
        let all = self.contents(0..self.parts.len())?;
        let labels = all.extras.into_iter().zip(all.numbers);
        let labels = labels.map(|(known, row)| known.label.ok_or_else(|| no_label(row)));
        let labels = Labels::from_names(labels.collect::<Result<Vec<String>>>()?);
        let rows = all.rows.expect("contents have rows");
        let means = ClassMeans::new(&self.mapping.map(&rows), &labels)?;
        let queries = self.mapping.map(&self.mapping.prepare(queries)?);
        let codes = means.nearest(&queries)?;
        let name = |code: u32| labels.names()[code as usize].clone();
        Ok(codes.into_iter().map(name).collect())
    }

    /// The labels of some rows, which are sorted by number.
    fn labels_of(&self, rows: &[u32]) -> Result<Labels> {
        let mut names = vec![String::new(); rows.len()];
        for part in &self.parts {
            let numbers = self.read(part.segment.numbers())?;
            for (position, number) in numbers.iter().enumerate() {
                if let Ok(at) = rows.binary_search(number) {
                    let known = self.read(part.segment.entered(position))?;
                    names[at] = known.label.ok_or_else(|| no_label(*number))?;
                }
            }
        }
        Ok(Labels::from_names(names))
    }
}

fn no_label(row: u32) -> Error {
    Error::Data(format!(
        "row {row} of the index has no label, so it cannot vote; index rows with labels to predict from them"
    ))
}
