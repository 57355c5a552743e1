//! Starts the server and stops it, and answers what the engine asks about its process.

mod host;
mod server;
#[cfg(test)]
mod tests;

pub(crate) use server::{Beginning, engine, run};
