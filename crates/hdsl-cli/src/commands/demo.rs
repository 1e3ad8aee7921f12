use crate::args::Demo;
use crate::failure::Failure;
use crate::report::Talk;
pub(crate) fn run(_: &Demo, _: &Talk) -> Result<(), Failure> {
    Err(Failure::usage("not yet"))
}
