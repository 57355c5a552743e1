//! Brings the keys of a Redis server in, out of its RDB or append-only files.

mod bar;
mod importer;
mod progress;
mod report;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use importer::with_progress_bar;
pub(crate) use report::ImportReport;
