//! A first fit, from rows to a saved model: `cargo run --release -p hdsl --example first_fit`.

use hdsl::{Model, ReadOptions, TrainConfig, TrainData, parse_dataset, train};

fn main() -> hdsl::Result<()> {
    // Reviews as rows of words. `tasty` and `delicious` say the same, but no review has both.
    let names = ["tasty", "delicious", "stale", "soggy", "the", "soup"].map(String::from);
    let reviews = b"good 1:1 5:1\n good 1:1 6:1\n good 2:1 5:1\n good 2:1 6:1\n\
                    bad 3:1 5:1\n bad 3:1 6:1\n bad 4:1 5:1\n bad 4:1 6:1\n";
    let data = parse_dataset("reviews".as_ref(), reviews, &ReadOptions::default())?;

    // Train as the paper does, with λ = 2. `()` is an observer that does nothing.
    let config = TrainConfig::new(2.0);
    let mut given = TrainData::new(&data);
    given.names = Some(&names);
    let model = train(&given, &config, &mut ())?.model;

    // Two good reviews without a word in common are similar; a good and a bad one that share `the` are not.
    let review = |number| data.rows.row(number);
    assert!(model.score(review(0), review(3)) > 0.999);
    assert_eq!(model.score(review(0), review(4)), 0.0);
    for pair in model.similarity().pairs_by_weight() {
        let (one, other) = (model.name(pair.i), model.name(pair.j));
        println!("{:+.2}  {one}, {other}", pair.weight);
    }

    // The file holds all that is needed to use the model on raw rows.
    let bytes = model.to_bytes();
    assert_eq!(Model::from_bytes("reviews.hdsl", &bytes)?, model);
    Ok(())
}
