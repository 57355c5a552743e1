//! Commands that exist only for tests, in an engine that has them beside all others. They use what no command uses in
//! all its forms.

#[path = "../common/mod.rs"]
mod common;
mod panics;
mod waiting;

use common::place::Place;
use engine::command::{self, FAMILIES, Table};

/// An engine with the commands of this test. No other engine may be made before: the first one lists the commands.
fn place(shards: usize, workers: usize, settings: &[(&str, &str)]) -> Place {
    let families: Vec<&'static [Table]> = FAMILIES.iter().copied().chain([panics::TABLES, waiting::TABLES]).collect();
    command::list(&families);
    Place::new(shards, workers, settings)
}
