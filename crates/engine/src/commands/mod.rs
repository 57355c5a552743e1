//! The commands, a folder for each family. A folder has handlers in its files, and in `table.rs` its rows, each with its
//! documentation; a new family is one line in `FAMILIES`.
//!
//! A family may use `shared` and what another family exports, never in a circle.

mod bits;
mod cells;
mod connection;
mod geo;
mod hashes;
mod hyperloglog;
mod keys;
mod lists;
pub mod missing;
#[cfg(test)]
mod panic_tests;
mod pubsub;
pub(crate) mod records;
mod registers;
mod runs;
mod scripting;
mod server;
mod sessions;
mod sets;
pub(crate) mod shared;
mod sorted_sets;
mod sorting;
mod streams;
mod strings;
#[cfg(test)]
#[path = "../../tests/common/mod.rs"]
mod test_place;
mod topology;
mod transactions;
#[cfg(test)]
mod waiting_tests;

use crate::execution::command::{self, Registry, Table};

/// The table of all commands.
pub fn registry() -> &'static Registry {
    command::list(FAMILIES)
}

/// All families. The order is that of COMMAND LIST.
pub(crate) const FAMILIES: &[&[Table]] = &[
    connection::TABLES,
    transactions::TABLES,
    pubsub::TABLES,
    scripting::TABLES,
    keys::TABLES,
    sorting::TABLES,
    strings::TABLES,
    bits::TABLES,
    hyperloglog::TABLES,
    hashes::TABLES,
    records::TABLES,
    cells::TABLES,
    runs::TABLES,
    registers::TABLES,
    sessions::TABLES,
    lists::TABLES,
    sets::TABLES,
    sorted_sets::TABLES,
    streams::TABLES,
    geo::TABLES,
    server::TABLES,
    topology::TABLES,
    #[cfg(test)]
    panic_tests::TABLES,
    #[cfg(test)]
    waiting_tests::TABLES,
];
