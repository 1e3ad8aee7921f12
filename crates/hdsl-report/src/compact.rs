//! The short form of a report for notebooks: no script, and only inline styles.

use crate::format::{count, percent, short, thousands};
use askama::Template;
use hdsl::Model;

/// The number of features and pairs listed.
const LISTED: usize = 8;

#[derive(Template)]
#[template(path = "compact.html")]
struct Compact<'a> {
    title: &'a str,
    size: String,
    path: String,
    lambda: String,
    validation_error: Option<String>,
    features: Vec<(String, String)>,
    pairs: Vec<CompactPair>,
    more: Option<String>,
}

struct CompactPair {
    i: String,
    j: String,
    is_positive: bool,
    weight: String,
}

/// A model as an HTML fragment: its size, and the features and pairs of largest weight. Names are escaped.
///
/// `names` returns the name of a feature, or `None` for the name in the model.
///
/// ```
/// use hdsl::atoms::Path;
/// use hdsl::{Atom, Model, ModelParts};
/// let path = Path::new(vec![(Atom::plus(0, 1)?, 1.0)], vec![])?;
/// let model = Model::new(ModelParts::new(3, 4.0, path))?;
/// let html = hdsl_report::compact(&model, "HDSL", |f| Some(format!("<b>{f}</b>")));
/// assert!(html.contains("2 of 3 features") && !html.contains("<b>0"));
/// # Ok::<(), hdsl::Error>(())
/// ```
pub fn compact(model: &Model, title: &str, names: impl Fn(u32) -> Option<String>) -> String {
    let name = |f: u32| names(f).unwrap_or_else(|| model.name(f).into_owned());
    let learned = model.similarity();
    let (features, pairs) = (learned.features_by_weight(), learned.pairs_by_weight());
    let best = model.parts().evaluations.iter().map(|e| e.1);
    let page = Compact {
        title,
        size: format!(
            "{} of {} in {}{}",
            thousands(learned.n_features_used()),
            count(model.n_features(), "feature"),
            count(pairs.len(), "pair"),
            match model.base() {
                0.0 => String::new(),
                base => format!(", on a base of {}", short(base)),
            }
        ),
        path: format!(
            "iterate {} of {}",
            thousands(model.chosen()),
            thousands(model.path().len())
        ),
        lambda: short(model.parts().scale),
        validation_error: best.min_by(f64::total_cmp).map(percent),
        features: features
            .iter()
            .take(LISTED)
            .map(|f| (name(f.feature), short(f.weight)))
            .collect(),
        pairs: pairs
            .iter()
            .take(LISTED)
            .map(|p| CompactPair {
                i: name(p.i),
                j: name(p.j),
                is_positive: p.weight > 0.0,
                weight: short(p.weight),
            })
            .collect(),
        more: (pairs.len() > LISTED || features.len() > LISTED).then(|| {
            format!(
                "The {LISTED} largest of {} and {}; .report() lists all.",
                count(features.len(), "feature"),
                count(pairs.len(), "pair")
            )
        }),
    };
    // Writing to a string cannot fail.
    page.render().unwrap_or_default()
}
