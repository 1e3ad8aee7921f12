//! The scripts of the page: plotly.js, which comes with the plotly crate, and the page's own script.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::io::Read as _;

/// The page's own script, one file per section, in the order of their dependencies.
const OWN: [&str; 13] = [
    include_str!("../assets/base.js"),
    include_str!("../assets/charts.js"),
    include_str!("../assets/table.js"),
    include_str!("../assets/run.js"),
    include_str!("../assets/matrix.js"),
    include_str!("../assets/parts.js"),
    include_str!("../assets/features.js"),
    include_str!("../assets/graph.js"),
    include_str!("../assets/dimension.js"),
    include_str!("../assets/map.js"),
    include_str!("../assets/neighbors.js"),
    include_str!("../assets/errors.js"),
    include_str!("../assets/judged.js"),
];

/// What the page uses of plotly.js, taken and compressed by `build.rs`.
const PLOTLY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plotly.xz"));

/// plotly.js with the trace types `scatter` and `heatmap` only.
pub(crate) fn plotly() -> String {
    let mut script = String::new();
    let mut decoder = lzma_rust2::XzReader::new(PLOTLY, false);
    decoder
        .read_to_string(&mut script)
        .expect("build.rs compressed this script");
    script
}

/// The page's own script, wrapped in a function so that it defines no global names.
pub(crate) fn own() -> String {
    format!("(() => {{\n\"use strict\";\n{}\n}})();\n", OWN.join("\n"))
}

/// The hash by which a content security policy admits a script.
pub(crate) fn hash(script: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(script)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plotly_has_what_the_page_uses_and_no_mathjax() {
        let script = plotly();
        assert!(script.trim_start().starts_with("/**\n* plotly.js v"));
        assert!(script.contains("window.Plotly = Plotly"));
        assert!(!script.contains("</script"));
        for trace in ["scatter", "heatmap"] {
            assert!(script.contains(&format!(r#"name:"{trace}",basePlotModule"#)));
        }
        for trace in ["bar", "scatter3d", "scattergl", "scattermap"] {
            assert!(!script.contains(&format!(r#"name:"{trace}",basePlotModule"#)));
        }
        assert!(script.len() < 1_200_000, "{} bytes", script.len());
    }

    #[test]
    fn the_script_writes_no_markup() {
        let script = own();
        for forbidden in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "</script",
        ] {
            assert!(!script.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn hashes_agree_with_the_csp_specification() {
        // The example in the specification.
        assert_eq!(
            hash("alert('Hello, world.');"),
            "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='"
        );
    }
}
