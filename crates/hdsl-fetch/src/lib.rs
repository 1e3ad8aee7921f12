//! Public data sets for `hdsl`: downloaded once, checked, kept, and read like any other file.
//!
//! The catalogue ([`SETS`]) names the original files of UCI and LIBSVM. [`fetch`] brings what is missing into a cache
//! folder and says where each part lies; [`hdsl::read_dataset`] reads it from there. A file takes its name only when it
//! is complete and, where a checksum is known, right. What came before a connection broke is kept, and the next call
//! goes on from there.
//!
//! ```
//! use hdsl_fetch::{FetchOptions, fetch, find};
//! use std::ops::ControlFlow;
//! # let folder = std::env::temp_dir().join(format!("hdsl-fetch-doc-{}", std::process::id()));
//!
//! let options = FetchOptions {
//!     folder: Some(folder),
//!     download: false, // only what is there already
//!     ..FetchOptions::default()
//! };
//! let missing = fetch(find("dexter")?, &["train"], &options, &mut |_| ControlFlow::Continue(()));
//! assert!(missing.unwrap_err().to_string().contains("dexter.zip"));
//! # Ok::<(), hdsl_fetch::FetchError>(())
//! ```
//!
//! | file | its job |
//! |---|---|
//! | `catalogue.rs` | which sets there are, and where |
//! | `cache.rs` | the folder, its lock, the digests remembered in `SHA256SUMS` |
//! | `download.rs` | one file over HTTP: go on, try again, give up in words |
//! | `unpack.rs` | files out of a zip |
//! | `fetch.rs` | a whole set: what is there, what is missing |

mod cache;
mod catalogue;
mod download;
mod error;
mod fetch;
mod unpack;

pub use cache::default_folder;
pub use catalogue::{Download, Part, SETS, Set, find};
pub use error::{FetchError, Result};
pub use fetch::{Event, FetchOptions, Fetched, FetchedPart, fetch};
