//! The page itself: a template that the compiler checks, the figures as JSON, and a policy under which nothing else
//! runs and nothing is fetched.

use crate::glance::Glance;
use crate::input::Input;
use crate::ranking::in_words;
use crate::script;
use crate::story::{Story, gather};
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
    ours: &'a str,
    /// JSON that cannot end the element it stands in.
    data: String,
    glance: &'a Glance,
    story: &'a Story,
    command: Option<&'a str>,
    /// How a test row gets its class, in words.
    rule: String,
    train: Option<&'a str>,
    test: Option<&'a str>,
}

/// The report as one HTML file. `each` hears what is being done, in words, since large data take a while.
///
/// Fails if labels or texts do not fit their rows, or if no neighbor is to decide.
pub fn page(input: &Input<'_>, each: &mut dyn FnMut(&str)) -> Result<String> {
    let (story, glance) = gather(input, each)?;
    each("writing the page");
    let (plotly, ours) = (script::plotly(), script::ours());
    let page = Page {
        title: input.title,
        version: env!("CARGO_PKG_VERSION"),
        policy: format!(
            "default-src 'none'; script-src {} {}; style-src 'unsafe-inline'; img-src data: blob:",
            script::hash(&plotly),
            script::hash(&ours)
        ),
        style: STYLE,
        plotly: &plotly,
        ours: &ours,
        data: inert(&serde_json::to_string(&story).map_err(|e| Error::Data(e.to_string()))?),
        glance: &glance,
        story: &story,
        command: input.command,
        rule: in_words(input.rule).0,
        train: input.train.map(|part| part.source),
        test: input.test.map(|part| part.source),
    };
    page.render().map_err(|e| Error::Data(e.to_string()))
}

/// JSON in which no character means anything to a reader of HTML: `</script>` in a name stays a name.
fn inert(json: &str) -> String {
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
        let inert = inert(&json);
        assert!(!inert.contains(['<', '>', '&', '\u{2028}']));
        assert_eq!(serde_json::from_str::<String>(&inert).unwrap(), hostile);
    }
}
