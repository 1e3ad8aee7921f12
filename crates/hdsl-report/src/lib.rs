//! HTML reports about a learned similarity: errors, training run, matrix, features and pairs, nearest neighbors,
//! misclassified rows, and the quality of rankings.
//!
//! A report is one file that opens offline. [`page()`] makes it from a model and, optionally, the training and test rows.
//! Sections that need more input are left out, and the page names the input that adds them. The same input gives the same
//! bytes.
//!
//! ```
//! use hdsl::atoms::Path;
//! use hdsl::{Atom, Model, ModelParts};
//! use hdsl_report::{Input, page};
//! let path = Path::new(vec![(Atom::plus(0, 1)?, 1.0)], vec![])?;
//! let mut parts = ModelParts::new(3, 4.0, path);
//! parts.names = vec![(0, "tea".into()), (1, "<script>alert(1)</script>".into())];
//! let model = Model::new(parts)?;
//! let html = page(&Input::new(&model, "model.hdsl"), &mut |_| {})?;
//! assert!(html.starts_with("<!doctype html>"));
//! assert!(!html.contains("<script>alert")); // names are data, never markup
//! # Ok::<(), hdsl::Error>(())
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `input` | the input of a report |
//! | `ranking`, `triplets`, `references` | nearest neighbors, satisfied triplets, similarities without learning; used by several sections |
//! | `summary`, `run`, `pairs`, `base_parts`, `graph`, `dimension`, `map`, `neighbors`, `errors`, `judged` | the figures of one section each |
//! | `sections` | all sections, in the order of the page |
//! | `page` | the template, the data as JSON, the scripts, the content security policy |
//! | `compact` | the short form for notebooks |

mod base_parts;
mod classes;
mod compact;
mod dimension;
mod errors;
pub mod format;
mod graph;
mod input;
mod judged;
mod map;
mod names;
mod neighbors;
mod page;
mod pairs;
mod ranking;
mod references;
mod run;
mod sample;
mod script;
mod sections;
mod summary;
mod texts;
mod triplets;

pub use compact::compact;
pub use input::{Input, Interface, JudgedQueries, Part};
pub use page::page;
