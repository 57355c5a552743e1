//! What survives the process: the journal and its snapshots. Knows when a reply may be sent; refuses to know commands.

mod cluster;
#[cfg(test)]
mod cluster_simulation;
mod keeper;
mod links;
mod load;
mod log_mark;
mod log_url;
mod members;
mod progress;
mod role_thread;
mod roles;
#[cfg(test)]
mod simulation;
mod snapshot_thread;
mod snapshots;

pub(crate) use cluster::options as nats_options;
pub(crate) use keeper::Keeper;
pub(crate) use load::{Indexes, finish_restores, load, replay, undo_forks};
pub(crate) use log_url::{
    LogUrl, OpenedPlace, check_shared_files, directory_to_repair, own_directory, shared_directory,
};
pub(crate) use progress::ReplyGate;
pub(crate) use role_thread::RoleThread;
