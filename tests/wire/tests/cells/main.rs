//! Commands of cells. Only Holdfast has them.

mod commands;
mod fork;
mod history;
mod keyspace;
mod model;
mod races;
mod survival;
mod waits;
