//! The commands, a folder for each family, and the background thread, which continues long commands. A folder has the
//! handlers, and in `table.rs` the rows, each with its documentation; a new family is one line in `FAMILIES`.
//!
//! A family may use `shared` and the exports of another family, never in a circle.

#![forbid(unsafe_code)]

mod acl;
pub mod background;
mod bits;
mod cells;
mod connection;
mod geo;
mod hashes;
mod hyperloglog;
mod keys;
mod lists;
pub mod missing;
mod pubsub;
mod records;
mod registers;
mod runs;
mod scripting;
mod server;
mod sessions;
mod sets;
mod shared;
mod sorted_sets;
mod sorting;
mod streams;
mod strings;
mod topology;
mod transactions;
mod value_reply;

use execution::command::{self, Registry, Table};

pub use acl::{Named as NamedUsers, load_users, parse_declared_users, parse_users, usage_by_user};
pub use connection::describe_client;
pub use shared::version::{HOLDFAST_VERSION, REDIS_VERSION};

/// The table of all commands.
pub fn registry() -> &'static Registry {
    command::list(FAMILIES)
}

/// All families. The order is that of COMMAND LIST.
pub const FAMILIES: &[&[Table]] = &[
    connection::TABLES,
    acl::TABLES,
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
    geo::TABLES,
    streams::TABLES,
    server::TABLES,
    topology::TABLES,
];
