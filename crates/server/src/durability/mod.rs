//! What survives the process: the journal and its snapshots. Knows when a reply may be sent; refuses to know commands.

mod data_directory;
mod keeper;
mod links;
mod load;
mod progress;
mod role_thread;
mod roles;
mod snapshot_thread;
mod snapshots;

pub(crate) use data_directory::DataDirectory;
pub(crate) use keeper::Keeper;
#[cfg(test)]
pub(crate) use keeper::OpenedLog;
pub(crate) use load::{Indexes, finish_restores, load, replay, undo_forks};
pub(crate) use progress::ReplyGate;
pub(crate) use role_thread::RoleThread;
