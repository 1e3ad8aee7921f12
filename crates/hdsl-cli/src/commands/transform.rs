use crate::args::Transform;
use crate::failure::Failure;
use crate::report::Talk;
pub(crate) fn run(_: &Transform, _: &Talk) -> Result<(), Failure> {
    Err(Failure::usage("not yet"))
}
