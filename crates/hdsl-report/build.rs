//! Compresses what the page uses of plotly.js, which comes with the plotly crate: 0.3 MB in the program instead of 4.7.

use lzma_rust2::{XzOptions, XzWriter};
use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::path::Path;

/// How the bundle of plotly.js declares a CommonJS module, after its name; it is evaluated when it is first called.
const MODULE: &str = "=ye(";
/// How it declares other modules.
const OTHER_MODULE: &str = "=Ll(";
/// The trace type that the page uses beside scatter, which is always there.
const HEATMAP: &str = r#"moduleType:"trace",name:"heatmap","#;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The crate returns the script between tags and followed by MathJax, which the page does not use.
    let sources = plotly::Plot::offline_js_sources();
    let start = sources.find('>').map_or(0, |at| at + 1);
    let end = sources.find("</script>").unwrap_or(sources.len());
    let script = used(&sources[start..end]);
    let compressed = XzWriter::new(Vec::new(), XzOptions::with_preset(6)).and_then(|mut writer| {
        writer.write_all(script.as_bytes())?;
        writer.finish()
    });
    let folder = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let path = Path::new(&folder).join("plotly.xz");
    std::fs::write(path, compressed.expect("memory takes every byte"))
        .expect("the folder of the build can be written to");
}

/// The bundle without the modules that the page does not use, which are those of maps, 3D plots and so on.
///
/// The last module registers all trace types. Here it registers heatmaps only, and a module stays if its name is a word in
/// the text of one that stays. The build fails if the bundle does not have the form that it has in the pinned version.
fn used(bundle: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    // Name and text of each module, the last one first; what is before all of them remains.
    let mut modules = Vec::new();
    let mut before = bundle;
    while let Some(at) = before.rfind(MODULE) {
        let name = &before[before[..at].trim_end_matches(is_word).len()..at];
        let (start, text) = before.split_at(at - name.len() - "var ".len());
        assert!(text.starts_with("var "), "{name} is not declared with var");
        modules.push((name, text));
        before = start;
    }
    let heatmap = modules.iter().find(|(_, text)| text.contains(HEATMAP));
    let heatmap = heatmap.expect("there is a module of heatmaps").0;
    let list = modules[0].1.split_once(".register([");
    let (start, list) = list.expect("the last module registers a list");
    let (_, end) = list.split_once("])").expect("the list ends");
    let last = format!("{start}.register([{heatmap}()]){end}");
    modules[0].1 = &last;

    // Some texts contain more than one module: the last one, and those before modules of another form.
    let is_single = |text: &str| text.ends_with("});") && !text.contains(OTHER_MODULE);
    let several = modules.iter().filter(|(_, text)| !is_single(text));
    let mut kept: HashSet<&str> = several.map(|&(name, _)| name).collect();
    let texts: HashMap<&str, &str> = modules.iter().copied().collect();
    let mut unread: Vec<&str> = kept
        .iter()
        .map(|name| texts[name])
        .chain([before])
        .collect();
    while let Some(text) = unread.pop() {
        for word in text.split(|c| !is_word(c)) {
            if let Some(text) = texts.get(word).filter(|_| kept.insert(word)) {
                unread.push(text);
            }
        }
    }
    modules.retain(|(name, _)| kept.contains(name));
    let texts = modules.iter().rev().map(|(_, text)| *text);
    std::iter::once(before).chain(texts).collect()
}
