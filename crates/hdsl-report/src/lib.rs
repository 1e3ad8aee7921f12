//! One HTML page that tells the story of a learned similarity: what it uses, how it came about, what it does to the
//! data, whom it takes for neighbors and where it is wrong.
//!
//! The page is one file that opens offline. [`page()`] makes it from a model and, where they are given, the training and
//! test rows; what cannot be shown without them is left out, and the page says which input would add it. The same input
//! gives the same bytes.
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
//! | file | what is there |
//! |---|---|
//! | `input` | what a report is made from |
//! | `glance`, `run`, `pairs`, `graph`, `dimension`, `map`, `neighbors`, `errors` | the figures of each section |
//! | `story` | all of them together, in the order of the page |
//! | `page` | the template, the data as JSON, the scripts and the policy that admits no other |
//! | `compact` | the few lines a notebook shows |

mod classes;
mod compact;
mod dimension;
mod errors;
pub mod format;
mod glance;
mod graph;
mod input;
mod map;
mod names;
mod neighbors;
mod page;
mod pairs;
mod ranking;
mod run;
mod sample;
mod script;
mod story;

pub use compact::compact;
pub use input::{Input, Part, Voice};
pub use page::page;
