//! The initial settings, and the file they come from.

mod looks;
mod redis_conf;
mod redis_users;
mod rewrite;
mod server_url;
mod sources;
mod tables;
#[cfg(test)]
mod tests;

pub(crate) use looks::{Asked, Doctor, Examined, Ping};
pub(crate) use redis_conf::{Converted, convert};
pub(crate) use rewrite::{replace, rewrite};
pub(crate) use server_url::{Place, ServerUrl};
pub(crate) use sources::{
    DataTool, Export, Follow, HandOver, Invocation, Loaded, Repair, Tool, command_line, from_command_line,
    without_effect,
};
pub(crate) use tables::{ConfiguredIndexes, ConfiguredUser};
