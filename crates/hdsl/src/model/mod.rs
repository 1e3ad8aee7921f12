//! Similarities: the plain dot product, the learned bilinear form, its cosine; what it means, how it came about, how
//! classes are decided by it, and how it is kept in a file.

mod command;
mod config;
mod file;
mod saved;
mod tensors;

pub use command::{CommandFiles, shell_word};
pub use config::{TrainConfig, Validation};
pub use file::FORMAT_VERSION;
pub use saved::{Model, ModelParts, TracePoint};
