use crate::args::Evaluate;
use crate::failure::Failure;
use crate::report::Talk;
pub(crate) fn run(_: &Evaluate, _: &Talk) -> Result<(), Failure> {
    Err(Failure::usage("not yet"))
}
