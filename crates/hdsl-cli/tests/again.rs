//! The command line that a model renders trains the same model again, byte for byte.

mod common;

use common::Scratch;
use hdsl::model::{CommandFiles, Model};

/// Trains, then runs the rendered line, and compares the files.
#[track_caller]
fn trains_again(scratch: &Scratch, call: &str, mut files: CommandFiles) {
    scratch.shell(&format!("hdsl train {call} -o m.hdsl")).ok();
    let model = scratch.read("m.hdsl");
    files.output = Some("again.hdsl".into());
    let loaded = Model::read(scratch.path("m.hdsl")).unwrap();
    let line = loaded.command_line(&files).expect("a line");
    scratch.shell(&line).ok();
    assert!(scratch.read("again.hdsl") == model, "{call}\n{line}");
}

fn files() -> CommandFiles {
    let mut files = CommandFiles::default();
    files.train = Some("train.svm".into());
    files
}

#[test]
fn every_way_to_give_rows() {
    let scratch = Scratch::planted();
    let mut with_valid = files();
    with_valid.valid = Some("valid.svm".into());
    with_valid.names = Some("vocab.txt".into());
    let mut with_more = files();
    with_more.add = Some("valid.svm".into());
    let common = "train.svm --lambda 10 --max-iter 40";
    trains_again(&scratch, common, files());
    trains_again(
        &scratch,
        &format!("{common} --holdout 0.25 --seed 3"),
        files(),
    );
    trains_again(&scratch, &format!("{common} --add valid.svm"), with_more);
    trains_again(
        &scratch,
        "train.svm --lambda 1,10,100 --max-iter 60 --valid valid.svm --names vocab.txt --patience 30 --eval-every 5",
        with_valid,
    );
}

#[test]
fn every_option_of_the_solver() {
    let scratch = Scratch::planted();
    for options in [
        "--preprocess unit --loss logistic --search exact --steps pairwise --max-iter 10 --certify",
        "--batch 50 --max-iter 30 -k 5 --vote weighted --normalization cosine",
        "--max-iter 30 --mining-rounds 2 --last-round-iter 7 --max-features 40",
        "--max-iter 20 --triplets random:5 --n-estimators 2 --seed 4",
        "--max-iter 20 --tol 0.01",
    ] {
        trains_again(
            &scratch,
            &format!("train.svm --lambda 10 {options}"),
            files(),
        );
    }
}

#[test]
fn every_triplet_source() {
    let scratch = Scratch::planted();
    scratch.write("my triplets.txt", "0 1 2\n3 4 5 0.5\n6 7 9\n");
    scratch.write("clicks.txt", "0 1 2\n3 4 5\n");
    scratch.write("grades.txt", "0 1 2\n0 2 1\n3 4 2\n3 5 0\n");
    for source in [
        "knn:2:3",
        "random:7",
        "'my triplets.txt'",
        "clicks:clicks.txt",
        "judgments:grades.txt",
        "judgments-low:grades.txt",
    ] {
        let call = format!("train.svm --lambda 10 --max-iter 15 --triplets {source}");
        trains_again(&scratch, &call, files());
        trains_again(&scratch, &format!("{call} --holdout 0.4"), files());
    }
}
