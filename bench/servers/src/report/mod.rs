//! What was measured, for people and for machines. Measures nothing.

mod chart;
mod page;
mod text;
mod waits;

pub(crate) use chart::svg;
pub(crate) use page::{AOF, conditions, fill, places, tables};
pub(crate) use text::{Contender, Report, console, heading, json, markdown, summary};
pub(crate) use waits::waits_svg;
