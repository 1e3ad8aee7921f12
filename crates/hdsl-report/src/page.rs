//! The page itself: a template checked at compile time, the sections as JSON, and a content security policy that admits
//! only the page's own scripts and no requests.

use crate::format::short;
use crate::input::Input;
use crate::ranking::{baseline, prediction_rule};
use crate::script;
use crate::sections::{Sections, compute};
use crate::summary::Summary;
use askama::Template;
use hdsl::{Error, Result};

const STYLE: &str = include_str!("../assets/report.css");

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    title: &'a str,
    version: &'a str,
    policy: String,
    style: &'a str,
    plotly: &'a str,
    script: &'a str,
    /// The sections as JSON, escaped so that they cannot end their script element.
    data: String,
    summary: &'a Summary,
    sections: &'a Sections,
    command: Option<&'a str>,
    /// How classes are predicted.
    rule: String,
    /// The base of the model, if it is above 0.
    base: Option<String>,
    /// What the similarity of the model is compared with.
    baseline: &'static str,
    train: Option<&'a str>,
    test: Option<&'a str>,
}

/// The report as one HTML file. `on_stage` is called with the name of each stage of the work, for progress messages.
///
/// Fails if there are more or fewer labels or texts than rows, if the model's preprocessing is not for the values of the rows, or if the
/// prediction rule has no neighbors.
pub fn page(input: &Input<'_>, on_stage: &mut dyn FnMut(&str)) -> Result<String> {
    let (sections, summary) = compute(input, on_stage)?;
    on_stage("writing the page");
    let (plotly, script) = (script::plotly(), script::own());
    let json = serde_json::to_string(&sections).map_err(|e| Error::Data(e.to_string()))?;
    let page = Page {
        title: input.title,
        version: env!("CARGO_PKG_VERSION"),
        policy: format!(
            "default-src 'none'; script-src {} {}; style-src 'unsafe-inline'; img-src data: blob:",
            script::hash(&plotly),
            script::hash(&script)
        ),
        style: STYLE,
        plotly: &plotly,
        script: &script,
        data: escape_json(&json),
        summary: &summary,
        sections: &sections,
        command: input.command,
        rule: prediction_rule(input.model, input.rule),
        base: (input.model.base() > 0.0).then(|| short(input.model.base())),
        baseline: baseline(input.model),
        train: input.train.map(|part| part.source),
        test: input.test.map(|part| part.source),
    };
    page.render().map_err(|e| Error::Data(e.to_string()))
}

/// JSON without characters that have a meaning in HTML, so that `</script>` in a name cannot end the script element.
fn escape_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_end_its_element() {
        let hostile = "</script><script>alert(1)</script>&\u{2028}\"};";
        let json = serde_json::to_string(hostile).unwrap();
        let escaped = escape_json(&json);
        assert!(!escaped.contains(['<', '>', '&', '\u{2028}']));
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), hostile);
    }
}
