//! The `hdsl` command.
fn main() {}
