//! Runs one kernel once, with set-up and clean-up outside of [`counted_kernel`], which switches an instruction counter on
//! and off.

use super::Failure;
use hdsl_benchmarks::kernels::{Kernel, Size, with_kernel};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// One of those listed by `kernels`
    kernel: String,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let found = with_kernel(&args.kernel, Size::Small, &mut |kernel| {
        kernel.reset();
        counted_kernel(kernel);
    });
    match found {
        true => Ok(()),
        false => Err(format!("there is no kernel `{}`", args.kernel).into()),
    }
}

/// `benchmarks/instructions` knows this function by its name.
#[inline(never)]
fn counted_kernel(kernel: &mut dyn Kernel) {
    kernel.work();
}
