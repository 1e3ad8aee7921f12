//! The module table of ARCHITECTURE.md against the code: which module uses which, and that there is no cycle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

type Graph = BTreeMap<String, BTreeSet<String>>;

/// The rows of the table whose header begins with `| module | uses |`.
fn documented(page: &str) -> Graph {
    let rows = page
        .lines()
        .skip_while(|line| !line.starts_with("| module | uses |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let names = |cell: &str| -> BTreeSet<String> {
        let words = cell.split('`').skip(1).step_by(2);
        words.map(str::to_owned).collect()
    };
    let row = |line: &str| {
        let mut cells = line.split('|').skip(1);
        let module = names(cells.next().expect("a first cell"))
            .into_iter()
            .next();
        let uses = names(cells.next().expect("a second cell"));
        (module.expect("a module's name"), uses)
    };
    rows.map(row).collect()
}

/// The code of a file without comments and tests, which stand at its end.
fn code(text: &str) -> String {
    let lines = text
        .lines()
        .take_while(|line| line.trim_start() != "#[cfg(test)]");
    let code = lines.filter(|line| !line.trim_start().starts_with("//"));
    code.collect::<Vec<_>>().join("\n")
}

/// The top-level modules that a file's `crate::` paths name.
fn used(text: &str) -> BTreeSet<String> {
    let code = code(text);
    let paths = code.split("crate::").skip(1);
    let name = |rest: &str| -> String {
        rest.chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    paths.map(name).collect()
}

fn read(folder: &Path, module: Option<&str>, graph: &mut Graph) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let module = module.unwrap_or(&stem);
        if path.is_dir() {
            read(&path, Some(module), graph);
        } else if !["tests", "lib"].contains(&stem.as_str()) {
            let uses = used(&fs::read_to_string(&path).unwrap());
            graph.entry(module.to_owned()).or_default().extend(uses);
        }
    }
}

#[test]
fn the_module_table_is_that_of_the_code_and_has_no_cycle() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(here.join("../../ARCHITECTURE.md")).unwrap();
    let documented = documented(&page);
    let mut found = Graph::new();
    read(&here.join("src"), None, &mut found);
    for (module, uses) in &mut found {
        uses.remove(module);
        // A macro's own helpers are named by their module, too.
        assert!(
            uses.iter().all(|name| name.starts_with(char::is_lowercase)),
            "{module} names an item by the crate's root: {uses:?}"
        );
    }
    for (module, uses) in &found {
        let listed = documented.get(module);
        let listed = listed
            .unwrap_or_else(|| panic!("ARCHITECTURE.md lacks `{module}`, which uses {uses:?}"));
        assert_eq!(
            uses, listed,
            "left: what `{module}` uses; right: what ARCHITECTURE.md says"
        );
    }
    assert_eq!(
        found.len(),
        documented.len(),
        "ARCHITECTURE.md lists modules that do not exist"
    );

    // Every module comes after those it uses.
    let rows = page
        .lines()
        .skip_while(|line| !line.starts_with("| module | uses |"))
        .skip(2);
    let order: Vec<&str> = rows.map_while(|row| row.split('`').nth(1)).collect();
    let place = |name: &str| {
        order
            .iter()
            .position(|&n| n == name)
            .expect("a listed module")
    };
    for (module, uses) in &found {
        for other in uses {
            assert!(
                place(other) < place(module),
                "`{module}` uses `{other}`, which stands below it"
            );
        }
    }
}

#[test]
fn paths_in_comments_and_tests_do_not_count() {
    let text = "//! See crate::tune.\nuse crate::data::Rows;\nlet x = $crate::error::Error::A;\n#[cfg(test)]\nmod tests {\n    use crate::knn;\n}\n";
    assert_eq!(
        used(text),
        BTreeSet::from(["data".to_owned(), "error".to_owned()])
    );
}
