//! The few lines a notebook shows for a fitted model: no script, and styles that stay inside.

use crate::format::{count, percent, short, thousands};
use askama::Template;
use hdsl::Model;

/// Features and pairs listed.
const LISTED: usize = 8;

#[derive(Template)]
#[template(path = "compact.html")]
struct Compact<'a> {
    title: &'a str,
    uses: String,
    path: String,
    scale: String,
    valid: Option<String>,
    features: Vec<(String, String)>,
    pairs: Vec<CompactPair>,
    more: Option<String>,
}

struct CompactPair {
    i: String,
    j: String,
    alike: bool,
    weight: String,
}

/// A model as a small piece of HTML: what it uses and the strongest features and pairs. Names are escaped.
///
/// `names` gives a feature its name, if it is to have another than in the model.
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
        uses: format!(
            "{} of {} in {}",
            thousands(learned.n_features_used()),
            count(model.n_features(), "feature"),
            count(pairs.len(), "pair")
        ),
        path: format!(
            "{} of {} kept",
            thousands(model.chosen()),
            count(model.path().len(), "iteration")
        ),
        scale: short(model.parts().scale),
        valid: best.min_by(f64::total_cmp).map(percent),
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
                alike: p.weight > 0.0,
                weight: short(p.weight),
            })
            .collect(),
        more: (pairs.len() > LISTED || features.len() > LISTED).then(|| {
            format!(
                "The strongest {LISTED} of {} and {}; .report() shows all.",
                count(features.len(), "feature"),
                count(pairs.len(), "pair")
            )
        }),
    };
    // Writing to a string cannot fail.
    page.render().unwrap_or_default()
}
