//! Compresses plotly.js, which comes with the plotly crate: 1.1 MB in the program instead of 4.7 (1.4 with deflate).

use lzma_rust2::{XzOptions, XzWriter};
use std::io::Write as _;
use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The crate returns the script between tags and followed by MathJax, which the page does not use.
    let sources = plotly::Plot::offline_js_sources();
    let start = sources.find('>').map_or(0, |at| at + 1);
    let end = sources.find("</script>").unwrap_or(sources.len());
    let compressed = XzWriter::new(Vec::new(), XzOptions::with_preset(6)).and_then(|mut writer| {
        writer.write_all(&sources.as_bytes()[start..end])?;
        writer.finish()
    });
    let folder = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let path = Path::new(&folder).join("plotly.xz");
    std::fs::write(path, compressed.expect("memory takes every byte"))
        .expect("the folder of the build can be written to");
}
