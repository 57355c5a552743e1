//! The port for operators: metrics that Prometheus can read, health, who may ask, clients that ask badly, and the console. Every test
//! starts a `holdfast` of its own; aimed at any other server they do nothing.

mod access;
mod console;
mod console_groups;
mod console_jobs;
mod exposition;
mod figures;
mod groups;
mod health;
mod hostile;
mod http;
mod info;
mod rules;

#[allow(dead_code, reason = "shared with the tests of persistence, which use all of it")]
#[path = "../persistence/faults.rs"]
mod faults;
#[allow(dead_code, reason = "shared with the tests of the process, which use all of it")]
#[path = "../process/support.rs"]
mod process;
#[allow(dead_code, unused_imports, reason = "shared with the tests of persistence, which use all of it")]
#[path = "../persistence/support.rs"]
mod support;
