//! Downloads of public data sets into a cache.
//!
//! The catalogue ([`SETS`]) lists the original files of UCI and LIBSVM. [`fetch`] downloads missing files into a cache
//! folder and returns their paths; [`hdsl::read_dataset`] reads them. A file gets its final name only when it is complete
//! and, if its checksum is known, correct. An interrupted download is resumed by the next call.
//!
//! ```
//! use hdsl_fetch::{FetchOptions, fetch, find};
//! use std::ops::ControlFlow;
//! # let folder = std::env::temp_dir().join(format!("hdsl-fetch-doc-{}", std::process::id()));
//!
//! let options = FetchOptions {
//!     folder: Some(folder),
//!     download: false, // only files in the cache
//!     ..FetchOptions::default()
//! };
//! let missing = fetch(find("dexter")?, &["train"], &options, &mut |_| ControlFlow::Continue(()));
//! assert!(missing.unwrap_err().to_string().contains("dexter.zip"));
//! # Ok::<(), hdsl_fetch::FetchError>(())
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `catalogue.rs` | the data sets and their addresses |
//! | `cache.rs` | the cache folder, its lock, and the digests in `SHA256SUMS` |
//! | `download.rs` | the download of one file over HTTP, with resumption and retries |
//! | `unpack.rs` | extraction from zip archives |
//! | `fetch.rs` | the parts of a data set, from the cache or downloaded |

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
