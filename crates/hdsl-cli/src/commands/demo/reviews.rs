//! The demo's rows as texts in CSV files.

use crate::failure::Failure;
use hdsl::data::{ColumnRoles, Planted};
use hdsl::{Dataset, ReadOptions, parse_dataset};
use std::collections::HashMap;
use std::fmt::Write;

/// Training, validation and test rows as CSV.
pub(super) fn texts_of(problem: &Planted) -> [String; 3] {
    let parts = [&problem.train, &problem.valid, &problem.test];
    let mut number = 0;
    parts.map(|part| csv(part, &problem.names, &mut number))
}

/// One review per row: its words as a sentence, numbered over all files.
fn csv(data: &Dataset, names: &[String], number: &mut usize) -> String {
    let mut text = "id,verdict,review\n".to_owned();
    for (at, row) in data.rows.iter().enumerate() {
        *number += 1;
        let class = data.labels.as_ref().map_or("", |labels| labels.name(at));
        let words: Vec<&str> = row
            .indices()
            .iter()
            .map(|&w| names[w as usize].as_str())
            .collect();
        let mut words = words.join(" ");
        if let Some(first) = words.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        writeln!(text, "r{number:04},{class},{words}.").expect("a string takes all text");
    }
    text
}

/// Puts the rows that the texts give in the place of the planted ones. Words have other numbers then.
pub(super) fn read_back(problem: &mut Planted, texts: &[String; 3]) -> Result<(), Failure> {
    let mut options = ReadOptions::default();
    let mut roles = ColumnRoles::default();
    (roles.id, roles.label) = (Some("id".into()), Some("verdict".into()));
    roles.text = vec!["review".into()];
    options.records.roles = roles;
    // The report shows them.
    options.records.keep_texts = true;
    let read = |text: &String, options: &ReadOptions| {
        parse_dataset("reviews.csv".as_ref(), text.as_bytes(), options)
    };
    let train = read(&texts[0], &options)?;
    let vectorizer = train
        .records
        .as_ref()
        .map(|records| records.vectorizer.clone());
    options.records.roles = ColumnRoles::default();
    options.records.vectorizer = vectorizer.clone();
    (problem.valid, problem.test) = (read(&texts[1], &options)?, read(&texts[2], &options)?);
    problem.train = train;
    let names = vectorizer.map(|v| v.feature_names()).unwrap_or_default();
    let numbers: HashMap<&str, u32> = names.iter().map(String::as_str).zip(0..).collect();
    let old = std::mem::take(&mut problem.names);
    let number = |&word: &u32| {
        let name = format!("review:{}", old[word as usize]);
        numbers.get(name.as_str()).copied()
    };
    problem.relevant = problem.relevant.iter().filter_map(number).collect();
    problem.relevant.sort_unstable();
    let pairs = problem.pairs.iter().filter_map(|(i, j, alike)| {
        let (i, j) = (number(i)?, number(j)?);
        Some((i.min(j), i.max(j), *alike))
    });
    problem.pairs = pairs.collect();
    problem.names = names;
    Ok(())
}
