//! All sections of a report, in the order of the page.

use crate::base_parts::BaseSection;
use crate::classes::Classes;
use crate::dimension::DimensionSection;
use crate::errors::{ErrorSection, misclassified};
use crate::graph::GraphSection;
use crate::input::Input;
use crate::judged::JudgedSection;
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
    pub(crate) base_parts: Option<BaseSection>,
    graph: GraphSection,
    pub(crate) dimension: Option<DimensionSection>,
    pub(crate) map: Option<MapSection>,
    pub(crate) neighbors: Option<NeighborSection>,
    pub(crate) errors: Option<ErrorSection>,
    pub(crate) judged: Option<JudgedSection>,
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
    on_stage("ranking documents");
    let judged = JudgedSection::of(input)?;
    on_stage("counting triplets");
    let satisfied = satisfied(input)?;
    let summary = Summary::of(input, rankings, satisfied.as_ref(), judged.as_ref());
    let sections = Sections {
        title: input.title.to_owned(),
        baseline: (input.model.base() > 0.0).then(|| baseline(input.model)),
        run: RunSection::of(input.model),
        names: names.into_list(),
        classes: classes.names,
        satisfied,
        base_parts: BaseSection::of(input, rankings),
        entries,
        graph,
        dimension,
        map,
        neighbors,
        errors,
        judged,
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
    check_judged(input)?;
    match input.rule.k {
        0 => Err(Error::param("k", 0, "at least 1")),
        _ => Ok(()),
    }
}

/// Judgments name rows that exist.
fn check_judged(input: &Input<'_>) -> Result<()> {
    let Some(judged) = &input.judged else {
        return Ok(());
    };
    let Some(train) = input.train else {
        return Err(Error::Data(
            "judgments need training rows, which are the documents".to_owned(),
        ));
    };
    input.model.preprocess().check(judged.queries)?;
    let (n_queries, n_documents) = (judged.queries.n_rows(), train.rows.n_rows());
    if let Some(names) = judged.names.filter(|names| names.len() != n_queries) {
        let reason = format!("there are {} names for {n_queries} queries", names.len());
        return Err(Error::Data(reason));
    }
    for (query, of) in &judged.judged {
        if *query as usize >= n_queries {
            let reason = format!("query {query} is judged, but there are {n_queries} queries");
            return Err(Error::Data(reason));
        }
        let named = of.gains.iter().map(|judged| judged.0);
        if let Some(row) = named
            .chain(judged.documents.iter().flatten().copied())
            .max()
            && row as usize >= n_documents
        {
            let reason =
                format!("document {row} is judged, but there are {n_documents} training rows");
            return Err(Error::Data(reason));
        }
    }
    Ok(())
}
