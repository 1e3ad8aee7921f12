//! What a data file holds.

use super::labels::Labels;
use super::records::Records;
use super::rows::Rows;

/// The index of the first feature in a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexBase {
    /// Features count from 0.
    Zero,
    /// Features count from 1, as the svmlight program has it.
    One,
}

impl IndexBase {
    /// The index of the first feature, 0 or 1.
    pub fn first(self) -> usize {
        match self {
            IndexBase::Zero => 0,
            IndexBase::One => 1,
        }
    }
}

/// What a data file holds.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The rows.
    pub rows: Rows,
    /// The class of each row, if the file or a labels file says.
    pub labels: Option<Labels>,
    /// The query number of each row, if the file gives `qid`s.
    pub queries: Option<Vec<u64>>,
    /// The index of the first feature in the file, so that it can be written back alike.
    pub index_base: IndexBase,
    /// What was accepted but is worth mentioning, one sentence each, with the file's name.
    pub notes: Vec<String>,
    /// What is known about rows that were records: the vectorizer that made them, ids, texts.
    pub records: Option<Records>,
}

impl Dataset {
    /// Rows without labels and queries.
    pub(super) fn unlabeled(rows: Rows, index_base: IndexBase, notes: Vec<String>) -> Self {
        Self {
            rows,
            labels: None,
            queries: None,
            index_base,
            notes,
            records: None,
        }
    }
}
