//! All the figures of a report, gathered in the order of the page.

use crate::classes::Classes;
use crate::dimension::DimensionStory;
use crate::errors::{ErrorStory, mistakes};
use crate::glance::{Glance, Satisfied, satisfied};
use crate::graph::GraphStory;
use crate::input::Input;
use crate::map::MapStory;
use crate::names::{NameList, Names};
use crate::neighbors::NeighborStory;
use crate::pairs::Entries;
use crate::ranking::Rankings;
use crate::run::RunStory;
use hdsl::{Error, Result};
use serde::Serialize;

/// What the page's script draws. What is missing could not be told from the input.
#[derive(Serialize)]
pub(crate) struct Story {
    title: String,
    names: NameList,
    classes: Vec<String>,
    satisfied: Option<Satisfied>,
    pub(crate) run: RunStory,
    pub(crate) entries: Entries,
    graph: GraphStory,
    pub(crate) dimension: Option<DimensionStory>,
    pub(crate) map: Option<MapStory>,
    pub(crate) neighbors: Option<NeighborStory>,
    pub(crate) errors: Option<ErrorStory>,
}

/// Gathers everything; `each` hears what is being done, in words.
pub(crate) fn gather(input: &Input<'_>, each: &mut dyn FnMut(&str)) -> Result<(Story, Glance)> {
    check(input)?;
    let classes = Classes::of(input);
    let mut names = Names::new(input);
    each("counting pairs");
    let entries = Entries::of(input, &classes, &mut names);
    each("placing the graph");
    let graph = GraphStory::of(input.model, &mut names);
    each("looking for neighbors");
    let rankings = Rankings::of(input)?;
    let rankings = rankings.as_ref();
    each("following the path");
    let dimension = DimensionStory::of(input, rankings)?;
    each("drawing the map");
    let map = MapStory::of(input, &classes);
    each("explaining neighbors");
    let mistakes = match rankings {
        Some(rankings) => mistakes(input, rankings, &classes)?,
        None => Vec::new(),
    };
    let neighbors = rankings.map(|r| NeighborStory::of(input, r, &mistakes, &classes, &mut names));
    let errors = rankings.and_then(|r| ErrorStory::of(r, &mistakes, &classes));
    each("counting triplets");
    let satisfied = satisfied(input)?;
    let glance = Glance::of(input, rankings, satisfied.as_ref());
    let story = Story {
        title: input.title.to_owned(),
        run: RunStory::of(input.model),
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
    Ok((story, glance))
}

fn check(input: &Input<'_>) -> Result<()> {
    for (part, what) in [(input.train, "training"), (input.test, "test")] {
        let Some(part) = part else { continue };
        let n_rows = part.rows.n_rows();
        if let Some(labels) = part.labels.filter(|l| l.len() != n_rows) {
            let n = labels.len();
            return Err(Error::Data(format!(
                "there are {n} labels for {n_rows} {what} rows"
            )));
        }
        if let Some(texts) = part.texts.filter(|t| t.len() != n_rows) {
            let n = texts.len();
            return Err(Error::Data(format!(
                "there are {n} texts for {n_rows} {what} rows"
            )));
        }
    }
    match input.rule.k {
        0 => Err(Error::param("k", 0, "at least 1")),
        _ => Ok(()),
    }
}
