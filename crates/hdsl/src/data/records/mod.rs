//! Records: tables of named columns, as CSV, JSON lines, Parquet, Arrow and plain text have them.
//!
//! | file | job |
//! |---|---|
//! | `batch.rs` | some records in memory |
//! | `csv.rs`, `lines.rs`, `columnar/` | readers, one per kind of file |
//! | `roles.rs` | which column is what: given, or guessed |
//! | `vectorizer.rs` | from columns to features |
//! | `read.rs` | from a file to rows |
//! | `stored.rs` | the vectorizer in model files and files of its own |

mod batch;
#[cfg(feature = "columnar")]
mod columnar;
pub(super) mod csv;
mod lines;
mod read;
mod roles;
mod stored;
mod vectorizer;

pub use read::{RecordOptions, Records};
pub(super) use read::{read, sniff};
pub use roles::{ColumnGuess, ColumnRoles, Role};
pub(super) use stored::is_stored;
pub use vectorizer::RecordVectorizer;

use crate::error::Result;
use batch::Batch;
use std::collections::HashSet;

/// In place of a value that is neither a text, a number nor a list of them.
const UNUSABLE: &str = "\u{1e}";

/// How a file of separated values is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dialect {
    /// What separates two fields; by default, guessed from the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<u8>,
    /// Whether the first record names the columns; by default, guessed from the content. Without names, columns are called
    /// by their number, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
}

/// The first name that two columns have.
fn repeated(names: &[String]) -> Option<&String> {
    let mut seen = HashSet::new();
    names.iter().find(|name| !seen.insert(*name))
}

/// A file of records that is being read.
trait Source: Send {
    /// The names of all columns.
    fn columns(&self) -> &[String];

    /// How it is written.
    fn dialect(&self) -> Dialect;

    /// From now on, these columns only, in this order.
    fn select(&mut self, columns: &[usize]);

    /// The next records, in pieces; none at the end.
    fn next(&mut self) -> Result<Vec<Batch>>;
}
