use crate::args::TripletsCmd;
use crate::failure::Failure;
use crate::report::Talk;
pub(crate) fn run(_: &TripletsCmd, _: &Talk) -> Result<(), Failure> {
    Err(Failure::usage("not yet"))
}
