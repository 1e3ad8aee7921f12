//! The feature names on the page. Each mentioned feature gets a short id, and its name is stored once.

use crate::input::Input;
use serde::Serialize;
use std::collections::HashMap;

/// Longer names are cut: some vocabularies contain whole addresses.
const MAX_CHARS: usize = 200;

/// Features in the order of their first mention.
pub(crate) struct Names<'a, 'b> {
    input: &'b Input<'a>,
    ids: HashMap<u32, u32>,
    list: NameList,
}

/// The mentioned features, by id.
#[derive(Serialize, Default)]
pub(crate) struct NameList {
    /// Feature index in the data, counted from 0.
    feature: Vec<u32>,
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

    /// The id of a feature.
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
    match name.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name,
    }
}
