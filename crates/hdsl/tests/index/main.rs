//! Indexes: the search against brute force, and files.

mod common;
mod file;
mod search;
