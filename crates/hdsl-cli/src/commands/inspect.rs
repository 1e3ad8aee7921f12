use crate::args::Inspect;
use crate::failure::Failure;
use crate::report::Talk;
pub(crate) fn run(_: &Inspect, _: &Talk) -> Result<(), Failure> {
    Err(Failure::usage("not yet"))
}
