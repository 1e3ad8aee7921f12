//! All sections of a report, in the order of the page.

use crate::classes::Classes;
use crate::dimension::DimensionSection;
use crate::errors::{ErrorSection, misclassified};
use crate::graph::GraphSection;
use crate::input::Input;
use crate::map::MapSection;
use crate::names::{NameList, Names};
use crate::neighbors::NeighborSection;
use crate::pairs::Entries;
use crate::ranking::{Rankings, baseline};
use crate::run::RunSection;
use crate::summary::Summary;
use crate::triplets::{Satisfied, satisfied};
use hdsl::{Error, Result};
use serde::Serialize;

/// The data of the page's script. A section is `None` if the input does not suffice for it.
#[derive(Serialize)]
pub(crate) struct Sections {
    title: String,
    /// What the similarity of the model is compared with, unless it is the dot product.
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<&'static str>,
    names: NameList,
    classes: Vec<String>,
    satisfied: Option<Satisfied>,
    pub(crate) run: RunSection,
    pub(crate) entries: Entries,
    graph: GraphSection,
    pub(crate) dimension: Option<DimensionSection>,
    pub(crate) map: Option<MapSection>,
    pub(crate) neighbors: Option<NeighborSection>,
    pub(crate) errors: Option<ErrorSection>,
}

/// Computes all sections. `on_stage` is called with the name of each stage of the work.
pub(crate) fn compute(
    input: &Input<'_>,
    on_stage: &mut dyn FnMut(&str),
) -> Result<(Sections, Summary)> {
    check(input)?;
    let classes = Classes::of(input);
    let mut names = Names::new(input);
    on_stage("counting pairs");
    let entries = Entries::of(input, &classes, &mut names);
    on_stage("drawing the graph");
    let graph = GraphSection::of(input.model, &mut names);
    on_stage("searching neighbors");
    let rankings = Rankings::of(input)?;
    let rankings = rankings.as_ref();
    on_stage("evaluating the path");
    let dimension = DimensionSection::of(input, rankings)?;
    on_stage("drawing the map");
    let map = MapSection::of(input, &classes);
    on_stage("explaining neighbors");
    let misclassified = match rankings {
        Some(rankings) => misclassified(input, rankings, &classes)?,
        None => Vec::new(),
    };
    let neighbors =
        rankings.map(|r| NeighborSection::of(input, r, &misclassified, &classes, &mut names));
    let errors = rankings.and_then(|r| ErrorSection::of(input, r, &misclassified, &classes));
    on_stage("counting triplets");
    let satisfied = satisfied(input)?;
    let summary = Summary::of(input, rankings, satisfied.as_ref());
    let sections = Sections {
        title: input.title.to_owned(),
        baseline: (input.model.base() > 0.0).then(|| baseline(input.model)),
        run: RunSection::of(input.model),
        names: names.into_list(),
        classes: classes.names,
        satisfied,
        entries,
        graph,
        dimension,
        map,
        neighbors,
        errors,
    };
    Ok((sections, summary))
}

fn check(input: &Input<'_>) -> Result<()> {
    for (part, kind) in [(input.train, "training"), (input.test, "test")] {
        let Some(part) = part else { continue };
        input.model.preprocess().check(part.rows)?;
        let n_rows = part.rows.n_rows();
        let lengths = [
            (part.labels.map(|labels| labels.len()), "labels"),
            (part.texts.map(<[String]>::len), "texts"),
        ];
        for (n, what) in lengths {
            if let Some(n) = n.filter(|&n| n != n_rows) {
                let reason = format!("there are {n} {what} for {n_rows} {kind} rows");
                return Err(Error::Data(reason));
            }
        }
    }
    match input.rule.k {
        0 => Err(Error::param("k", 0, "at least 1")),
        _ => Ok(()),
    }
}
