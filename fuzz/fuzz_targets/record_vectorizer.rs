//! Files of record vectorizers.
#![no_main]

use hdsl::data::RecordVectorizer;
use hdsl_fuzz::looks_compressed;
use libfuzzer_sys::fuzz_target;
use std::fs;

fuzz_target!(|bytes: &[u8]| {
    if looks_compressed(bytes) {
        return;
    }
    let path = std::env::temp_dir().join(format!("hdsl-fuzz-vectorizer-{}", std::process::id()));
    fs::write(&path, bytes).expect("the folder for temporary files is writable");
    if let Ok(vectorizer) = RecordVectorizer::read(&path) {
        let mut file = Vec::new();
        vectorizer.write(&mut file).expect("memory takes everything");
        fs::write(&path, &file).expect("the folder for temporary files is writable");
        let again = RecordVectorizer::read(&path).expect("what we write, we read");
        if vectorizer.is_bound() {
            assert_eq!(again, vectorizer);
        }
        if vectorizer.n_features() < 1 << 16 {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let columns: Vec<Vec<String>> = vectorizer.columns().map(|_| vec![text.clone()]).collect();
            let _ = vectorizer.transform_table("fuzz".as_ref(), &columns);
            assert_eq!(vectorizer.feature_names().len(), vectorizer.n_features());
        }
    }
    let _ = fs::remove_file(&path);
});
