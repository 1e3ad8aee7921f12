//! Sparse rows and labels, and the way in and out of files.

mod column_lists;
mod columns;
mod dataset;
mod decompress;
mod groups;
pub(crate) mod input;
mod labels;
mod map;
mod matrix_market;
mod nips;
mod npz;
pub(crate) mod number;
mod output;
mod overlap;
mod packed;
mod planted;
mod preprocess;
mod read;
mod row_builder;
mod rows;
mod split;
#[cfg(feature = "sprs")]
mod sprs;
mod svmlight;
pub(crate) mod text;
mod texts;
mod vectorize;
mod vocabulary;

pub(crate) use column_lists::ColumnLists;
pub(crate) use columns::Columns;
pub use dataset::{Dataset, IndexBase};
pub(crate) use groups::{Groups, group_starts};
pub use labels::Labels;
pub(crate) use map::{change_rows, map_rows};
pub use npz::write_npz;
pub use output::OutputFile;
pub(crate) use overlap::Overlap;
pub(crate) use packed::PackedRows;
pub use planted::{Planted, PlantedParams, planted};
pub use preprocess::{Preprocess, Preprocessor};
pub use read::{Format, ReadOptions, parse_dataset, read_dataset};
pub use rows::{CsrRows, Rows, RowsView, SparseRow};
pub use split::stratified_split;
pub use svmlight::write_svmlight;
pub use texts::{read_names, read_texts};
pub use vectorize::{Frequency, VectorizeOptions, Vectorizer, Weighting};
