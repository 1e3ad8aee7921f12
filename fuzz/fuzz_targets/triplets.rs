//! Triplet lists, click logs and judgments.
#![no_main]

use hdsl::triplets::{GradeOrder, parse_clicks, parse_judgments, parse_triplets, write_triplets};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    const ROWS: usize = 50;
    let name = "fuzz".as_ref();
    let orders = [GradeOrder::HigherIsBetter, GradeOrder::LowerIsBetter];
    let read = [
        parse_triplets(name, bytes, ROWS),
        parse_clicks(name, bytes, ROWS),
        parse_judgments(name, bytes, ROWS, orders[0]),
        parse_judgments(name, bytes, ROWS, orders[1]),
    ];
    for triplets in read.into_iter().flatten() {
        triplets.check(ROWS).expect("the readers check as much");
        let mut text = Vec::new();
        write_triplets(&mut text, &triplets).expect("memory takes everything");
        let again = parse_triplets("again".as_ref(), &text, ROWS).expect("what we write, we read");
        assert_eq!(again, triplets);
    }
});
