//! What was measured, for people and for machines. Measures nothing.

mod chart;
mod text;

pub(crate) use chart::svg;
pub(crate) use text::{Contender, Report, console, heading, json, markdown, summary};
