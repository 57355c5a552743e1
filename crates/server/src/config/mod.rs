//! The initial settings, and the file they come from.

mod rewrite;
mod sources;
mod tables;
#[cfg(test)]
mod tests;

pub(crate) use rewrite::{replace, rewrite};
pub(crate) use sources::{DataTool, HandOver, Invocation, Loaded, Tool, from_command_line, without_effect};
pub(crate) use tables::ConfiguredIndexes;
