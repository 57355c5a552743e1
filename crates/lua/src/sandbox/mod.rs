//! What a script sees and what it may do: globals, the `redis` table, errors, and being stopped. Refuses to know
//! commands, and how scripts are stored.

mod error_handler;
mod globals;
mod interrupt;
mod redis_table;
mod register;
mod replaced;

pub(crate) use error_handler::error_handler;
pub(crate) use globals::{Globals, open, reset_cjson, set_proxied};
pub(crate) use interrupt::set_hook;
pub(crate) use redis_table::Version;
