//! The texts of rows that the section about neighbors shows.

use serde::Serialize;
use std::collections::BTreeSet;

/// The size of all texts together, in bytes.
const MAX_TOTAL_BYTES: usize = 2_000_000;
/// The size of one text, in bytes.
const MAX_BYTES: usize = 3000;

/// Texts of test and training rows, by row number.
#[derive(Serialize)]
pub(crate) struct Texts {
    test: Vec<(u32, String)>,
    train: Vec<(u32, String)>,
    /// The length at which texts are cut.
    bytes: usize,
    n_cut: usize,
}

impl Texts {
    /// The texts of the given test and training rows; none of a part without texts.
    pub(crate) fn of(
        test: (&BTreeSet<u32>, Option<&[String]>),
        train: (&BTreeSet<u32>, Option<&[String]>),
    ) -> Self {
        let n_rows = test.0.len() + train.0.len();
        let bytes = (MAX_TOTAL_BYTES / n_rows.max(1)).min(MAX_BYTES);
        let mut n_cut = 0;
        let mut select = |(rows, texts): (&BTreeSet<u32>, Option<&[String]>)| {
            let with_text = rows
                .iter()
                .filter_map(|&row| Some((row, &texts?[row as usize])));
            let cut = with_text.map(|(row, text)| {
                if text.len() <= bytes {
                    return (row, text.clone());
                }
                n_cut += 1;
                (row, format!("{}…", &text[..char_boundary(text, bytes)]))
            });
            cut.collect()
        };
        Self {
            test: select(test),
            train: select(train),
            bytes,
            n_cut,
        }
    }
}

/// The last position up to `at` between two characters.
fn char_boundary(text: &str, at: usize) -> usize {
    (0..=at)
        .rev()
        .find(|&b| text.is_char_boundary(b))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        let rows = BTreeSet::from([1]);
        let long = "a".to_owned() + &"ñ".repeat(MAX_BYTES);
        let texts = ["short".to_owned(), long];
        let found = Texts::of((&rows, Some(&texts)), (&BTreeSet::new(), None));
        let kept = "a".to_owned() + &"ñ".repeat(MAX_BYTES / 2 - 1) + "…";
        assert_eq!(found.test, [(1, kept)]);
        assert_eq!((found.n_cut, found.train.len()), (1, 0));
    }
}
