//! Similarities: the plain dot product, the learned bilinear form, its cosine; what it means, how it came about, how
//! classes are decided by it, and how it is kept in a file.

mod file;
mod saved;
mod tensors;

pub use file::FORMAT_VERSION;
pub use saved::{Model, ModelParts, NUMBERED_BY_POSITION, TracePoint};
