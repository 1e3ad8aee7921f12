//! The classes on the page: one list for training and test rows, matched by name.

use crate::input::Input;
use hdsl::Labels;
use std::collections::HashMap;

/// All classes, those of the training rows first.
pub(crate) struct Classes {
    pub(crate) names: Vec<String>,
    codes: HashMap<String, u32>,
}

impl Classes {
    pub(crate) fn of(input: &Input<'_>) -> Self {
        let mut classes = Self {
            names: Vec::new(),
            codes: HashMap::new(),
        };
        for part in [input.train, input.test].into_iter().flatten() {
            for name in part.labels.map_or(&[][..], Labels::names) {
                if !classes.codes.contains_key(name) {
                    classes
                        .codes
                        .insert(name.clone(), classes.names.len() as u32);
                    classes.names.push(name.clone());
                }
            }
        }
        classes
    }

    /// The class of each row, as an index into `names`.
    pub(crate) fn codes(&self, labels: &Labels) -> Vec<u32> {
        let translate: Vec<u32> = labels.names().iter().map(|n| self.codes[n]).collect();
        labels
            .codes()
            .iter()
            .map(|&code| translate[code as usize])
            .collect()
    }

    pub(crate) fn code(&self, name: &str) -> u32 {
        self.codes[name]
    }
}
