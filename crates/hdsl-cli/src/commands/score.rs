use crate::args::Score;
use crate::failure::Failure;
use crate::report::Talk;
pub(crate) fn run(_: &Score, _: &Talk) -> Result<(), Failure> {
    Err(Failure::usage("not yet"))
}
