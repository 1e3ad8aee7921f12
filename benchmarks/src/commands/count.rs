//! One kernel, once, with everything around it kept apart: an instruction counter is switched on and off by
//! [`counted_kernel`].

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
