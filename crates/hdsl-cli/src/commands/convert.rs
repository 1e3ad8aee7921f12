use crate::args::Convert;
use crate::failure::Failure;
use crate::report::Talk;
pub(crate) fn run(_: &Convert, _: &Talk) -> Result<(), Failure> {
    Err(Failure::usage("not yet"))
}
