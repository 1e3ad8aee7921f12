//! One file per command: its options, and the code that reads its inputs, creates its outputs, works, and reports.

pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod demo;
pub(crate) mod evaluate;
pub(crate) mod explain;
#[cfg(feature = "fetch")]
pub(crate) mod fetch;
pub(crate) mod index;
pub(crate) mod inspect;
pub(crate) mod man;
pub(crate) mod neighbors;
pub(crate) mod predict;
pub(crate) mod rank;
pub(crate) mod report;
pub(crate) mod score;
pub(crate) mod train;
pub(crate) mod transform;
pub(crate) mod triplets;
pub(crate) mod tune;
pub(crate) mod vectorize;
