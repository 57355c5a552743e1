//! Access control: users and their rights (ACL). What the rules mean is in `execution::acl`.

mod file;
mod table;
mod usage;
mod users;

use execution::command::Table;

pub use file::{Named, load_users, parse_declared_users, parse_users};
pub use usage::usage_by_user;

pub(super) const TABLES: &[Table] = &[Table { group: "server", category: "", commands: table::COMMANDS }];
