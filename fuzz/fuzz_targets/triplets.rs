//! Triplet lists, click logs and judgments.
#![no_main]

use hdsl::Triplets;
use hdsl::triplets::TripletFormat;
use hdsl_fuzz::looks_compressed;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if looks_compressed(bytes) {
        return;
    }
    const ROWS: usize = 50;
    let name = "fuzz".as_ref();
    let read = TripletFormat::ALL.map(|format| Triplets::parse(name, bytes, format, ROWS));
    for triplets in read.into_iter().flatten() {
        triplets.check(ROWS).expect("the readers check as much");
        let mut text = Vec::new();
        triplets.write(&mut text).expect("memory takes everything");
        let again = Triplets::parse("again".as_ref(), &text, TripletFormat::List, ROWS);
        let again = again.expect("what we write, we read");
        assert_eq!(again, triplets);
    }
});
