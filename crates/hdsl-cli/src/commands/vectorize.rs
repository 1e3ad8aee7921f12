use crate::args::Vectorize;
use crate::failure::Failure;
use crate::report::Talk;
pub(crate) fn run(_: &Vectorize, _: &Talk) -> Result<(), Failure> {
    Err(Failure::usage("not yet"))
}
