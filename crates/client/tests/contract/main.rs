//! What a store promises, on every server that it can be over: Holdfast by its own commands in both protocols, Holdfast
//! taken for a plain Redis, and Redis itself where it is installed. Each test expects the same results of all.

mod cancelled_claims;
mod cells;
mod claims;
mod documented_worker;
mod exactly_once;
mod filters;
mod groups;
mod indexes;
mod jobs;
mod memory_state;
mod own_commands;
mod places;
mod proxy;
mod races;
mod records;
mod refusals;
mod runs;
mod scans;
mod session_faults;
mod sessions;
mod transactions;
mod writer;
