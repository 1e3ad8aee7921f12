use crate::args::Train;
use crate::failure::Failure;
use crate::report::Talk;
pub(crate) fn run(_: &Train, _: &Talk) -> Result<(), Failure> {
    Err(Failure::usage("not yet"))
}
