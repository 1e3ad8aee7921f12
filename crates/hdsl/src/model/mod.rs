//! The saved model, the configuration it was trained with, its file, and the command line that trains it again.

mod base_weight;
mod command;
mod config;
mod file;
mod saved;
mod tensors;
mod validation;

pub use base_weight::BaseWeight;
pub use command::{CommandFiles, shell_word};
pub use config::TrainConfig;
pub use saved::{Model, ModelParts, TracePoint, TrainingRows};
pub use validation::{Validation, ValidationMeasure};
