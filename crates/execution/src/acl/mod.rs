//! Access control: users, what each may do, and what was refused. Knows commands, keys and channels by their rows;
//! refuses to know how a client proves who it is.
//!
//! | file | has |
//! | --- | --- |
//! | `command_set` | sets of commands, and the categories |
//! | `key_right` | what may be done with a key |
//! | `prefixes` | patterns of literal text and `*`, ordered: those of a key are found quickly |
//! | `selector` | what one list of rules allows: commands, keys, channels, databases |
//! | `user` | a user: passwords, selectors, limits, and the account of what it takes |
//! | `rules` | reads rules such as `+@read` or `~cache:*`, and writes them |
//! | `users` | all users of a server |
//! | `check` | whether a user may run a request |
//! | `log` | what was refused (ACL LOG) |

pub mod check;
pub mod command_set;
mod key_right;
pub mod log;
mod prefixes;
pub mod rules;
pub mod selector;
pub mod user;
pub mod users;

pub use log::{Context, Reason};
pub use user::{Rights, User};
pub use users::Acl;
