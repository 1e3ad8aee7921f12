use crate::args::Explain;
use crate::failure::Failure;
use crate::report::Talk;
pub(crate) fn run(_: &Explain, _: &Talk) -> Result<(), Failure> {
    Err(Failure::usage("not yet"))
}
