//! The program `hdsl`; all of it is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(hdsl_cli::run(std::env::args_os().skip(1)))
}
