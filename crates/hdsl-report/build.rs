//! Compresses plotly.js, which comes with the plotly crate, so that the program need not contain all 4.5 MB of it.

use flate2::{Compression, write::DeflateEncoder};
use std::io::Write as _;
use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The crate returns the script between tags and followed by MathJax, which the page does not use.
    let sources = plotly::Plot::offline_js_sources();
    let start = sources.find('>').map_or(0, |at| at + 1);
    let end = sources.find("</script>").unwrap_or(sources.len());
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    let compressed = encoder
        .write_all(&sources.as_bytes()[start..end])
        .and_then(|()| encoder.finish());
    let folder = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let path = Path::new(&folder).join("plotly.deflate");
    std::fs::write(path, compressed.expect("memory takes every byte"))
        .expect("the folder of the build can be written to");
}
