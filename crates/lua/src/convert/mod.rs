//! Between Lua values and RESP: a command's reply becomes a value, a script's value becomes a reply. Knows no command.

mod errors;
mod from_resp;
mod to_resp;

pub(crate) use errors::{error_line, fail, push_error, push_error_with_code};
pub(crate) use from_resp::push;
pub(crate) use to_resp::{NAMES, Names, write};
