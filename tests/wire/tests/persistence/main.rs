//! What is kept: the commands that talk about it, as transcripts for Redis and Holdfast, and then servers that are
//! killed, stopped, damaged and started again (Holdfast only).

mod always;
mod check_and_export;
mod claim_waits;
mod claims;
mod damage;
mod descriptors;
mod durability;
mod faults;
mod fenced;
mod followers;
mod full_disk;
mod info;
mod loading;
mod reload;
mod reserve;
mod saving;
mod serializable;
mod slices;
mod snapshot_files;
mod states;
mod support;
mod survival;
mod sync_failure;
mod waiting;
mod without_journal;

#[path = "../process/support.rs"]
#[allow(dead_code, reason = "the tests of the process use all of it, these some")]
mod process;
