//! Connections: greeting, passwords, CLIENT and COMMAND.

mod auth;
mod client;
mod command;
mod greeting;
mod kill;
mod pause;
mod replies;
