//! Sparse rows and labels, and the way in and out of files.

mod column_lists;
mod columns;
mod counts;
mod dataset;
mod decompress;
mod documents;
mod groups;
pub(crate) mod input;
mod interner;
mod labels;
mod map;
mod matrix_market;
mod nips;
mod npz;
pub(crate) mod number;
mod output;
mod overlap;
mod packed;
#[cfg(feature = "columnar")]
mod parquet_table;
mod planted;
mod preprocess;
mod read;
mod records;
mod row_builder;
mod rows;
mod split;
#[cfg(feature = "sprs")]
mod sprs;
mod statistics;
mod stop_words;
mod svmlight;
mod table;
mod terms;
pub(crate) mod text;
mod texts;
mod vectorize;
mod vocabulary;
mod words;

pub(crate) use column_lists::ColumnLists;
pub(crate) use columns::Columns;
pub use dataset::{Dataset, IndexBase};
pub use documents::{Document, is_documents, is_smart, parse_documents, read_documents};
pub(crate) use groups::{Groups, group_starts};
pub use input::limit_reading;
pub use labels::Labels;
pub(crate) use map::{change_rows, map_rows};
pub use npz::write_npz;
pub use output::{OutputFile, remove_temporary_files};
pub(crate) use overlap::Overlap;
pub(crate) use packed::PackedRows;
pub use planted::{Planted, PlantedParams, planted};
pub use preprocess::{Preprocess, Preprocessor};
pub(crate) use read::INDEX_MAGIC;
pub use read::{Format, ReadOptions, detect_format, parse_dataset, read_dataset};
pub use records::{
    ColumnGuess, ColumnRoles, Dialect, RecordOptions, RecordVectorizer, Records, Role,
};
pub(crate) use rows::LARGEST;
pub use rows::{CsrRows, Rows, RowsView, SparseRow};
pub use split::stratified_split;
pub use statistics::BlockStatistics;
pub use svmlight::{write_labels, write_svmlight};
pub use table::{TableColumn, TableFormat, write_table};
pub use terms::TermStatistics;
pub use texts::{read_lines, read_names, read_texts};
pub use vectorize::{Frequency, VectorizeOptions, Vectorizer, Weighting};
pub use words::{Analyzer, NGrams, Stem, StopWords};
