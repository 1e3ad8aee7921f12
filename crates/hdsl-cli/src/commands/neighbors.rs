use crate::args::Neighbors;
use crate::failure::Failure;
use crate::report::Talk;
pub(crate) fn run(_: &Neighbors, _: &Talk) -> Result<(), Failure> {
    Err(Failure::usage("not yet"))
}
