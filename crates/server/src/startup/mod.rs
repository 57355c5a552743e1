//! Starts the server and stops it, and answers what the engine asks about its process.

mod host;
mod operators;
mod server;
mod successor;
#[cfg(test)]
mod tests;

pub(crate) use server::{engine, run};
pub(crate) use successor::detach;

/// How a server begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// It writes its data directory, or follows another server's.
    Start,
    /// It takes the place of the process that writes its data directory.
    Upgrade,
}
