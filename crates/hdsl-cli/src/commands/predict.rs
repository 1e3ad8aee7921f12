use crate::args::Predict;
use crate::failure::Failure;
use crate::report::Talk;
pub(crate) fn run(_: &Predict, _: &Talk) -> Result<(), Failure> {
    Err(Failure::usage("not yet"))
}
