//! Commands of registers. Only Holdfast has them.

mod commands;
mod keyspace;
mod large_restores;
mod model;
mod snapshots;
mod survival;
