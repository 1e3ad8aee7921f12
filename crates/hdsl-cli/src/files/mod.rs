//! Files in and out: data read beside a model, models at a point of their path, outputs opened before the work.

mod index;
mod ranker;
mod read;
mod training;
mod write;

pub(crate) use index::{
    IndexedArgs, check_normalization, edit_index, find_row, ranking_index, read_queries,
};
pub(crate) use ranker::Ranker;
pub(crate) use read::{
    Reader, check_values, is_model, no_labels, note_unseen, read_model, read_names,
};
pub(crate) use training::TrainingData;
pub(crate) use write::{
    RowsOutput, WRITABLE, beside, create, create_folder, create_unless_json,
    refuse_stdout_with_json, write, write_model, write_results,
};
