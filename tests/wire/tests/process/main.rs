//! The process: how it starts, how it stops, and that no client can take it down or hold it up. Every test starts a
//! `holdfast` of its own with the flags it is about; aimed at any other server they do nothing.

mod asking;
mod batches;
mod beyond_maxmemory;
mod client_accounting;
mod command_counts;
mod databases;
mod doctor;
mod expiry;
mod hang_ups;
mod importing;
mod limits;
mod listening;
mod logs;
mod long_scripts;
mod many_names;
mod memory;
mod migrating;
mod panics;
mod service_manager;
mod slow_readers;
mod start;
mod stop;
mod stray_messages;
mod support;
mod workers;
