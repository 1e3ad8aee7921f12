//! What benchmarks share: data of any size, and the hot kernels ready to be measured.

pub mod kernels;
pub mod synthetic;
