//! Access control: what each user may do, by whichever path a command runs; how users log in, and where they are kept.

mod agreement;
mod databases;
mod edges;
mod files;
mod limits;
mod login;
mod paths;
mod rates;
mod rules;
mod support;
mod sweepers;

#[path = "../process/support.rs"]
#[allow(dead_code, reason = "only a part of it is used here")]
mod process;
