//! The code in docs/writing-a-game.md is identical to that of its game and of arena.

use std::fs;
use std::path::Path;

use catch::Catch;
use sametick_arena::Arena;
use sametick_sim::replica::{Hosted, markdown};

const PAGE: &str = include_str!("../../../../docs/writing-a-game.md");

/// The files of the game on the page.
const FILES: [&str; 10] = [
    "Cargo.toml",
    "build.rs",
    "examples/bots.rs",
    "examples/catch.rs",
    "src/lib.rs",
    "src/pilot.rs",
    "src/room.rs",
    "tests/check.rs",
    "tests/lockstep.rs",
    "tests/room.rs",
];

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The names and texts of the blocks that follow `<!-- label: NAME -->`: code without its fences, or a table.
fn blocks(label: &str) -> Vec<(&'static str, String)> {
    let opening = format!("<!-- {label}: ");
    let mut found = Vec::new();
    let mut lines = PAGE.lines();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix(&opening).and_then(|rest| rest.strip_suffix(" -->")) else {
            continue;
        };
        let first = lines.next().unwrap_or_default();
        let text: Vec<&str> = match first.starts_with("```") {
            true => lines.by_ref().take_while(|line| *line != "```").collect(),
            false => lines.by_ref().take_while(|line| line.starts_with('|')).collect(),
        };
        let text: String = text.iter().map(|line| format!("{line}\n")).collect();
        found.push((name, if first.starts_with("```") { text } else { format!("{first}\n{text}") }));
    }
    found
}

/// The parts of a file, in the order of the page, add up to the file.
#[test]
fn the_game_on_the_page_is_the_one_that_is_tested() {
    let blocks = blocks("file");
    for (name, _) in &blocks {
        assert!(FILES.contains(name), "{name} is no file of the game");
    }
    for file in FILES {
        let parts = blocks.iter().filter(|(name, _)| *name == file).map(|(_, text)| text.as_str());
        let (shown, real) = (parts.collect::<Vec<_>>().join("\n"), read(&format!("examples/catch/{file}")));
        let differs = shown.lines().zip(real.lines()).find(|(shown, real)| shown != real);
        assert!(
            shown == real,
            "docs/writing-a-game.md shows another examples/catch/{file}; the first line: {differs:?}"
        );
    }
}

/// A line of dots stands for omitted lines.
#[test]
fn what_the_page_shows_of_arena_is_in_arena() {
    let blocks = blocks("from");
    assert!(blocks.len() >= 6);
    for (path, text) in blocks {
        let file = read(path);
        let real: Vec<&str> = file.lines().map(str::trim).collect();
        let shown: Vec<&str> = text.lines().map(str::trim).collect();
        for part in shown.split(|line| *line == "// …") {
            assert!(
                real.windows(part.len()).any(|lines| lines == part),
                "{path} has no such lines: {part:#?}"
            );
        }
    }
}

#[test]
fn the_tables_on_the_page_are_those_of_the_declarations() {
    let tables = [("catch", markdown(Catch::KINDS)), ("arena", markdown(Arena::KINDS))];
    let shown = blocks("table");
    assert_eq!(shown.len(), tables.len());
    for (name, table) in tables {
        let shown = shown.iter().find(|(shown, _)| *shown == name).map_or("", |(_, text)| text);
        assert!(
            shown == table,
            "put this below `<!-- table: {name} -->` in docs/writing-a-game.md:\n{table}"
        );
    }
}
