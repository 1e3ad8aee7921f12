//! The scripts of the page: the charting library, which comes with the plotly crate, and ours.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// Ours, a file a section, in the order they build on each other.
const OURS: [&str; 11] = [
    include_str!("../assets/base.js"),
    include_str!("../assets/charts.js"),
    include_str!("../assets/table.js"),
    include_str!("../assets/run.js"),
    include_str!("../assets/matrix.js"),
    include_str!("../assets/features.js"),
    include_str!("../assets/graph.js"),
    include_str!("../assets/dimension.js"),
    include_str!("../assets/map.js"),
    include_str!("../assets/neighbors.js"),
    include_str!("../assets/errors.js"),
];

/// plotly.js as the plotly crate embeds it. The crate hands it out between script tags and followed by MathJax, which a
/// page without formulas has no use for.
pub(crate) fn plotly() -> String {
    let sources = plotly::Plot::offline_js_sources();
    let start = sources.find('>').map_or(0, |at| at + 1);
    let end = sources.find("</script>").unwrap_or(sources.len());
    sources[start..end].to_owned()
}

/// All of ours as one script with no name of its own left behind.
pub(crate) fn ours() -> String {
    format!("(() => {{\n\"use strict\";\n{}\n}})();\n", OURS.join("\n"))
}

/// How a content security policy names a script that may run.
pub(crate) fn hash(script: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(script)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_whole_and_alone() {
        let script = plotly();
        assert!(script.trim_start().starts_with("/**\n* plotly.js v"));
        assert!(script.contains("window.Plotly = Plotly"));
        assert!(!script.contains("</script"));
        assert!(script.len() < 5_500_000, "{} bytes", script.len());
    }

    #[test]
    fn our_scripts_write_no_markup() {
        let ours = ours();
        for forbidden in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "</script",
        ] {
            assert!(!ours.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn hashes_are_those_of_browsers() {
        // The example of the CSP specification.
        assert_eq!(
            hash("alert('Hello, world.');"),
            "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='"
        );
    }
}
