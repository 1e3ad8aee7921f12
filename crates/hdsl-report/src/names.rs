//! The names on the page: each feature that is mentioned gets a short number there, and its name is written once.

use crate::input::Input;
use serde::Serialize;
use std::collections::HashMap;

/// Letters of a name that are kept: some vocabularies hold whole addresses, and the page is to stay small.
const LONGEST: usize = 200;

/// Features in the order of their first mention.
pub(crate) struct Names<'a, 'b> {
    input: &'b Input<'a>,
    ids: HashMap<u32, u32>,
    list: NameList,
}

/// What the page knows about features.
#[derive(Serialize, Default)]
pub(crate) struct NameList {
    /// The number of each in the data, counted from 0.
    feature: Vec<u32>,
    /// Its name.
    name: Vec<String>,
}

impl<'a, 'b> Names<'a, 'b> {
    pub(crate) fn new(input: &'b Input<'a>) -> Self {
        Self {
            input,
            ids: HashMap::new(),
            list: NameList::default(),
        }
    }

    /// The short number of a feature.
    pub(crate) fn id(&mut self, feature: u32) -> u32 {
        *self.ids.entry(feature).or_insert_with(|| {
            self.list.feature.push(feature);
            self.list.name.push(cut(self.input.name(feature)));
            self.list.feature.len() as u32 - 1
        })
    }

    pub(crate) fn into_list(self) -> NameList {
        self.list
    }
}

fn cut(name: String) -> String {
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name,
    }
}
